import TestSupport

@testable import Views

/// What queries of views of Couchbase Lite 1.x give.
@Suite("Views of 1.x: queries") struct SpecQueryTests {
  private let databases = TestDatabases()

  /// A database with a document per key, `d0` and so on, and a view that emits the keys with the documents' numbers.
  private func view(
    _ engine: EngineName, _ keys: [JSONValue], _ collation: ViewCollation = .unicode
  ) throws -> View {
    let database = try databases.open(engine)
    for (index, key) in keys.enumerated() {
      try database.save("d\(index)", ["key": key, "n": .int(Int64(index))])
    }
    let view = try database.view("keys")
    try view.setMap(version: "1", collation: collation) { document, emit in
      emit(document["key"], document["n"])
    }
    return view
  }

  private func keys(_ view: View, _ change: (inout ViewQuery) -> Void = { _ in }) throws -> [String] {
    var query = view.query()
    change(&query)
    return try query.run().map(\.keyJSON)
  }

  // MARK: Ranges

  @Test("compound keys with a prefix match", arguments: someEngines)
  func compoundKeys(_ engine: EngineName) throws {
    let view = try view(engine, [["one", 3], ["two", 1], ["one", 1], ["one", 2], ["on", 1], ["one"]])
    let ones = [#"["one"]"#, #"["one",1]"#, #"["one",2]"#, #"["one",3]"#]
    try expect(
      keys(view) {
        ($0.startKey, $0.endKey, $0.prefixMatchLevel) = (["one"], ["one"], 1)
      }, equals: ones)
    try expect(keys(view) { ($0.startKey, $0.endKey) = (["one"], ["one", [:]]) }, equals: ones)
    try expect(
      keys(view) {
        ($0.startKey, $0.endKey, $0.prefixMatchLevel, $0.isDescending) = (["one"], ["one"], 1, true)
      }, equals: ones.reversed())
    try expect(
      keys(view) {
        ($0.startKey, $0.endKey, $0.prefixMatchLevel) = (["on"], ["on"], 2)
      }, equals: [#"["on",1]"#] + ones)
  }

  @Test(
    "the effective end of a prefix match",
    arguments: [
      ("foo", 1, ["foo", "foolish"]), (["a"], 1, [["a"], ["a", "x"], ["a", "xtc"], ["a", "y"]]),
      (["a", "x"], 2, [["a", "x"], ["a", "xtc"]]), ([["a", "x"]], 3, [[["a", "x"]], [["a", "xtc"]]]),
      (5, 1, [5]), ([], 2, [[]]), ("foo", 0, ["foo"]), (true, 3, [true]),
    ] as [(JSONValue, Int, [JSONValue])])
  func prefixMatch(_ key: JSONValue, _ level: Int, _ found: [JSONValue]) throws {
    let all: [JSONValue] = [
      true, 5, 5.5, "fo", "foo", "foolish", "fong", [], ["a"], ["a", "x"], ["a", "xtc"], ["a", "y"], ["b"],
      [["a", "x"]], [["a", "xtc"]], [["a", "y"]], [:],
    ]
    for engine in someEngines {
      let view = try view(engine, all)
      var query = view.query()
      (query.startKey, query.endKey, query.prefixMatchLevel) = (key, key, level)
      try expect(query.run().map(\.key), equals: found, "\(engine)")
      query.isDescending = true
      try expect(query.run().map(\.key), equals: found.reversed(), "\(engine)")
    }
  }

  @Test("document IDs divide the rows of a bound", arguments: someEngines)
  func documentIDs(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for (id, key) in [("a", 1), ("b", 1), ("c", 1), ("a2", 2)] {
      try database.save(id, ["key": .int(Int64(key))])
    }
    let view = try database.view("k")
    try view.setMap(version: "1") { document, emit in emit(document["key"]) }
    func ids(_ change: (inout ViewQuery) -> Void) throws -> [String] {
      var query = view.query()
      change(&query)
      return try query.run().compactMap(\.documentID)
    }
    try expect(ids { ($0.startKey, $0.startKeyDocumentID) = (1, "b") }, equals: ["b", "c", "a2"])
    try expect(ids { ($0.endKey, $0.endKeyDocumentID) = (1, "b") }, equals: ["a", "b"])
    try expect(
      ids { ($0.isDescending, $0.startKey, $0.startKeyDocumentID) = (true, 1, "b") }, equals: ["b", "a"])
    try expect(
      ids { ($0.isDescending, $0.endKey, $0.endKeyDocumentID) = (true, 1, "b") }, equals: ["a2", "c", "b"])
    // Without the key, and where the bound isn't included, they don't count.
    try expect(ids { $0.startKeyDocumentID = "b" }, equals: ["a", "b", "c", "a2"])
    try expect(
      ids { ($0.startKey, $0.startKeyDocumentID, $0.includesStart) = (1, "b", false) }, equals: ["a2"])
    try expect(ids { ($0.endKey, $0.endKeyDocumentID, $0.includesEnd) = (1, "b", false) }, equals: [])
    // IDs between those that there are.
    try expect(ids { ($0.startKey, $0.startKeyDocumentID) = (1, "aa") }, equals: ["b", "c", "a2"])
    try expect(ids { ($0.endKey, $0.endKeyDocumentID) = (1, "aa") }, equals: ["a"])
  }

  @Test("null is a bound, and a range with its ends reversed is empty", arguments: someEngines)
  func bounds(_ engine: EngineName) throws {
    let view = try view(engine, [.null, false, 1, "a"])
    try expect(keys(view) { $0.endKey = .null }, equals: ["null"])
    try expect(keys(view) { $0.startKey = .null }.count, equals: 4)
    try expect(keys(view) { ($0.startKey, $0.includesStart) = (.null, false) }.count, equals: 3)
    try expect(keys(view) { ($0.startKey, $0.endKey) = ("a", .null) }, equals: [])
    try expect(keys(view) { ($0.startKey, $0.endKey, $0.isDescending) = (.null, "a", true) }, equals: [])
    try expect(
      keys(view) { ($0.startKey, $0.endKey, $0.includesStart, $0.includesEnd) = (1, 1, false, false) },
      equals: [])
    try expect(keys(view) { ($0.startKey, $0.endKey, $0.includesStart) = (1, 1, false) }, equals: [])
  }

  @Test("skip and limit; a limit of 0 is none", arguments: someEngines)
  func skipAndLimit(_ engine: EngineName) throws {
    let view = try view(engine, (0..<5).map { .int($0) })
    try expect(keys(view) { $0.limit = 0 }.count, equals: 5)
    try expect(keys(view) { $0.limit = 2 }, equals: ["0", "1"])
    try expect(keys(view) { ($0.skip, $0.limit) = (2, 2) }, equals: ["2", "3"])
    try expect(keys(view) { ($0.skip, $0.isDescending) = (3, true) }, equals: ["1", "0"])
    try expect(keys(view) { $0.skip = 5 }, equals: [])
    try expect(keys(view) { ($0.skip, $0.limit) = (-1, -1) }.count, equals: 5)
  }

  @Test("keys: their order, repeated ones, no bounds", arguments: someEngines)
  func listedKeys(_ engine: EngineName) throws {
    let view = try view(engine, ["a", "b", "b", "c"])
    try expect(keys(view) { $0.keys = ["c", "b", "x", "c"] }, equals: [#""c""#, #""b""#, #""b""#, #""c""#])
    try expect(keys(view) { $0.keys = [] }, equals: [])
    try expect(keys(view) { ($0.keys, $0.startKey, $0.endKey) = (["a"], "b", "b") }, equals: [#""a""#])
    try expect(
      keys(view) { ($0.keys, $0.limit, $0.skip) = (["c", "a", "b"], 2, 1) }, equals: [#""a""#, #""b""#])
    var query = view.query()
    query.keys = ["c", "b"]
    query.isDescending = true
    try expect(query.run().compactMap(\.documentID), equals: ["d3", "d2", "d1"])
  }

  @Test("filters and sorting come before skip and limit", arguments: someEngines)
  func filterAndSort(_ engine: EngineName) throws {
    let view = try view(engine, (0..<6).map { [.int($0 % 2), .int(5 - $0)] })
    func values(_ change: (inout ViewQuery) -> Void) throws -> [Int64] {
      var query = view.query()
      change(&query)
      return try query.run().compactMap(\.value.int)
    }
    try expect(values { _ in }, equals: [4, 2, 0, 5, 3, 1])
    try expect(values { $0.sort = [ViewSort("value")] }, equals: [0, 1, 2, 3, 4, 5])
    try expect(values { ($0.sort, $0.skip, $0.limit) = ([ViewSort("value")], 1, 2) }, equals: [1, 2])
    try expect(
      values {
        $0.sort = [ViewSort("key[0]", ascending: false), ViewSort("value")]
      }, equals: [1, 3, 5, 0, 2, 4])
    try expect(values { ($0.filter, $0.limit) = ({ $0.value.int ?? 0 > 1 }, 3) }, equals: [4, 2, 5])
    try expect(values { ($0.filter, $0.skip) = ({ $0.value.int ?? 0 > 1 }, 3) }, equals: [3])
    #expect(throws: ViewError.self) { try values { $0.sort = [ViewSort("nothing")] } }
  }

  // MARK: Reductions

  private static let songs: [(JSONValue, Int64)] = [
    (["Gang Of Four", "Entertainment!", "Ether"], 231),
    (["Gang Of Four", "Entertainment!", "Natural's Not In It"], 187),
    (["Gang Of Four", "Entertainment!", "Not Great Men"], 187),
    (["Gang Of Four", "Songs Of The Free", "I Love A Man In Uniform"], 248),
    (["PiL", "Metal Box", "Memories"], 309),
  ]

  @Test("groups of the worked example", arguments: someEngines)
  func songs(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for (index, song) in Self.songs.enumerated() {
      try database.save("song\(index)", ["key": song.0, "seconds": .int(song.1)])
    }
    let view = try database.view("songs")
    try view.setMap(version: "1") { document, emit in emit(document["key"], document["seconds"]) }
    view.setReduce(.sum)
    func groups(_ change: (inout ViewQuery) -> Void) throws -> [String] {
      var query = view.query()
      change(&query)
      return try query.run().map { row in
        expect(row.documentID == nil && row.sourceDocumentID == nil && row.sequence == 0)
        expect(row.documentRevisionID == nil)
        return "\(row.keyJSON) \(row.valueJSON)"
      }
    }
    try expect(groups { _ in }, equals: ["null 1162"])
    let artists = [#"["Gang Of Four"] 853"#, #"["PiL"] 309"#]
    try expect(groups { $0.groupLevel = 1 }, equals: artists)
    try expect(groups { ($0.groupLevel, $0.isDescending) = (1, true) }, equals: artists.reversed())
    try expect(groups { ($0.groupLevel, $0.startKey) = (1, ["PiL"]) }, equals: [artists[1]])
    try expect(groups { ($0.groupLevel, $0.limit) = (1, 1) }, equals: [artists[0]])
    try expect(groups { ($0.groupLevel, $0.skip) = (1, 1) }, equals: [artists[1]])
    try expect(
      groups { $0.groupLevel = 2 },
      equals: [
        #"["Gang Of Four","Entertainment!"] 605"#, #"["Gang Of Four","Songs Of The Free"] 248"#,
        #"["PiL","Metal Box"] 309"#,
      ])
    let whole = try Self.songs.map { "\(try $0.0.canonicalJSON()) \($0.1)" }
    try expect(groups { $0.groupLevel = 3 }, equals: whole)
    try expect(groups { $0.groupLevel = 9 }, equals: whole)
    try expect(groups { $0.groupsByKey = true }, equals: whole)
    try expect(groups { ($0.groupLevel, $0.filter) = (1, { $0.value.int ?? 0 > 500 }) }, equals: [artists[0]])
    // No rows: no row.
    try expect(groups { $0.startKey = ["Q"] }, equals: [])
    try expect(groups { $0.keys = [] }, equals: [])
    var query = view.query()
    query.mapOnly = true
    try expect(query.run().count, equals: 5)
  }

  @Test(
    "keys that are no arrays are grouped whole; groups without a reducer have no value",
    arguments: someEngines
  )
  func scalarGroups(_ engine: EngineName) throws {
    let view = try view(engine, ["A", "A", "J", "J", "N"])
    func groups(_ level: Int) throws -> [String] {
      var query = view.query()
      query.groupLevel = level
      return try query.run().map { "\($0.keyJSON) \($0.valueJSON)" }
    }
    try expect(groups(1), equals: [#""A" null"#, #""J" null"#, #""N" null"#])
    view.setReduce(.count)
    try expect(groups(1), equals: [#""A" 2"#, #""J" 2"#, #""N" 1"#])
    try expect(groups(2), equals: [#""A" 2"#, #""J" 2"#, #""N" 1"#])
  }

  @Test("built-in reducers", arguments: someEngines)
  func builtIn(_ engine: EngineName) throws {
    let view = try view(engine, ["a", "b", "c", "d", "e"])
    let expected: [(ViewReduce, JSONValue)] = [
      (.count, 5), (.sum, 10), (.min, 0), (.max, 4), (.average, 2), (.median, 2),
      (.standardDeviation, .double((2.5).squareRoot())),
      (.stats, ["count": 5, "sum": 10, "sumsqr": 30, "min": 0, "max": 4]),
    ]
    for (reduce, result) in expected {
      view.setReduce(reduce)
      let row = try #require(try view.query().run().first)
      expect(row.key.isNull && isSameResult(row.value, result), "\(row.valueJSON)")
    }
    view.setReduce(.median)
    var query = view.query()
    query.endKey = "d"
    try expect(query.run().first?.value.double, equals: 1.5)
    view.setReduce(.standardDeviation)
    query.endKey = "a"
    try expect(query.run().first?.value, equals: .null)
  }

  @Test("a value that isn't a number names its document, and updates go on", arguments: someEngines)
  func wrongValues(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<300) { ("d\($0)", ["n": .int(Int64($0))]) }
    let view = try database.view("sums")
    try view.setMap(version: "1") { document, emit in emit(document["n"], document["value"]) }
    view.setReduce(.sum)
    // All values are missing; the first row's document is named.
    #expect {
      try view.query().run()
    } throws: { ($0 as? ViewError)?.code == .reduceFailed && ($0 as? ViewError)?.documentID == "d0" }
    var query = view.query()
    query.mapOnly = true
    try expect(query.run().count, equals: 300)
    for number in 0..<300 where number != 123 {
      try database.save("d\(number)", ["n": .int(Int64(number)), "value": 1])
    }
    do {
      _ = try view.query().run()
      Issue.record("a value of d123 isn't a number")
    } catch let error as ViewError {
      expect(error.code == .reduceFailed && error.documentID == "d123" && error.view == "sums", "\(error)")
    }
    try database.save("d123", ["n": 123, "value": "2.5"])
    try expect(view.query().run().first?.value.double, equals: 301.5)
  }

  // MARK: Rows and results

  @Test("rows: items of keys, redirection, revisions, documents", arguments: someEngines)
  func rows(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let other = try database.save("other", ["name": "other"])
    let saved = try database.save("d", ["n": 1])
    let view = try database.view("rows")
    try view.setMap(version: "1") { document, emit in
      guard document.id == "d" else { return }
      emit(["a", 2] as JSONValue?, ["_id": "other"] as JSONValue?)
      emit("b" as JSONValue?, ["_id": "none", "_rev": "1-aa"] as JSONValue?)
      emit("c" as JSONValue?, ["rev": "2-bb"] as JSONValue?)
      emit("d" as JSONValue?, document)
      emit("e" as JSONValue?, "text" as JSONValue?)
    }
    // Arrays come last.
    let rows = try view.query().run()
    expect(rows.map(\.sourceDocumentID), equals: Array(repeating: "d", count: 5))
    expect(rows.map(\.documentID), equals: ["none", "d", "d", "d", "other"])
    expect(
      rows.map { $0.documentRevisionID?.description },
      equals: [
        "1-aa", "2-bb", saved.revisionID.description, nil, nil,
      ])
    expect(rows.map(\.sequence), equals: Array(repeating: saved.sequence, count: 5))
    expect(rows[4].key(at: 0) == "a" && rows[4].key(at: 1) == 2 && rows[4].key(at: 2) == .null)
    expect(rows[0].key(at: 0) == "b" && rows[0].key(at: 1) == .null)
    try expect(rows[0].document() == nil)
    try expect(rows[4].document()?.revisionID, equals: other.revisionID)
    // Documents are as they are now; prefetched ones as they were.
    var query = view.query()
    query.prefetches = true
    let prefetched = try query.run()
    expect(prefetched[4].documentRevisionID, equals: other.revisionID)
    let later = try database.save("other", ["name": "later"])
    try expect(rows[4].document()?.revisionID, equals: later.revisionID)
    try expect(prefetched[4].document()?.revisionID, equals: other.revisionID)
    try expect(view.query().run(), equals: rows)
    // What was queried stays.
    try database.purge("d")
    expect(rows[2].value["n"] == 1 && rows.count == 5)
    try expect(view.query().run() != rows)
  }

  @Test("rows with the document are equal by its sequence, others by their values", arguments: someEngines)
  func equality(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("d", ["n": 1])
    let view = try database.view("whole")
    try view.setMap(version: "1") { document, emit in emit(document["n"], document) }
    let other = try database.view("part")
    try other.setMap(version: "1") { document, emit in emit(document["n"], document["n"]) }
    let before = (try view.query().run(), try other.query().run())
    try expect(view.query().run(), equals: before.0)
    try database.save("d", ["n": 1, "more": 2])
    try expect(view.query().run() != before.0)
    try expect(other.query().run(), equals: before.1)
  }

  @Test("conflicting revisions of a row", arguments: someEngines)
  func conflicts(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for key in ["a", "b"] { try database.save(key, ["key": .string(key)]) }
    let view = try database.view("keys")
    try view.setMap(version: "1") { document, emit in emit(document["key"]) }
    try database.apply(PulledRevision(id: "a", history: ["1-00"], body: ["key": "a"]))
    let rows = try view.query().run()
    let current = try #require(try database.document("a"))
    try expect(
      Set(rows[0].conflictingRevisions().map(\.id.description)),
      equals: [
        current.revisionID.description, "1-00",
      ])
    try expect(rows[0].conflictingRevisions().first?.id, equals: current.revisionID)
    try expect(rows[1].conflictingRevisions().isEmpty)
  }

  @Test("more rows than the memory takes are refused", arguments: someEngines)
  func memory(_ engine: EngineName) throws {
    let view = try view(engine, (0..<100).map { .int($0) })
    var query = view.query()
    query.memoryLimit = 2_000
    #expect(throws: ViewError.self) { try query.run() }
    query.limit = 5
    try expect(query.run().count, equals: 5)
  }
}
