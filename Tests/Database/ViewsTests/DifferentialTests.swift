import TestSupport

@testable import Views

/// Random changes, updates and queries on each engine, each answer compared with that of a naive view.
@Suite("Views agree with naive ones") struct DifferentialTests {
  static let rounds = isLong ? 200 : 1
  static let steps = isShort ? 200 : 500

  @Test("rows and reductions after random steps", arguments: someEngines, 0..<rounds)
  func randomSteps(_ engine: EngineName, _ round: Int) throws {
    try DifferentialRun.run(engine, seed: testSeed &+ UInt64(round), steps: Self.steps)
  }
}

/// Steps on one database, and the naive views beside it.
struct DifferentialRun {
  private struct Undo: Error {}

  private let options: DatabaseOptions
  private let directory: String
  private var random: SeededGenerator
  private var database: Database
  private var documents: [String: NaiveDocument] = [:]
  private var views: [NaiveView] = []
  private var ids: [String]
  private var memoryLimit = GroupUpdate.defaultMemoryLimit
  private var orders: [ViewCollation: KeyComparison] = [:]
  private var step = 0
  private var action = ""
  /// What the last steps did.
  private var recent: [String] = []

  static func run(
    _ engine: EngineName, seed: UInt64, steps: Int
  ) throws {
    try withTemporaryDirectory { directory in
      var random = SeededGenerator(seed: seed)
      var options = try TestSupport.options(engine)
      options.keepsReplacedBodies = random.once(in: 2)
      options.revisionsPerBlock = random.pick([1, 2, 32])
      var run = try DifferentialRun(options, directory, random)
      do {
        for _ in 0..<steps { try run.next() }
        try run.compareAll()
        let faults = try run.database.check()
        try run.require(faults == [], "the check finds \(faults)")
        try run.database.close()
      } catch {
        try? run.database.close()
        throw ConformanceFailure(
          "TOUCHSTONE_SEED=\(seed), \(engine), step \(run.step), \(run.action): \(error)")
      }
    }
  }

  private init(_ options: DatabaseOptions, _ directory: String, _ random: SeededGenerator) throws {
    self.options = options
    self.directory = directory
    self.random = random
    database = try Database.open("test", in: directory, options: options)
    // Many documents have reductions of several blocks.
    ids = Self.fewIDs
    if self.random.once(in: 6) { ids += (0..<150).map { "many\($0)" } }
    for collation in [ViewCollation.unicode, .root, .ascii, .raw] {
      orders[collation] = try KeyComparison(collation)
    }
    for view in TestView.all {
      views.append(NaiveView(view: view, version: 1))
      try view.set(in: database, version: 1)
    }
    for id in ids where id.hasPrefix("many") {
      try database.save(id, body())
      try refresh(id)
    }
  }

  private func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    guard condition else { throw ConformanceFailure(message()) }
  }

  // MARK: Steps

  private static let fewIDs: [String] =
    (0..<18).map { "doc\($0)" } + [
      "a", "aa", "a!", "é", "😀", "_design/x", "z" + String(repeating: "y", count: 239),
      "z" + String(repeating: "y", count: 238) + "x", "z" + String(repeating: "y", count: 200),
    ]

  private mutating func next() throws {
    if step > 0 { recent.append("\(step) \(action)") }
    if recent.count > 200 { recent.removeFirst(100) }
    step += 1
    switch random.below(40) {
    case 0..<27: try change()
    case 27..<30:
      let before = documents
      let indexed = views.map(\.indexed)
      let undoes = random.once(in: 2)
      do {
        try database.inBatch {
          for _ in 0..<(1 + random.below(5)) {
            try change()
            if random.once(in: 2) { try query() }
            if random.once(in: 12) { try deleteIndex() }
          }
          if undoes { throw Undo() }
        }
      } catch is Undo {
        documents = before
        for index in views.indices { views[index].indexed = indexed[index] }
      }
    case 30:
      action = "compact"
      try database.compact()
    case 31:
      let id = random.pick(ids)
      action = "expire \(id)"
      if documents[id] != nil {
        try database.setExpiration(of: id, at: Date(timeIntervalSince1970: 1_000))
        _ = try database.purgeExpired()
        try refresh(id)
        try require(documents[id] == nil, "\(id) isn't expired")
      }
    case 32:
      guard random.once(in: 2) else { break }
      action = "reopen"
      try database.close()
      database = try Database.open("test", in: directory, options: options)
      for index in views.indices {
        if random.once(in: 8) { views[index].version = 1 + random.below(3) }
        try define(index)
      }
      try setMemoryLimit()
    case 33, 34:
      let index = random.below(views.count)
      views[index].version = 1 + random.below(3)
      let isNew = random.once(in: 4)
      action = "\(isNew ? "delete" : "redefine") \(views[index].view.name)"
      if isNew {
        try database.view(views[index].view.name).delete()
        views[index].indexed = nil
      }
      try define(index)
    case 35: try deleteIndex()
    case 36, 37:
      let index = random.below(views.count)
      views[index].reduce = pickReduce(index)
      action = "reduce \(views[index].view.name) by \(views[index].reduce)"
      try define(index)
    case 38:
      memoryLimit = random.pick([1, 300, 3_000, GroupUpdate.defaultMemoryLimit])
      try setMemoryLimit()
    default: try update(random.below(views.count))
    }
    if random.once(in: 2) { try query() }
    if step % 100 == 0 { try compareAll() }
  }

  private func setMemoryLimit() throws {
    try database.view("many").indexes.memoryLimit.withLock { $0 = memoryLimit }
  }

  /// Sets the functions of a view.
  private mutating func define(_ index: Int) throws {
    // A reducer of numbers has only numbers to reduce.
    if !hasNumbers(index), !TestReduce.ofAnyValues.contains(views[index].reduce) {
      views[index].reduce = .count
    }
    let view = try views[index].view.set(in: database, version: views[index].version)
    view.setReduce(views[index].reduce.reduce)
  }

  private func hasNumbers(_ index: Int) -> Bool {
    switch views[index].view.name {
    case "g/keys": views[index].version % 2 == 1
    case "g/parts", "many": true
    default: false
    }
  }

  private mutating func pickReduce(_ index: Int) -> TestReduce {
    random.pick(hasNumbers(index) ? TestReduce.allCases : TestReduce.ofAnyValues)
  }

  private mutating func deleteIndex() throws {
    let index = random.below(views.count)
    action = "delete the index of \(views[index].view.name)"
    try database.view(views[index].view.name).deleteIndex()
    views[index].indexed = nil
  }

  private mutating func change() throws {
    let id = random.pick(ids)
    let document = documents[id]
    let live = document?.leaves.filter { !$0.isDeleted } ?? []
    switch random.below(20) {
    case 0..<9:
      action = "save \(id.prefix(20))"
      try database.save(id, body())
    case 9, 10:
      action = "delete \(id.prefix(20))"
      if !live.isEmpty { try database.delete(id) }
    case 11..<16:
      // On top of a leaf, or a branch of its own.
      let base = random.once(in: 3) ? nil : document?.leaves.randomElement(using: &random)
      let generation = base.map { Int($0.id.description.prefix { $0 != "-" }) ?? 0 } ?? random.below(4)
      let history =
        ["\(generation + 1)-\(random.pick(["aa", "ff", "00", "7b"]))"]
        + (base.map { [$0.id.description] } ?? [])
      action = "apply \(id.prefix(20)) \(history)"
      try database.apply(
        PulledRevision(
          id: id, history: history, isDeleted: random.once(in: 4), body: .value(.object(object()))))
    case 16:
      action = "resolve \(id.prefix(20))"
      if live.count > 1, let kept = live.randomElement(using: &random) {
        let merged: DocumentBody? = random.once(in: 2) ? body() : nil
        try database.resolveConflict(of: id, keeping: kept.id, merged: merged)
      }
    case 17:
      action = "purge \(id.prefix(20))"
      if document != nil { try database.purge(id) }
    case 18:
      action = "purge a branch of \(id.prefix(20))"
      if let leaf = document?.leaves.randomElement(using: &random) { try database.purge(id, branch: leaf.id) }
    default:
      action = "purge and save \(id.prefix(20))"
      if document != nil { try database.purge(id) }
      try database.save(id, body())
    }
    try refresh(id)
  }

  private mutating func refresh(_ id: String) throws {
    let leaves = try database.leaves(of: id, includeDeleted: true)
    documents[id] = leaves.isEmpty ? nil : NaiveDocument(id: id, leaves: leaves)
  }

  private mutating func body() -> DocumentBody { .value(.object(object())) }

  private mutating func object() -> JSONObject {
    var object = JSONObject()
    object["n"] =
      random.once(in: 4) ? .double(Double(random.below(40)) - 19.5) : .int(Int64(random.below(40) - 20))
    if !random.once(in: 8) { object["k"] = key() }
    if !random.once(in: 4) { object["type"] = .string("t\(random.below(3))") }
    if !random.once(in: 3) {
      object["tags"] = .array(
        (0..<random.below(4)).map { _ in random.pick(["x", "y", 1, .null] as [JSONValue]) })
    }
    if random.once(in: 30) { object["long"] = .string(String(repeating: "l", count: 3_000)) }
    return object
  }

  private static let strings = [
    "", "a", "A", "b", "aa", "aB", "Ab", "_", "-", "~", "e\u{301}", "é", "f", "ß", "ss", "中", "😀", " ", "a b",
    "\u{FFFD}",
  ]

  private mutating func key(_ depth: Int = 0) -> JSONValue {
    switch random.below(depth < 2 ? 12 : 8) {
    case 0: .null
    case 1: .bool(random.once(in: 2))
    case 2: .int(Int64(random.below(5) - 2))
    case 3: .double(Double(random.below(9)) / 4 - 1.125)
    case 4: .int(Int64(bitPattern: random.next()) >> Int64(random.below(64)))
    case 5, 6: .string(random.pick(Self.strings))
    case 7:
      .string(
        random.pick(Self.strings)
          + String(repeating: random.pick(["q", "é"]), count: random.once(in: 10) ? 700 : 1))
    case 8, 9, 10: .array((0..<random.below(4)).map { _ in key(depth + 1) })
    default:
      .object(JSONObject((0..<random.below(3)).map { (["a", "b", "c"][$0], key(depth + 1)) }))
    }
  }

  // MARK: Comparing

  private func rows(_ index: Int) throws -> [NaiveRow] {
    guard let order = orders[views[index].view.collation] else { throw ConformanceFailure("no order") }
    return views[index].rows(documents.values, order)
  }

  /// Notes that a view and its group are updated.
  private mutating func noteUpdate(_ index: Int) throws {
    func group(_ name: String) -> Substring? {
      name.contains("/") ? name.prefix { $0 != "/" } : nil
    }
    let own = group(views[index].view.name)
    for other in views.indices {
      guard other == index || (own != nil && group(views[other].view.name) == own) else { continue }
      views[other].indexed = try rows(other)
    }
  }

  private mutating func update(_ index: Int) throws {
    action = "update \(views[index].view.name)"
    let view = try database.view(views[index].view.name)
    let update = try view.updateIndex()
    try require(update.faultCount == 0, "\(update)")
    try noteUpdate(index)
    let again = try view.updateIndex()
    try require(again == ViewUpdate(), "updated twice: \(again)")
    try require(try view.totalRows == views[index].indexed?.count, "total rows")
    try require(try !view.isStale, "it is stale after an update")
  }

  private mutating func query() throws {
    let index = random.below(views.count)
    // A view without an index is indexed in every mode (LiveViewTests).
    let isNever = random.once(in: 5) && views[index].indexed != nil
    if !isNever { try noteUpdate(index) }
    guard let rows = views[index].indexed else { return }
    let query = makeQuery(rows, index, isNever: isNever)
    recent.append("  query \(views[index].view.name)\(isNever ? " never" : "")")
    try compare(query, index, rows)
  }

  private mutating func compareAll() throws {
    for index in views.indices {
      try noteUpdate(index)
      guard let rows = views[index].indexed else { continue }
      var query = NaiveQuery()
      query.mapOnly = true
      try compare(query, index, rows)
      query.mapOnly = false
      try compare(query, index, rows)
      query.groupsByKey = true
      try compare(query, index, rows)
    }
  }

  private mutating func makeQuery(_ rows: [NaiveRow], _ index: Int, isNever: Bool) -> NaiveQuery {
    var query = NaiveQuery()
    query.isNever = isNever
    func bound() -> JSONValue {
      guard let row = rows.randomElement(using: &random), !random.once(in: 4) else { return key() }
      guard case .array(let items) = row.key, random.once(in: 2) else {
        if case .string(let text) = row.key, random.once(in: 3) {
          return .string(String(text.prefix(1 + random.below(3))))
        }
        return row.key
      }
      return .array(Array(items.prefix(random.below(items.count + 1))))
    }
    if random.once(in: 2) { query.startKey = bound() }
    if random.once(in: 2) { query.endKey = bound() }
    if random.once(in: 6) { query.endKey = query.startKey }
    if random.once(in: 3) { query.startID = random.pick(ids) }
    if random.once(in: 3) { query.endID = random.pick(ids) }
    query.includesStart = !random.once(in: 4)
    query.includesEnd = !random.once(in: 4)
    if random.once(in: 3) { query.prefixMatchLevel = 1 + random.below(2) }
    if random.once(in: 6) { query.keys = (0..<random.below(4)).map { _ in bound() } }
    query.isDescending = random.once(in: 2)
    if random.once(in: 3) { query.skip = random.below(6) }
    if random.once(in: 3) { query.limit = random.below(8) }
    query.mapOnly = random.once(in: 3)
    if random.once(in: 4) { query.groupLevel = 1 + random.below(3) }
    if random.once(in: 8) { query.groupsByKey = true }
    query.isFiltered = random.once(in: 6)
    if random.once(in: 6) {
      query.sort = (0..<(1 + random.below(2))).map { _ in
        ViewSort(random.pick(["key", "key[1]", "documentID", "value.n"]), ascending: random.once(in: 2))
      }
    }
    return query
  }

  private func compare(_ query: NaiveQuery, _ index: Int, _ rows: [NaiveRow]) throws {
    guard let order = orders[views[index].view.collation] else { return }
    let name = views[index].view.name
    let reduce = views[index].reduce
    let isReduced = query.groupLevel > 0 || query.groupsByKey || (reduce != .none && !query.mapOnly)
    // Documents that were mapped may not be stored any more, and the rows may be those of another map function.
    if query.isNever, rows.contains(where: \.isDocument),
      isReduced || query.sort.contains(where: { $0.path == "value.n" })
    {
      return
    }
    if query.isNever, isReduced, !TestReduce.ofAnyValues.contains(reduce),
      rows.contains(where: { $0.json.double == nil })
    {
      return
    }
    let expected = query.answer(rows, reduce, order)
    let results = try query.query(database.view(name)).run()
    func fail(_ message: String) throws -> Never {
      throw ConformanceFailure("\(name) version \(views[index].version) by \(reduce), \(query): \(message)")
    }
    if results.totalRows != rows.count {
      var all = try database.view(name).query()
      (all.mapOnly, all.updateMode) = (true, .never)
      let stored = try all.run().map { "\($0.sourceDocumentID ?? "-") \($0.sequence)" }
      let wanted = rows.map { "\($0.id) \($0.sequence)" }
      try fail(
        "\(results.totalRows) total rows, not \(rows.count): missing \(Set(wanted).subtracting(stored)), superfluous \(Set(stored).subtracting(wanted)); recent: \(recent.suffix(60))"
      )
    }
    for (place, (row, wanted)) in zip(results, expected).enumerated() {
      let isSame: Bool
      if wanted.isReduced {
        isSame =
          row.isReduced && order.compare(KeyValue(row.key), KeyValue(wanted.key)) == 0
          && isSameResult(row.value, wanted.value) && row.documentID == nil && row.sequence == 0
      } else {
        let isSameValue =
          query.isNever && wanted.isDocument || isSameResult(row.value, wanted.value)
        let (key, wantedKey) = (try row.key.canonicalJSON(), try wanted.key.canonicalJSON())
        isSame =
          !row.isReduced && key == wantedKey && row.sourceDocumentID == wanted.id && isSameValue
          && row.sequence == wanted.sequence
      }
      if !isSame {
        try fail(
          "row \(place) of \(results.count) is \(row.keyJSON.prefix(100)) \(row.valueJSON.prefix(200)) \(row.sourceDocumentID ?? "-") \(row.sequence), not \(String("\(wanted)".prefix(400)))"
        )
      }
    }
    if results.count != expected.count { try fail("\(results.count) rows, not \(expected.count)") }
  }
}
