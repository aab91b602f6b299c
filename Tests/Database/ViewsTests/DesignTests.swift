import Scripts
import TestSupport

@testable import Views

/// Views of design documents, whose functions are JavaScript.
@Suite("Views of design documents") struct DesignTests {
  private let databases = TestDatabases()

  private func save(_ database: Database, map: String, reduce: String? = nil) throws {
    var view: JSONObject = ["map": .string(map)]
    if let reduce { view["reduce"] = .string(reduce) }
    try database.save("_design/d", ["language": "javascript", "views": ["v": .object(view)]])
  }

  private func lines(_ view: View, _ change: (inout ViewQuery) -> Void = { $0.mapOnly = true }) throws
    -> [String]
  {
    var query = view.query()
    change(&query)
    return try query.run().map { "\($0.keyJSON) \($0.valueJSON) \($0.documentID ?? "-")" }
  }

  @Test("saved, changed, deleted and replicated", arguments: someEngines)
  func lifeCycle(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for number in 1...3 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    let view = try database.view("d/v")
    try expect(!view.hasMap)
    #expect(throws: ViewError.self) { try view.query().run() }
    try save(database, map: "function (doc) { emit(doc.n, doc._id) }")
    try expect(view.hasMap && database.viewNames == ["d/v"])
    try expect(lines(view), equals: [#"1 "d1" d1"#, #"2 "d2" d2"#, #"3 "d3" d3"#])
    try database.save("d1", ["n": 9])
    try database.delete("d2")
    try expect(view.updateIndex().documents, equals: 2)
    try expect(lines(view), equals: [#"3 "d3" d3"#, #"9 "d1" d1"#])
    // Another reducer doesn't map again; another map does.
    try save(database, map: "function (doc) { emit(doc.n, doc._id) }", reduce: "_count")
    try expect(view.updateIndex().documents, equals: 0)
    try expect(lines(view) { _ in }, equals: ["null 2 -"])
    try save(database, map: "doc => { if (doc.n) emit([doc._id], -doc.n) }", reduce: "_sum")
    try expect(lines(view), equals: [#"["d1"] -9 d1"#, #"["d3"] -3 d3"#])
    try expect(lines(view) { _ in }, equals: ["null -12 -"])
    // One that comes from elsewhere and wins.
    let definition: JSONValue = [
      "views": ["v": ["map": "function (doc) { emit(null, 1) }", "reduce": "_stats"]]
    ]
    try database.apply(
      PulledRevision(id: "_design/d", history: ["9-aa", "8-aa"], body: .value(definition)))
    try expect(lines(view), equals: ["null 1 d1", "null 1 d3"])
    try expect(lines(view) { $0.groupsByKey = true }.first?.contains(#""sum":2"#) ?? false)
    // Another view beside it.
    try database.apply(
      PulledRevision(
        id: "_design/d", history: ["10-aa", "9-aa"],
        body: .value([
          "views": [
            "v": ["map": "function (doc) { emit(null, 1) }"], "w": ["map": "function (doc) { emit(1) }"],
          ]
        ])))
    try expect(database.viewNames, equals: ["d/v", "d/w"])
    try expect(database.view("d/w").query().run().count, equals: 2)
    // Deleted, which brings back the branch that was saved here; and then this one.
    try database.delete("_design/d")
    try expect(lines(view), equals: [#"["d1"] -9 d1"#, #"["d3"] -3 d3"#])
    try expect(database.viewNames.contains("d/v"))
    try database.delete("_design/d")
    try expect(!view.hasMap)
    #expect(throws: ViewError.self) { try view.query().run() }
    try save(database, map: "function (doc) { emit(doc.n, null) }")
    try expect(lines(view), equals: ["3 null d3", "9 null d1"])
    try expect(database.check(), equals: [])
  }

  @Test("what a map in JavaScript sees: conflicts, whole documents, options", arguments: someEngines)
  func input(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try database.view("d/v")
    try save(
      database,
      map: "function (doc) { emit([doc._rev, doc._conflicts, doc._deleted_conflicts, doc._local_seq], doc) }")
    try database.apply(PulledRevision(id: "a", history: ["1-aa"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "a", history: ["1-bb"], body: ["n": 2]))
    try database.apply(PulledRevision(id: "a", history: ["1-cc"], isDeleted: true))
    let row = try #require(try view.query().run().first)
    expect(row.key, equals: ["1-bb", ["1-aa"], ["1-cc"], .null])
    // What the function saw, as in CouchDB.
    let seen: JSONValue = [
      "_id": "a", "_rev": "1-bb", "n": 2, "_conflicts": ["1-aa"], "_deleted_conflicts": ["1-cc"],
    ]
    expect(row.value, equals: seen)
    try database.save(
      "_design/d",
      [
        "options": ["local_seq": true, "include_design": true],
        "views": [
          "v": [
            "map": "function (doc) { emit(doc._local_seq); emit('B'); emit('a'); emit(null) }",
            "options": ["collation": "raw"],
          ]
        ],
      ])
    let keys = try view.query().run().map(\.keyJSON)
    expect(keys.suffix(6), equals: ["null", "null", #""B""#, #""B""#, #""a""#, #""a""#])
    expect(keys.count, equals: 8)
  }

  @Test("a map that throws leaves its document without rows, and names it", arguments: someEngines)
  func exceptions(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for number in 1...3 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    try save(database, map: "function (doc) { emit(doc.n, 1); if (doc.n == 2) throw new Error('two'); }")
    let view = try database.view("d/v")
    try expect(lines(view), equals: ["1 1 d1", "3 1 d3"])
    let faults = view.lastUpdate.faults
    expect(faults.map(\.documentID) == ["d2"] && faults.first?.message.contains("two") ?? false, "\(faults)")
    try database.save("d2", ["n": 4])
    try database.save("d3", ["n": 2])
    try expect(lines(view), equals: ["1 1 d1", "4 1 d2"])
    try expect(database.check(), equals: [])
  }

  @Test("a design document that doesn't compile is refused, and its rows stay")
  func compilation() throws {
    for engine in someEngines {
      let database = try databases.open(engine)
      try database.save("a", ["n": 1])
      let view = try database.view("d/v")
      try save(database, map: "function (doc) { emit(doc.n, 1) }")
      try expect(lines(view), equals: ["1 1 a"])
      try save(database, map: "function (doc) { emit(")
      do {
        _ = try lines(view)
        Issue.record("it doesn't compile")
      } catch let error as ViewError {
        expect(error.code == .invalidDesign && error.documentID == "_design/d", "\(error)")
      }
      try save(database, map: "function (doc) { emit(doc.n, 1) }")
      try expect(view.updateIndex().documents, equals: 0)
      try expect(lines(view), equals: ["1 1 a"])
      try database.save("_design/d", ["language": "cobol", "views": ["v": ["map": "x"]]])
      #expect(throws: ViewError.self) { try lines(view) }
    }
  }

  @Test(
    "an endless loop is stopped, names its document, and leaves the view as it was", arguments: someEngines)
  func endlessLoop(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    // Views with less time than an open database gives them.
    let process = ScriptProcess(limits: ScriptLimits(callSeconds: 0.3))
    let own = try database.view("d/v").indexes
    let indexes = ViewIndexes(own.store, workers: own.workers, languages: [JavaScript(process: process)])
    let view = try View("d/v", indexes)
    for number in 1...3 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    try save(database, map: "function (doc) { emit(doc.n, 1); while (doc.n == 5); }", reduce: "_count")
    try expect(lines(view), equals: ["1 1 d1", "2 1 d2", "3 1 d3"])
    try database.save("d1", ["n": 4])
    try database.save("d2", ["n": 5])
    for _ in 0..<2 {
      do {
        try view.updateIndex()
        Issue.record("the loop ended")
      } catch let error as ViewError {
        expect(error.code == .scriptFailed && error.documentID == "d2", "\(error)")
      }
    }
    var query = view.query()
    query.updateMode = .never
    query.mapOnly = true
    try expect(query.run().map(\.keyJSON), equals: ["1", "2", "3"])
    query.mapOnly = false
    try expect(query.run().map(\.valueJSON), equals: ["3"])
    try database.save("d2", ["n": 6])
    try expect(lines(view), equals: ["3 1 d3", "4 1 d1", "6 1 d2"])
    try expect(database.check(), equals: [])
  }

  @Test("a reduction in JavaScript is equal to the same one in Swift", arguments: someEngines)
  func reductions(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    let database = try databases.open(engine)
    // Rereduces the sums of blocks of rows.
    try save(
      database, map: "function (doc) { if ('n' in doc) emit([doc.g, doc.n], doc.n) }",
      reduce: """
        function (keys, values, rereduce) {
          if (rereduce ? keys !== null : keys.length !== values.length) throw new Error('keys');
          return sum(values);
        }
        """)
    let script = try database.view("d/v")
    let swift = try database.view("swift")
    try swift.setMap(version: "1") { document, emit in
      let properties = try document.properties()
      guard let number = properties["n"] else { return }
      let key = JSONValue.array([properties["g"] ?? .null, number])
      emit(key, number)
    }
    swift.setReduce(.sum)
    try database.saveBatch(0..<1_500) { number in
      ("d\(number)", ["g": .int(Int64(number % 7)), "n": .int(Int64(random.below(1_000)))])
    }
    for step in 0..<12 {
      var query = (script.query(), swift.query())
      func set<Value>(_ path: WritableKeyPath<ViewQuery, Value>, _ value: Value) {
        query.0[keyPath: path] = value
        query.1[keyPath: path] = value
      }
      if step > 0 {
        set(\.groupLevel, random.below(3))
        if random.once(in: 2) {
          set(\.startKey, [.int(Int64(random.below(7))), .int(Int64(random.below(1_000)))])
        }
        if random.once(in: 2) {
          set(\.endKey, [.int(Int64(random.below(7))), .int(Int64(random.below(1_000)))])
        }
        set(\.isDescending, random.once(in: 2))
      }
      let results = (try query.0.run(), try query.1.run())
      expect(
        results.0.map(\.keyJSON), equals: results.1.map(\.keyJSON),
        "TOUCHSTONE_SEED=\(testSeed), step \(step)")
      expect(
        results.0.map(\.value.double), equals: results.1.map(\.value.double),
        "TOUCHSTONE_SEED=\(testSeed), step \(step)")
      expect(step > 0 || results.0.count == 1)
      for _ in 0..<20 {
        let id = "d\(random.below(1_600))"
        if random.once(in: 4) {
          if try database.document(id) != nil { try database.delete(id) }
        } else {
          try database.save(id, ["g": .int(Int64(random.below(7))), "n": .int(Int64(random.below(1_000)))])
        }
      }
    }
  }

  @Test("a reduction that throws fails queries, not updates", arguments: someEngines)
  func failingReduction(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<400) { ("d\($0)", ["n": .int(Int64($0))]) }
    try save(
      database, map: "function (doc) { emit(doc.n, 1) }",
      reduce: "function (keys, values) { throw new Error('never'); }")
    let view = try database.view("d/v")
    try expect(lines(view).count, equals: 400)
    #expect {
      try view.query().run()
    } throws: { ($0 as? ViewError)?.code == .reduceFailed && "\($0)".contains("never") }
    try database.save("d1", ["n": 1_000])
    try expect(lines(view).last, equals: "1000 1 d1")
  }

  @Test("the program of scripts is killed at random moments, and rows are right whenever an update succeeds")
  func killedProgram() throws {
    let database = try databases.open(.lmdb)
    let process = ScriptProcess()
    let own = try database.view("d/v").indexes
    let indexes = ViewIndexes(own.store, workers: own.workers, languages: [JavaScript(process: process)])
    let view = try View("d/v", indexes)
    try save(
      database, map: "function (doc) { if (doc.n !== undefined) emit(doc.n, doc.n); }",
      reduce: "function (keys, values, rereduce) { return sum(values); }")
    let isDone = Lock(false)
    let kills = Lock(0)
    // How often an update was tried. The killer becomes more patient with it: on a busy machine the program takes long to begin.
    let attempts = Lock(0)
    try onThreads(2) { thread in
      var random = SeededGenerator(seed: testSeed &+ UInt64(thread))
      if thread == 1 {
        while !isDone.withLock({ $0 }) {
          usleep(UInt32(random.below(60_000 * (1 + attempts.withLock { $0 }))))
          guard let program = process.processID, kill(program, SIGKILL) == 0 else { continue }
          kills.withLock { $0 += 1 }
        }
        return
      }
      defer { isDone.withLock { $0 = true } }
      var numbers: [Int: Int] = [:]
      var round = 0
      // Most kills come while nothing runs, so it takes some.
      while round < 30 || kills.withLock({ $0 }) < 20 {
        round += 1
        try database.inBatch {
          for _ in 0..<100 {
            let (id, number) = (random.below(1_000), random.below(5_000))
            numbers[id] = number
            try database.save("d\(id)", ["n": .int(Int64(number))])
          }
        }
        for attempt in 0... {
          attempts.withLock { $0 = attempt }
          do {
            let keys = try lines(view).map { Int($0.prefix { $0 != " " }) }
            expect(keys, equals: numbers.values.sorted(), "round \(round), TOUCHSTONE_SEED=\(testSeed)")
            let total = try lines(view) { _ in }
            expect(total, equals: ["null \(numbers.values.reduce(0, +)) -"], "round \(round)")
            break
          } catch let error as ViewError where error.code == .scriptFailed {
            // It was killed twice in a document or a reduction. The view is as it was.
            try #require(attempt < 50, "\(error)")
          }
        }
      }
    }
    try expect(database.check(), equals: [])
  }
}
