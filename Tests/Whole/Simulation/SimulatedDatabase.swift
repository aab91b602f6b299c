import Foundation
import Storage
import Touchstone
import TouchstoneServer
import Views

/// Does the operations of a simulation on a database.
package struct SimulatedDatabase {
  /// The names of the two indexes.
  package static let valueIndex = "numbers"
  package static let textIndex = "words"
  static let view = "numbers"
  /// The design document of the index of selectors.
  static let findIndex = "_design/finds"
  /// The day 0 of expirations.
  static let firstDay = Date(timeIntervalSince1970: 4_102_444_800)

  let database: Database

  /// The listener of a replica, while others replicate with it.
  let listener = Lock<SyncListener?>(nil)
  /// The server for operations over HTTP, since the first of them.
  let door = Lock<HTTPDoor?>(nil)

  package init(_ database: Database) { self.database = database }

  /// Does it. What it throws is an answer too.
  package func answer(_ operation: Operation) -> Answer {
    do { return try result(operation) } catch {
      let code = (error as? any TouchstoneError).map { "\($0.kind)" } ?? "\(type(of: error))"
      return .refused(code: code, message: "\(error)")
    }
  }

  func result(_ operation: Operation) throws -> Answer {
    switch operation {
    case .save(let id, let content):
      return .saved([named(id, try database.save(id, body(content)))])
    case .saveOnTop(let id, let revision, let content):
      let base = revision.flatMap { RevisionID($0) }
      return .saved([
        named(id, try database.save(id, body(content), basedOn: base, onConflict: .fail))
      ])
    case .saveAll(let contents):
      let bodies = try contents.sorted { $0.key < $1.key }.map { ($0.key, try body($0.value)) }
      return .saved(try database.inBatch { try bodies.map { named($0, try database.save($0, $1)) } })
    case .delete(let id): return .saved([named(id, try database.delete(id))])
    case .purge(let id): try database.purge(id)
    case .apply(let id, let history, let isDeleted, let content):
      let revision = PulledRevision(
        id: id, history: history, isDeleted: isDeleted, body: isDeleted ? [:] : try body(content))
      return .count(try database.apply(revision) ? 1 : 0)
    case .resolve(let id, let revision):
      guard let revision = RevisionID(revision) else { return .count(0) }
      try database.resolveConflict(of: id, keeping: revision)
      return .leaves(try leaves(id))
    case .increment(let id, let times):
      for _ in 0..<times {
        try database.update(id) { $0["number"] = .int(($0["number"].int ?? 0) + 1) }
      }
    case .setExpiration(let id, let day): try database.setExpiration(of: id, at: day.map(date))
    case .purgeExpired(let day): return .count(try database.purgeExpired(asOf: date(day)))
    case .saveLocal(let id, let number):
      try database.saveLocalDocument(id, ["number": .int(Int64(number))], onConflict: .lastWriteWins)
    case .createIndex:
      return .count(try database.createIndex(Self.valueIndex, on: ["number"]) ? 1 : 0)
    case .createFullTextIndex:
      return .count(try database.createFullTextIndex(Self.textIndex, on: ["words"]) ? 1 : 0)
    case .deleteIndex(let name): return .count(try database.deleteIndex(name) ? 1 : 0)
    case .createFindIndex:
      // A database that is open for reading only refuses it also if it is there.
      guard try database.isReadOnly || database.document(Self.findIndex) == nil else { return .count(0) }
      return .saved([named(Self.findIndex, try database.save(Self.findIndex, .value(Self.findDefinition())))])
    case .compact: try database.compact()
    case .updateWhere(let from, let through, let adding):
      var parameters = range(from, through)
      parameters["adding"] = .int(Int64(adding))
      return try statement {
        try database.execute("UPDATE _ SET number = number + $adding \(Self.inRange)", parameters).ids
      }
    case .deleteWhere(let from, let through):
      return try statement { try database.execute(Self.deletion, range(from, through)).ids }
    case .tryDeleteWhere(let from, let through):
      let tried = try database.execute(Self.deletion, range(from, through), isDryRun: true)
      return .names(tried.ids.sorted())
    case .insert(let id, let replaces, let number):
      return try statement {
        try database.execute(
          Self.insertion(replaces), ["id": .string(id), "n": .int(Int64(number))]
        ).ids
      }
    case .document(let id): return .document(try database.document(id, includeDeleted: true).map(current))
    case .leaves(let id): return .leaves(try leaves(id))
    case .local(let id):
      return .local(try database.localDocument(id).flatMap { $0.body["number"].int.map { Int($0) } })
    case .all:
      var all: [String: Answer.Current] = [:]
      let changes = try database.changes()
      for change in changes {
        guard let document = try database.document(change.documentID, includeDeleted: true) else { continue }
        all[change.documentID] = try current(document)
      }
      return .documents(all)
    case .changes: return .names(try database.changes().map(\.documentID))
    case .query(let from, let through):
      return .names(try ids("SELECT META().id FROM _ \(Self.inRange)", range(from, through)))
    case .match(let word):
      return .names(try ids("SELECT META().id FROM _ WHERE MATCH(\(Self.textIndex), '\(word)')"))
    case .spilled(let bytes): return .names(try spilled(from: bytes))
    case .total:
      let row = try database.query("SELECT COUNT(number), SUM(number) FROM _").run()[0]
      return .numbers([Int(row[0].int ?? 0), Int(row[1].int ?? 0)])
    case .viewRows(let from, let through):
      var query = try view().query()
      query.mapOnly = true
      query.startKey = .int(Int64(from))
      query.endKey = .int(Int64(through))
      return .names(try query.run().map { $0.sourceDocumentID ?? "" }.sorted())
    case .viewTotal:
      let row = try view().query().run().first?.value
      return .numbers([Int(row?["count"].int ?? 0), Int(row?["sum"].int ?? 0)])
    case .find(let from, let through): return .names(try found(from, through))
    case .check: return .names(try database.check(deep: true).map { "\($0)" })
    case .overHTTP(let operation): return try overHTTP(operation)
    case .replica(let operation): return .replica(try result(operation))
    }
    return .done
  }

  private func date(_ day: Int) -> Date { Self.firstDay.addingTimeInterval(Double(day) * 86_400) }

  private func named(_ id: String, _ saved: SavedRevision) -> Answer.Saved {
    Answer.Saved(id: id, revision: "\(saved.revisionID)", sequence: saved.sequence)
  }

  private func ids(_ query: String, _ parameters: [String: JSONValue] = [:]) throws -> [String] {
    try database.query(query).run(parameters).map { $0[0].string ?? "" }.sorted()
  }

  /// Queries whose rows go to temporary files.
  private static let spilled = [
    "SELECT META().id, number, padding FROM _ WHERE number IS VALUED ORDER BY number DESC, META().id",
    "SELECT number, COUNT(DISTINCT META().id) AS c, MAX(META().id) AS m FROM _ WHERE number IS VALUED GROUP BY number",
    """
    SELECT META().id, ROW_NUMBER() OVER (PARTITION BY number ORDER BY META().id DESC) AS r FROM _
    WHERE number IS VALUED
    """,
    "SELECT COUNT(*) AS c FROM _ AS a JOIN _ AS b ON b.number = a.number WHERE a.number IS VALUED",
    "SELECT DISTINCT number, META().id > 'doc5' AS d FROM _ WHERE number IS VALUED",
  ]

  /// The columns of the rows of these queries. Those of the first one are in its order.
  private func spilled(from bytes: Int) throws -> [String] {
    var options = Query.Options(usesIndexes: false)
    options.spillsFrom = bytes
    var found: [String] = []
    for (number, text) in Self.spilled.enumerated() {
      let query = try database.query(text, options: options)
      var padding = 0
      let rows = try query.run().map { row -> String in
        let columns = (0..<row.count).map { column -> String in
          if number == 0, column == 2 {
            let count = row[2].string?.utf8.count ?? -1
            padding += count
            return "\(count)"
          }
          return row[column].string ?? row[column].int.map { "\($0)" } ?? "\(row[column].bool ?? false)"
        }
        return "\(number): \(columns.joined(separator: " "))"
      }
      // More than a block goes to a file.
      if padding > 10_000, try !query.explain(analyze: true).lines[0].contains("temporary files") {
        throw Mismatch("\(padding) bytes of the rows of \(text) were kept in memory")
      }
      found += number == 0 ? rows : rows.sorted()
    }
    return found
  }

  /// The condition of all statements, with the parameters of `range`.
  static let inRange = "WHERE number BETWEEN $from AND $through"
  static let deletion = "DELETE FROM _ \(inRange)"

  static func insertion(_ replaces: Bool) -> String {
    "\(replaces ? "UPSERT" : "INSERT") INTO _ (KEY, VALUE) VALUES ($id, {'number': $n, 'words': [], 'padding': ''})"
  }

  func range(_ from: Int, _ through: Int) -> [String: JSONValue] {
    ["from": .int(Int64(from)), "through": .int(Int64(through))]
  }

  /// Runs a statement, which tells what it has changed, and finds the revisions that it has made. Nobody else writes meanwhile.
  func statement(_ run: () throws -> [String]) throws -> Answer {
    // Documents with the same content have the same revisions.
    var before: [String: Set<String>] = [:]
    for change in try database.changes() {
      before[change.documentID] = Set(try leaves(change.documentID).map(\.revision))
    }
    let changed = try run()
    let sequences = try sequences()
    return .saved(
      try changed.map { id in
        let new = try leaves(id).first { before[id]?.contains($0.revision) != true }
        return Answer.Saved(id: id, revision: new?.revision ?? "", sequence: sequences[id] ?? 0)
      })
  }

  /// The sequence of each document's last change.
  func sequences() throws -> [String: UInt64] {
    try database.changes().reduce(into: [:]) { $0[$1.documentID] = $1.sequence }
  }

  private func view() throws -> View {
    let view = try database.view(Self.view)
    try view.setMap(version: "1") { document, emit in emit(document["number"], document["number"]) }
    view.setReduce(.stats)
    return view
  }

  /// Looks with the indexes that there are and without, and in an order that only an index has.
  private func found(_ from: Int, _ through: Int) throws -> [String] {
    let without = try found(from, through, "", [MangoIndex.allDocuments()]).map(\.id).sorted()
    let indexes = try database.mangoIndexes()
    guard indexes.count > 1 else { return without }
    let with = try found(from, through, "", indexes).map(\.id).sorted()
    let sorted = try found(from, through, #", "sort": ["number"]"#, indexes)
    guard with == without, sorted.map(\.id).sorted() == without,
      zip(sorted, sorted.dropFirst()).allSatisfy({ $0.number <= $1.number })
    else { throw Mismatch("found \(without), with an index \(with), sorted \(sorted)") }
    return without
  }

  private func found(
    _ from: Int, _ through: Int, _ options: String, _ indexes: [MangoIndex]
  ) throws -> [(id: String, number: Int)] {
    let selector = #"{"number": {"$gte": \#(from), "$lte": \#(through)}}"#
    let request = #"{"selector": \#(selector), "fields": ["_id", "number"], "limit": 1000\#(options)}"#
    let plan = try MangoPlan(MangoQuery(OrderedJSON(parsing: Array(request.utf8))), indexes)
    let reader = try database.mangoReader(plan)
    var found: [(id: String, number: Int)] = []
    repeat {
      try reader.read()
      let text = reader.text.withBytes { "[\(String(decoding: $0, as: UTF8.self))]" }
      for document in try JSONValue(json: text).array ?? [] {
        found.append((document["_id"].string ?? "", Int(document["number"].int ?? -1)))
      }
    } while !reader.isDone
    return found
  }

  private static func findDefinition() throws -> JSONValue {
    try JSONValue(
      json: """
        {"language": "query", "views": {"numbers": {"map": {"fields": {"number": "asc"}, "partial_filter_selector": {}},
        "reduce": "_count", "options": {"def": {"fields": ["number"]}}}}}
        """)
  }

  // MARK: Contents

  private func body(_ content: Content) throws -> DocumentBody {
    var body: JSONValue = [
      "number": .int(Int64(content.number)), "words": .array(content.words.map { .string($0) }),
      "padding": .string(String(repeating: "x", count: content.padding)),
    ]
    if let blob = content.blob { body["blob"] = try database.makeBlob(Array(blob.utf8)).jsonValue }
    return .value(body)
  }

  func content(_ value: JSONValue) throws -> Content {
    var blob: String?
    if let stored = value["blob"].blob {
      blob = String(decoding: try database.contents(of: stored), as: UTF8.self)
    }
    return Content(
      number: Int(value["number"].int ?? -1), words: (value["words"].array ?? []).compactMap(\.string),
      blob: blob, padding: value["padding"].string?.utf8.count ?? -1)
  }

  func current(_ document: Document) throws -> Answer.Current {
    Answer.Current(
      revision: "\(document.revisionID)", isDeleted: document.isDeleted,
      isConflicted: document.isConflicted,
      content: document.isDeleted ? nil : try content(document.value()))
  }

  func leaves(_ id: String) throws -> [Leaf] {
    try database.leaves(of: id, includeDeleted: true).map {
      Leaf(
        revision: "\($0.id)", isDeleted: $0.isDeleted,
        content: $0.isDeleted ? nil : try $0.body.map(content))
    }
  }
}

extension ChangeResults {
  fileprivate var ids: [String] { documents.map(\.id) }
}
