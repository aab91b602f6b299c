import Fleece
import Touchstone

// The same operations by HTTP, with the requests that a client of CouchDB makes. Their answers are the same.

extension DatabaseOperation {
  /// Whether it can be done by requests.
  var canGoOverHTTP: Bool {
    switch self {
    case .save(_, let content), .saveOnTop(_, _, let content): content.blob == nil
    // An attachment needs its bytes.
    case .apply(_, _, _, let content): content.blob == nil
    case .saveAll(let contents): contents.values.allSatisfy { $0.blob == nil }
    case .delete, .purge, .saveLocal, .updateWhere, .deleteWhere, .tryDeleteWhere, .insert, .document,
      .leaves, .local,
      .all, .changes, .query, .total, .find, .match, .createIndex:
      true
    default: false
    }
  }
}

extension SimulatedDatabase {
  /// Does an operation by requests to a server over the database in this process.
  func overHTTP(_ operation: DatabaseOperation) throws -> Answer {
    let door = try door.withLock { known in
      let door = try known ?? HTTPDoor(database)
      known = door
      return door
    }
    do { return try result(operation, door) } catch let refusal as HTTPDoor.Refusal {
      return .refused(code: refusal.code, message: refusal.text)
    }
  }

  private func result(_ operation: DatabaseOperation, _ door: HTTPDoor) throws -> Answer {
    switch operation {
    case .save(let id, let content):
      return try saved(id, door.ask("PUT", "/\(id)", body(content, on: liveRevision(id, door))))
    case .saveOnTop(let id, let revision, let content):
      return try saved(id, door.ask("PUT", "/\(id)", body(content, on: revision)))
    case .saveAll(let contents):
      let documents = try contents.sorted { $0.key < $1.key }.map { id, content in
        var document = body(content, on: try liveRevision(id, door))
        document["_id"] = .string(id)
        return document
      }
      let answers = try door.ask("POST", "/_bulk_docs", ["docs": .array(documents)])
      return .saved(
        try (answers.array ?? []).map { try saved($0["id"].string ?? "", $0, sequences()) })
    case .delete(let id):
      let revision = try liveRevision(id, door).map { "?rev=\($0)" } ?? ""
      return try saved(id, door.ask("DELETE", "/\(id)\(revision)"))
    case .purge(let id):
      let leaves = try leaves(id, door)
      // The request purges leaf after leaf, and each that leaves others is a change with a sequence.
      if leaves.count > 1 { return try result(operation) }
      try door.ask("POST", "/_purge", [id: .array(leaves.map { .string($0.revision) })])
      return leaves.isEmpty ? .refused(code: "notFound", message: "") : .done
    case .apply(let id, let history, let isDeleted, let content):
      let before = try leaves(id, door)
      var revision = isDeleted ? JSONValue.object([:]) : body(content, on: nil)
      revision["_id"] = .string(id)
      revision["_rev"] = .string(history[0])
      revision["_deleted"] = .bool(isDeleted)
      revision["_revisions"] = [
        "start": .int(Int64(Model.generation(history[0]))),
        "ids": .array(history.map { .string(String($0.drop { $0 != "-" }.dropFirst())) }),
      ]
      let refused = try door.ask("POST", "/_bulk_docs", ["docs": [revision], "new_edits": false])
      guard refused.array?.isEmpty ?? false else { return .refused(code: "forbidden", message: "\(refused)") }
      return .count(before.contains { $0.revision == history[0] } ? 0 : 1)
    case .saveLocal(let id, let number):
      var local: JSONValue = ["number": .int(Int64(number))]
      if let known = try door.find("/_local/\(id)") { local["_rev"] = known["_rev"] }
      try door.ask("PUT", "/_local/\(id)", local)
      return .done
    case .createIndex:
      let answer = try query("CREATE INDEX \(Self.valueIndex) IF NOT EXISTS ON _ (number)", [:], door)
      return .count(answer["indexes"][0]["change"] == "created" ? 1 : 0)
    case .updateWhere(let from, let through, let adding):
      var parameters = range(from, through)
      parameters["adding"] = .int(Int64(adding))
      return try statement {
        try changed("UPDATE _ SET number = number + $adding \(Self.inRange)", parameters, door)
      }
    case .deleteWhere(let from, let through):
      return try statement { try changed(Self.deletion, range(from, through), door) }
    case .tryDeleteWhere(let from, let through):
      return .names(try changed(Self.deletion, range(from, through), door, isDryRun: true).sorted())
    case .insert(let id, let replaces, let number):
      return try statement {
        try changed(Self.insertion(replaces), ["id": .string(id), "n": .int(Int64(number))], door)
      }
    case .document(let id):
      guard let current = try listed(id, door) else { return .document(nil) }
      if current.isDeleted {
        return .document(
          Answer.Current(revision: current.revision, isDeleted: true, isConflicted: false, content: nil))
      }
      return .document(try self.current(door.ask("GET", "/\(id)?conflicts=true")))
    case .leaves(let id):
      let leaves = try leaves(id, door)
      let current = try listed(id, door)?.revision
      return .leaves(leaves.filter { $0.revision == current } + leaves.filter { $0.revision != current })
    case .local(let id): return .local(try door.find("/_local/\(id)")?["number"].int.map { Int($0) })
    case .all:
      let changes = try door.ask("GET", "/_changes?include_docs=true&conflicts=true")
      return .documents(
        try (changes["results"].array ?? []).reduce(into: [:]) { all, change in
          all[change["id"].string ?? ""] = try current(change["doc"])
        })
    case .changes:
      let changes = try door.ask("GET", "/_changes")
      return .names((changes["results"].array ?? []).compactMap { $0["id"].string })
    case .query(let from, let through):
      return .names(try ids("SELECT META().id FROM _ \(Self.inRange)", range(from, through), door))
    case .match(let word):
      return .names(try ids("SELECT META().id FROM _ WHERE MATCH(\(Self.textIndex), '\(word)')", [:], door))
    case .total:
      let row = try query("SELECT COUNT(number) AS c, SUM(number) AS s FROM _", [:], door)["rows"][0]
      return .numbers([Int(row["c"].int ?? 0), Int(row["s"].int ?? 0)])
    case .find(let from, let through):
      let found = try door.ask(
        "POST", "/_find",
        [
          "selector": ["number": ["$gte": .int(Int64(from)), "$lte": .int(Int64(through))]],
          "fields": ["_id"], "limit": 1_000,
        ])
      return .names((found["docs"].array ?? []).compactMap { $0["_id"].string }.sorted())
    default: throw Mismatch("\(operation) can't be done over HTTP")
    }
  }

  // MARK: Parts of them

  /// The members of a document, without a blob.
  private func body(_ content: Content, on revision: String?) -> JSONValue {
    var body: JSONValue = [
      "number": .int(Int64(content.number)), "words": .array(content.words.map { .string($0) }),
      "padding": .string(String(repeating: "x", count: content.padding)),
    ]
    if let revision { body["_rev"] = .string(revision) }
    return body
  }

  /// The revision to save on top of; nil without a document, and with a tombstone.
  private func liveRevision(_ id: String, _ door: HTTPDoor) throws -> String? {
    try door.find("/\(id)")?["_rev"].string
  }

  /// The current revision in the list of all documents, which tells tombstones too.
  private func listed(_ id: String, _ door: HTTPDoor) throws -> (revision: String, isDeleted: Bool)? {
    let row = try door.ask("POST", "/_all_docs", ["keys": [.string(id)]])["rows"][0]["value"]
    return row["rev"].string.map { ($0, row["deleted"].bool ?? false) }
  }

  private func leaves(_ id: String, _ door: HTTPDoor) throws -> [Leaf] {
    try (door.find("/\(id)?open_revs=all")?.array ?? []).compactMap { entry in
      let document = entry["ok"]
      guard let revision = document["_rev"].string else { return nil }
      let isDeleted = document["_deleted"].bool ?? false
      return Leaf(
        revision: revision, isDeleted: isDeleted, content: isDeleted ? nil : try content(document))
    }
  }

  private func current(_ document: JSONValue) throws -> Answer.Current {
    let isDeleted = document["_deleted"].bool ?? false
    return Answer.Current(
      revision: document["_rev"].string ?? "", isDeleted: isDeleted,
      isConflicted: !(document["_conflicts"].array ?? []).isEmpty,
      content: isDeleted ? nil : try content(document))
  }

  private func saved(_ id: String, _ answer: JSONValue) throws -> Answer {
    .saved([try saved(id, answer, sequences())])
  }

  private func saved(
    _ id: String, _ answer: JSONValue, _ sequences: [String: UInt64]
  ) throws -> Answer.Saved {
    guard let revision = answer["rev"].string else {
      throw HTTPDoor.Refusal(status: answer["error"] == "conflict" ? 409 : 500, text: "\(answer)")
    }
    return Answer.Saved(id: id, revision: revision, sequence: sequences[id] ?? 0)
  }

  private func query(
    _ text: String, _ parameters: [String: JSONValue], _ door: HTTPDoor, isDryRun: Bool = false
  ) throws -> JSONValue {
    try door.ask(
      "POST", "/_query",
      ["query": .string(text), "parameters": .object(JSONObject(parameters)), "dry_run": .bool(isDryRun)])
  }

  private func ids(
    _ text: String, _ parameters: [String: JSONValue], _ door: HTTPDoor
  ) throws -> [String] {
    try (query(text, parameters, door)["rows"].array ?? []).compactMap { $0["id"].string }.sorted()
  }

  private func changed(
    _ text: String, _ parameters: [String: JSONValue], _ door: HTTPDoor, isDryRun: Bool = false
  ) throws -> [String] {
    let answer = try query(text, parameters, door, isDryRun: isDryRun)
    return (answer["documents"].array ?? []).compactMap { $0["id"].string }
  }
}
