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
    for (_, database) in databases {
      var rest = new[...]
      while let first = rest.first {
        let run = rest.prefix { $0.isOfDocuments == first.isOfDocuments }
        rest = rest.dropFirst(run.count)
        if first.isOfDocuments {
          try database.inBatch { for step in run { try CaseDatabase.apply(step, to: database) } }
        } else {
          for step in run { try CaseDatabase.apply(step, to: database) }
        }
      }
    }
    for step in new {
      switch step {
      case .fullText(let name, let on, let condition, let language):
        definitions[ByteString(name)] = try CaseDatabase.definition(on, condition, language)
      case .deleteIndex(let name): definitions[ByteString(name)] = nil
      default: break
      }
    }
    steps += new
    data = try NaiveData(documents(), fullText: definitions)
  }

  /// Makes more steps, of documents, in a batch of each database; calls `body` inside of all these, and undoes them.
  func inUndoneBatch(_ new: [DatabaseStep], _ body: () throws -> Void) throws {
    let before = (steps, data)
    func nested(_ rest: ArraySlice<(engine: EngineName, database: Database)>) throws {
      guard let (_, database) = rest.first else {
        steps += new
        data = try NaiveData(documents(), fullText: definitions)
        return try body()
      }
      try database.inUndoneBatch {
        for step in new { try CaseDatabase.apply(step, to: database) }
        try nested(rest.dropFirst())
      }
    }
    defer { (steps, data) = before }
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
    }
  }

  /// The documents as the steps have left them; sequences and revisions are those of the first database.
  private func documents() throws -> [NaiveDocument] {
    guard let database = databases.first?.database else { return [] }
    var bodies: [ByteString: JSONValue?] = [:]
    for step in steps {
      switch step {
      case .save(let id, let body): bodies[ByteString(id)] = .some(body)
      case .delete(let id): if bodies[ByteString(id)] != nil { bodies[ByteString(id)] = .some(nil) }
      case .purge(let id): bodies.removeValue(forKey: ByteString(id))
      default: break
      }
    }
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
