import FullText
import Query
import TestSupport

/// A database on each of some engines, made by the same steps, and the same in memory.
final class CaseDatabase {
  let databases: [(engine: EngineName, database: Database)]
  private(set) var data: NaiveData
  /// How long a live query may take to tell what is right, in seconds: a busy machine is no fault.
  var patience = 30.0
  /// What has been done to them.
  private(set) var steps: [DatabaseStep] = []
  /// What was wrong with a statement that changed documents.
  private(set) var changeFailure: DifferentialFailure?
  /// How many statements changed documents as the naive evaluator says.
  private(set) var changeCount = 0
  /// The documents by their IDs, nil for tombstones.
  private var bodies: [ByteString: JSONValue?] = [:]
  private var indexes: [NaiveIndex] = []
  private var definitions: [ByteString: FullTextIndexDefinition] = [:]
  private let directories: [TemporaryDirectory]

  init(_ engines: [EngineName], _ steps: [DatabaseStep]) throws {
    var databases: [(engine: EngineName, database: Database)] = []
    var directories: [TemporaryDirectory] = []
    for engine in engines {
      let directory = TemporaryDirectory()
      directories.append(directory)
      databases.append((engine, try Database.open("test", in: directory.path, options: options(engine))))
    }
    self.databases = databases
    self.directories = directories
    data = try NaiveData([], fullText: [:])
    try apply(steps)
  }

  func close() { for (_, database) in databases { try? database.close() } }

  deinit { close() }

  /// Makes more steps. Those of documents that follow one another are one transaction.
  func apply(_ new: [DatabaseStep]) throws {
    var rest = new[...]
    while let first = rest.first {
      if case .change(let text) = first {
        rest = rest.dropFirst()
        try change(text)
        steps.append(first)
        continue
      }
      let run = rest.prefix { $0.isOfDocuments == first.isOfDocuments && !$0.isStatement }
      rest = rest.dropFirst(run.count)
      for (_, database) in databases {
        if first.isOfDocuments {
          try database.inBatch { for step in run { try CaseDatabase.apply(step, to: database) } }
        } else {
          for step in run { try CaseDatabase.apply(step, to: database) }
        }
      }
      for step in run { try note(step) }
      steps += run
    }
    try refresh()
  }

  /// Keeps what a step does.
  private func note(_ step: DatabaseStep) throws {
    switch step {
    case .save(let id, let body): bodies[ByteString(id)] = .some(body)
    case .delete(let id): if bodies[ByteString(id)] != nil { bodies[ByteString(id)] = .some(nil) }
    case .purge(let id): bodies.removeValue(forKey: ByteString(id))
    case .index(let name, let on, let condition, let unnest):
      indexes.append(NaiveIndex(name: name, keys: on, condition: condition, isArray: unnest != nil))
    case .fullText(let name, let on, let condition, let language):
      definitions[ByteString(name)] = try CaseDatabase.definition(on, condition, language)
      indexes.append(NaiveIndex(name: name, keys: on, condition: condition, isFullText: true))
    case .deleteIndex(let name):
      definitions[ByteString(name)] = nil
      indexes.removeAll { $0.name == name }
    case .expire, .change: break
    }
  }

  /// Takes what the steps have made.
  private func refresh() throws {
    data = try NaiveData(documents(), fullText: definitions)
    data.indexes = indexes
  }

  /// Makes more steps, of documents, in a batch of each database; calls `body` inside of all these, and undoes them.
  func inUndoneBatch(_ new: [DatabaseStep], _ body: () throws -> Void) throws {
    let before = (steps, data, bodies)
    func nested(_ rest: ArraySlice<(engine: EngineName, database: Database)>) throws {
      guard let (_, database) = rest.first else {
        for step in new { try note(step) }
        steps += new
        try refresh()
        return try body()
      }
      try database.inUndoneBatch {
        for step in new { try CaseDatabase.apply(step, to: database) }
        try nested(rest.dropFirst())
      }
    }
    defer { (steps, data, bodies) = before }
    try nested(databases[...])
  }

  private static func definition(_ on: [String], _ condition: String?, _ language: String?) throws
    -> FullTextIndexDefinition
  {
    try FullTextIndexDefinition(
      on, where: condition,
      options: TextAnalysisOptions(language: language.flatMap { FullTextLanguage(rawValue: $0) }))
  }

  private static func apply(_ step: DatabaseStep, to database: Database) throws {
    switch step {
    case .save(let id, let body): try database.save(id, .value(body))
    case .delete(let id): if try database.document(id) != nil { try database.delete(id) }
    case .purge(let id): if try database.document(id, includeDeleted: true) != nil { try database.purge(id) }
    case .expire(let id, let at):
      guard try database.document(id) != nil else { return }
      try database.setExpiration(of: id, at: at.map { Date(timeIntervalSince1970: Double($0) / 1_000) })
    case .index(let name, let on, let condition, let unnest):
      if let unnest {
        try database.createIndex(name, unnest: unnest, on: on, where: condition)
      } else {
        try database.createIndex(name, on: on, where: condition)
      }
    case .fullText(let name, let on, let condition, let language):
      try database.createFullTextIndex(name, definition(on, condition, language))
    case .deleteIndex(let name): try database.deleteIndex(name)
    case .change: break
    }
  }

  /// Runs a statement everywhere, if the naive evaluator knows what it does.
  private func change(_ text: String) throws {
    guard changeFailure == nil, case .change(let statement)? = try? QueryStatement(parsing: text) else {
      return
    }
    try refresh()
    let wanted: NaiveChange
    do { wanted = try naiveChange(statement, data) } catch is NaiveError { return }
    for (id, body) in wanted.bodies { bodies[id] = .some(body) }
    changeCount += 1
    let keys = wanted.rows.map { naiveKey($0, .byValue) }.sorted()
    for (engine, database) in databases {
      func fail(_ message: String) {
        changeFailure = DifferentialFailure(engine: engine, way: "statement", message: "\(text)\n\(message)")
      }
      do {
        let results = try database.execute(text)
        if wanted.fails { return fail("is done, and should fail") }
        let rows = try results.rows.map { row in try (0..<row.count).map { try row[$0].jsonValue() } }
        if rows.map({ naiveKey($0, .byValue) }).sorted() != keys {
          let texts = [rows, wanted.rows].map { $0.map { naiveText(ofRow: $0) }.joined(separator: "\n") }
          return fail("returned\n\(texts[0])\nwanted\n\(texts[1])")
        }
      } catch { if !wanted.fails { return fail("\(error)") } }
      for (id, body) in bodies {
        let found = try database.document(id.string)?.value()
        if naiveKey([found], .exact) == naiveKey([body], .exact) { continue }
        return fail("made \(id) \(naiveText(ofRow: [found])), wanted \(naiveText(ofRow: [body]))")
      }
      // Documents are changed in one order on all engines.
      for (id, before) in try sequencesOfFirst()
      where try database.document(id.string, includeDeleted: true)?.sequence != before {
        return fail("gave \(id) another sequence than \(databases[0].engine)")
      }
      if try database.documentCount != bodies.values.count(where: { $0 != nil }) {
        return fail("left another number of documents")
      }
    }
  }

  private func sequencesOfFirst() throws -> [ByteString: UInt64] {
    guard let database = databases.first?.database else { return [:] }
    var sequences: [ByteString: UInt64] = [:]
    for id in bodies.keys { sequences[id] = try database.document(id.string, includeDeleted: true)?.sequence }
    return sequences
  }

  /// The documents as the steps have left them; sequences and revisions are those of the first database.
  private func documents() throws -> [NaiveDocument] {
    guard let database = databases.first?.database else { return [] }
    return try bodies.sorted { $0.key < $1.key }.compactMap { id, body in
      guard let stored = try database.document(id.string, includeDeleted: true) else { return nil }
      let expiration = try database.expiration(of: id.string)
      return NaiveDocument(
        id: id.string, body: body ?? .object(JSONObject()), sequence: stored.sequence,
        revisionID: "\(stored.revisionID)", isDeleted: body == nil,
        expiration: expiration.map { Int64(($0.timeIntervalSince1970 * 1_000).rounded()) })
    }
  }
}
