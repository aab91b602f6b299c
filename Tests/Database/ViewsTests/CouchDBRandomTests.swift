import TestSupport

@testable import Views

/// Random documents, changes of the design document and queries with CouchDB's options, each answer compared with one
/// that is worked out from plain arrays. The maps are JavaScript, and keys come through JSON both ways.
@Suite("Answers to CouchDB's options agree with naive ones") struct CouchDBRandomTests {
  static let rounds = isLong ? 40 : 1

  @Test("rows, groups, totals and refusals after random steps", arguments: someEngines, 0..<rounds)
  func randomSteps(_ engine: EngineName, _ round: Int) throws {
    let databases = TestDatabases()
    let seed = testSeed &+ UInt64(round)
    var run = try CouchDBRandomRun(databases.open(engine), seed: seed)
    for step in 0..<250 {
      do { try run.next() } catch {
        throw ConformanceFailure("TOUCHSTONE_SEED=\(seed), \(engine), step \(step), \(run.action): \(error)")
      }
    }
    expect(run.answers > 60 && run.refusals > 5, "\(run.answers) answers, \(run.refusals) refusals")
    try expect(run.database.check(), equals: [], "TOUCHSTONE_SEED=\(seed)")
  }
}

/// Steps on one database.
private struct CouchDBRandomRun {
  /// A row as it should be.
  private struct Row {
    var key: KeyValue
    var id: String
    var value: JSONValue
    var document: JSONObject
  }

  let database: Database
  private(set) var action = ""
  private(set) var answers = 0
  private(set) var refusals = 0
  private var random: SeededGenerator
  private var documents: [String: JSONObject] = [:]
  /// Which of two maps the design document has.
  private var isSwapped = false
  private var reduce = ""
  private let order: KeyComparison

  init(_ database: Database, seed: UInt64) throws {
    self.database = database
    random = SeededGenerator(seed: seed)
    order = try KeyComparison(.root)
    try define()
  }

  private static let reduces = [
    "", "_sum", "_count", "_stats",
    "function (k, v, r) { return r ? sum(v) : v.length; }",
    "function (k, v, r) { if (r ? k !== null : k.length !== v.length) throw 'keys'; return sum(v); }",
  ]

  private mutating func define() throws {
    reduce = random.pick(Self.reduces)
    isSwapped = random.once(in: 3)
    let map =
      isSwapped
      ? "function (doc) { emit([doc.k, doc.n], doc.n); }"
      : "function (doc) { emit(doc.k, doc.n); if (doc.twice) emit(doc.n, 1); }"
    var view: JSONObject = ["map": .string(map)]
    if !reduce.isEmpty { view["reduce"] = .string(reduce) }
    try database.save("_design/d", ["views": ["v": .object(view)]])
  }

  // MARK: Steps

  private static let strings = [
    "", "a", "A", "aa", "b", "^", "`", "é", "e\u{301}", "ß", "\u{0}", "\"\\", "😀", "中",
  ]

  private mutating func key(_ depth: Int = 0) -> JSONValue {
    switch random.below(depth < 2 ? 10 : 7) {
    case 0: .null
    case 1: .bool(random.once(in: 2))
    case 2, 3: .int(Int64(random.below(7)) - 3)
    case 4: .double(Double(random.below(9)) / 4 - 1.125)
    case 5, 6: .string(random.pick(Self.strings))
    case 7, 8: .array((0..<random.below(4)).map { _ in key(depth + 1) })
    default: .object(["m": key(depth + 1)])
    }
  }

  mutating func next() throws {
    switch random.below(12) {
    case 0..<6:
      let id = "doc\(random.below(60))"
      action = "save \(id)"
      var body: JSONObject = ["n": .int(Int64(random.below(100)) - 50), "k": key()]
      if random.once(in: 3) { body["twice"] = true }
      try database.save(id, .value(.object(body)))
      documents[id] = body
    case 6:
      let id = "doc\(random.below(60))"
      action = "delete \(id)"
      if documents.removeValue(forKey: id) != nil { try database.delete(id) }
    case 7:
      guard random.once(in: 3) else { break }
      action = "define"
      try define()
    case 8:
      let id = "doc\(random.below(60))"
      action = "purge \(id)"
      if documents.removeValue(forKey: id) != nil { try database.purge(id) }
    default: break
    }
    try query()
  }

  private func rows() -> [Row] {
    var rows: [Row] = []
    for (id, body) in documents {
      let (k, n) = (body["k"] ?? .null, body["n"] ?? .null)
      if isSwapped {
        rows.append(Row(key: KeyValue([k, n]), id: id, value: n, document: body))
      } else {
        rows.append(Row(key: KeyValue(k), id: id, value: n, document: body))
        if body["twice"] != nil {
          let row = Row(key: KeyValue(n), id: id, value: 1, document: body)
          rows.append(row)
        }
      }
    }
    return rows.enumerated().sorted { left, right in
      let compared = compare(left.element, right.element.key, right.element.id)
      return compared != 0 ? compared < 0 : left.offset < right.offset
    }.map(\.element)
  }

  /// Compares a row with a key, and a document's ID if there is one.
  private func compare(_ row: Row, _ key: KeyValue, _ id: String?) -> Int {
    let compared = order.compare(row.key, key)
    guard compared == 0, let id else { return compared }
    let (left, right) = (Array(row.id.utf8), Array(id.utf8))
    return left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
  }

  // MARK: Queries

  private mutating func query() throws {
    let all = rows()
    var options: [(name: String, value: String)] = []
    func bound() -> JSONValue {
      random.once(in: 3) ? key() : all.randomElement(using: &random)?.key.value ?? .null
    }
    var (start, end): (JSONValue?, JSONValue?)
    var (startID, endID): (String?, String?)
    var keys: [JSONValue]?
    var includesEnd = true
    if random.once(in: 6) {
      keys = (0..<random.below(4)).map { _ in bound() }
      options.append(("keys", try JSONValue.array(keys ?? []).canonicalJSON()))
    } else if random.once(in: 5) {
      start = bound()
      end = start
      options.append(("key", try (start ?? .null).canonicalJSON()))
    } else {
      if random.once(in: 2) { start = bound() }
      if random.once(in: 2) { end = bound() }
      if let start { options.append(("startkey", try start.canonicalJSON())) }
      if let end { options.append(("end_key", try end.canonicalJSON())) }
      if random.once(in: 3) { startID = "doc\(random.below(60))" }
      if random.once(in: 3) { endID = "doc\(random.below(60))" }
      if let startID { options.append(("startkey_docid", startID)) }
      if let endID { options.append(("endkey_docid", endID)) }
      if random.once(in: 4) {
        includesEnd = false
        options.append(("inclusive_end", "false"))
      }
    }
    let isDescending = random.once(in: 2)
    if isDescending { options.append(("descending", "true")) }
    let skip = random.once(in: 3) ? random.below(5) : 0
    if skip > 0 { options.append(("skip", "\(skip)")) }
    let limit = random.once(in: 3) ? random.below(6) : nil
    if let limit { options.append(("limit", "\(limit)")) }
    var reduces = !reduce.isEmpty
    if random.once(in: 3) {
      reduces = false
      options.append(("reduce", "false"))
    }
    var level = 0
    if reduces, random.once(in: 2) {
      level = random.pick([1, 2, .max])
      options.append(level == .max ? ("group", "true") : ("group_level", "\(level)"))
    }
    let hasDocuments = !reduces && random.once(in: 3)
    if hasDocuments { options.append(("include_docs", "true")) }
    action = "query \(options) of \(reduce)"

    // One key in `keys` is that key.
    if let only = keys, only.count == 1 {
      (start, end, keys) = (only[0], only[0], nil)
    }
    let isRefused = keys == nil ? isImpossible(start, end, isDescending) : reduces && level != .max
    let found: JSONValue
    do { found = try answer(options) } catch let error as CouchDBError {
      guard isRefused, error.status == 400, error.error == "query_parse_error" else { throw error }
      refusals += 1
      return
    }
    guard !isRefused else { throw ConformanceFailure("it isn't refused") }
    answers += 1

    // The chosen rows, in the order of the answer.
    var parts: [[Row]]
    var before = 0
    if let keys {
      parts = keys.map { key in all.filter { order.compare($0.key, KeyValue(key)) == 0 } }
      if isDescending {
        parts = parts.map { $0.reversed() }
        // The rows of the last key come first. Groups stay in the order of the keys.
        if !reduces { parts.reverse() }
      }
    } else {
      let ordered = isDescending ? all.reversed() : all
      func isBefore(_ row: Row) -> Bool {
        guard let start else { return false }
        let compared = compare(row, KeyValue(start), startID)
        return isDescending ? compared > 0 : compared < 0
      }
      func isBehind(_ row: Row) -> Bool {
        guard let end else { return false }
        let compared = compare(row, KeyValue(end), endID)
        return (isDescending ? compared < 0 : compared > 0) || (compared == 0 && !includesEnd)
      }
      before = ordered.count { isBefore($0) }
      parts = [ordered.filter { !isBefore($0) && !isBehind($0) }]
    }
    let window = { (lines: [JSONValue]) in
      JSONValue.array(Array(lines.dropFirst(skip).prefix(limit ?? .max)))
    }
    guard reduces else {
      let lines = parts.joined().map { row -> JSONValue in
        var line: JSONObject = ["id": .string(row.id), "key": row.key.value, "value": row.value]
        if hasDocuments {
          var document = row.document
          document["_id"] = .string(row.id)
          line["doc"] = .object(document)
        }
        return .object(line)
      }
      try expectSame(withoutRevisions(found["rows"]), window(lines))
      try expectSame(found["total_rows"], .int(Int64(all.count)))
      if keys == nil, parts[0].count > 0 {
        try expectSame(found["offset"], .int(Int64(min(before + skip, all.count))))
      }
      return
    }
    var groups: [(key: KeyValue, rows: [Row])] = []
    for part in parts {
      var isFirst = true
      for row in part {
        let key: KeyValue = level == 0 ? .null : level == .max ? row.key : row.key.group(level)
        if !isFirst, let last = groups.last, order.compare(last.key, key) == 0 {
          groups[groups.count - 1].rows.append(row)
        } else {
          groups.append((key, [row]))
        }
        isFirst = false
      }
    }
    let lines = groups.map { group -> JSONValue in
      ["key": group.key.value, "value": reduced(group.rows.map { $0.value.double ?? 0 })]
    }
    guard case .array(let wanted) = window(lines), case .array(let rows) = found["rows"] else {
      throw ConformanceFailure("there are no rows")
    }
    try expectSame(.array(rows.map { $0["key"] }), .array(wanted.map { $0["key"] }))
    for (row, line) in zip(rows, wanted) where !isSameResult(row["value"], line["value"]) {
      throw ConformanceFailure("\(row), not \(line)")
    }
  }

  private func isImpossible(_ start: JSONValue?, _ end: JSONValue?, _ isDescending: Bool) -> Bool {
    guard let start, let end else { return false }
    let compared = order.compare(KeyValue(start), KeyValue(end))
    return isDescending ? compared < 0 : compared > 0
  }

  private func reduced(_ numbers: [Double]) -> JSONValue {
    let sum = numbers.reduce(0, +)
    switch reduce {
    case "_count", Self.reduces[4]: return .double(Double(numbers.count))
    case "_stats":
      return [
        "sum": .double(sum), "count": .double(Double(numbers.count)), "min": .double(numbers.min() ?? 0),
        "max": .double(numbers.max() ?? 0), "sumsqr": .double(numbers.reduce(0) { $0 + $1 * $1 }),
      ]
    default: return .double(sum)
    }
  }

  private func withoutRevisions(_ rows: JSONValue) -> JSONValue {
    guard case .array(let rows) = rows else { return rows }
    return .array(
      rows.map { row in
        guard var line = row.object, var document = line["doc"]?.object else { return row }
        document["_rev"] = nil
        line["doc"] = .object(document)
        return .object(line)
      })
  }

  /// Compares JSON; equal keys may be written in several ways, so they are compared as keys.
  private func expectSame(_ found: JSONValue, _ wanted: JSONValue) throws {
    let (left, right) = (KeyValue(found), KeyValue(wanted))
    guard order.compare(left, right) == 0 else {
      throw ConformanceFailure(
        "\(String("\(try found.canonicalJSON())".prefix(600))), not \(String("\(try wanted.canonicalJSON())".prefix(600)))"
      )
    }
  }

  private func answer(_ options: [(name: String, value: String)]) throws -> JSONValue {
    let output = Lock<[UInt8]>([])
    try database.couchDBView("d", "v").answer(CouchDBViewOptions(query: options)) { piece in
      output.withLock { $0 += piece }
    }
    return try output.withLock { bytes in try bytes.withUnsafeBytes { try JSONValue(json: $0) } }
  }
}
