import Documents
import Scripts
import Storage
import TestSupport

@testable import Views

/// What design documents may take of the host, and what others have of it.
@Suite("Limits of design documents", .serialized) struct DesignLimitTests {
  private let databases = TestDatabases()

  /// Views whose scripts have other limits than an open database gives them.
  private func indexes(_ database: Database, _ limits: ScriptLimits = ScriptLimits()) throws -> ViewIndexes {
    let own = try database.view("v").indexes
    let process = ScriptProcess(limits: limits)
    return ViewIndexes(own.store, workers: own.workers, languages: [JavaScript(process: process)])
  }

  private func save(
    _ database: Database, of name: String = "d", _ maps: [String: String], reduce: String? = nil
  ) throws {
    var views = JSONObject()
    for (view, map) in maps {
      var definition: JSONObject = ["map": .string(map)]
      if let reduce { definition["reduce"] = .string(reduce) }
      views[view] = .object(definition)
    }
    try database.save("_design/" + name, ["views": .object(views)])
  }

  private func keys(_ view: View) throws -> [String] {
    var query = view.query()
    query.mapOnly = true
    return try query.run().map(\.keyJSON)
  }

  @Test("mapping stops within a batch when its rows take too much memory")
  func memoryOfBatch() throws {
    let database = try databases.open(.lmdb)
    try database.saveBatch(0..<60) { ("d\(100 + $0)", ["n": .int(Int64($0))]) }
    try save(database, ["v": "function (doc) { emit(doc.n, 'x'.repeat(1 << 20)) }"])
    let indexes = try indexes(database)
    let group = try indexes.group(of: "d/v")
    let encoders = try group.members.map { try ViewKeyEncoder($0.collation) }
    let mapper = try group.mapper(encoders) { _ in }
    let rows = MappedRows()
    try database.read { snapshot in
      mapper.begin(rows, try snapshot.sharedKeys, wanted: [0], limit: 1 << 20)
      try snapshot.forEachDocument(in: .prefix(Array("d".utf8)), order: .ascending) { document in
        try mapper.map(document)
        return !mapper.isFull
      }
      try mapper.finish()
    }
    expect(rows.usedBytes < 12 << 20)
    expect((1..<20).contains(mapper.mappedCount))
    expect(rows.documents.count, equals: mapper.mappedCount)
    expect(mapper.lastBeforeLimit, equals: Array("d\(99 + mapper.mappedCount)".utf8))
  }

  @Test("views are whole although their rows don't fit the memory", arguments: someEngines)
  func memoryOfUpdate(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<120) { ("d\(1000 + $0)", ["n": .int(Int64($0))]) }
    try save(
      database, ["v": "function (doc) { for (var i = 0; i < 4; i++) emit([doc.n, i], 'x'.repeat(50000)) }"],
      reduce: "_count")
    let view = try database.view("d/v")
    view.indexes.memoryLimit.withLock { $0 = 1 << 20 }
    let expected = (0..<120).flatMap { n in (0..<4).map { "[\(n),\($0)]" } }
    try expect(keys(view), equals: expected)
    expect(view.lastUpdate.documents, equals: 120)
    // All change, some vanish, and one was purged and lives again.
    try database.inBatch {
      for number in 0..<120 where number != 7 {
        try database.save("d\(1000 + number)", ["n": .int(Int64(number + 500))])
      }
      for number in 10..<20 { try database.delete("d\(1000 + number)") }
      try database.purge("d1007")
      try database.save("d1007", ["n": 507])
    }
    let later = (0..<120).filter { !(10..<20).contains($0) }.flatMap { n in
      (0..<4).map { "[\(n + 500),\($0)]" }
    }
    try expect(keys(view), equals: later)
    try expect(view.query().run().map(\.valueJSON), equals: ["\(later.count)"])
    try expect(database.check(), equals: [])
  }

  @Test("a reduce function that doesn't end is an error of scripts, and so for CouchDB's clients")
  func stoppedReduce() throws {
    let database = try databases.open(.lmdb)
    try database.save("a", ["n": 1])
    try save(database, ["v": "function (doc) { emit(1, 1) }"], reduce: "function (k, v) { while (true); }")
    let indexes = try indexes(database, ScriptLimits(callSeconds: 0.2))
    let view = try View("d/v", indexes)
    #expect {
      try view.query().run()
    } throws: { ($0 as? ViewError)?.code == .scriptFailed && "\($0)".contains("reduce") }
    let couch = try CouchDBView("d", "v", in: indexes)
    #expect {
      try couch.answer(CouchDBViewOptions()) { _ in }
    } throws: {
      let error = $0 as? CouchDBError
      return error?.status == 500 && error?.error == "os_process_error"
        && error?.reason.contains("took too long") ?? false
    }
    // A map names its document.
    try save(database, ["v": "function (doc) { while (true); }"])
    #expect {
      try CouchDBView("d", "v", in: indexes).answer(CouchDBViewOptions()) { _ in }
    } throws: { ($0 as? CouchDBError)?.reason.contains("document 'a'") ?? false }
  }

  @Test(
    "a query of a view whose design document is deleted or changed meanwhile ends", arguments: someEngines)
  func changedMeanwhile(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<600) { ("d\($0)", ["n": .int(Int64($0))]) }
    let indexes = try indexes(database)
    let slow = "function (doc) { var end = Date.now() + 50; while (Date.now() < end); emit(doc.n, 1) }"
    for isDeleted in [true, false] {
      try save(database, ["v": slow, "w": "function (doc) { emit(1) }"])
      let couch = try CouchDBView("d", "v", in: indexes)
      let output = Lock((text: "", error: nil as (any Error)?))
      try onThreads(2) { thread in
        if thread == 0 {
          do {
            try couch.answer(CouchDBViewOptions(body: Array(#"{"limit":1}"#.utf8))) { bytes in
              output.withLock { $0.text += String(decoding: bytes, as: UTF8.self) }
            }
          } catch { output.withLock { $0.error = error } }
        } else if isDeleted {
          try database.delete("_design/d")
        } else {
          try save(database, ["v": "function (doc) { emit(doc.n, 'new') }"])
        }
      }
      let (text, error) = output.withLock { $0 }
      if isDeleted {
        expect((error as? CouchDBError)?.status, equals: 404, "\(String(describing: error)) \(text)")
      } else {
        expect(error == nil && text.contains("\"new\""), "\(String(describing: error)) \(text)")
      }
    }
    // Nobody waits any more.
    try save(database, ["v": slow])
    var couch = try CouchDBView("d", "v", in: indexes)
    couch.isWanted = { false }
    #expect {
      try couch.answer(CouchDBViewOptions()) { _ in }
    } throws: { ($0 as? StorageError)?.code == .closed }
  }

  @Test("rows of views that are gone are dropped when others are built", arguments: someEngines)
  func vanished(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    func stored() throws -> [String] {
      try database.read { snapshot in
        var names: [String] = []
        try ViewRecord.forEach(in: snapshot.storage) { name, _ in names.append(name) }
        return names
      }
    }
    func keyspaces() throws -> Int { try database.read { try $0.storage.keyspaces().count } }
    let map = "function (doc) { emit(doc.n, 1) }"
    let own = try database.view("d/own")
    try own.setMap(version: "1") { document, emit in emit(document["n"]) }
    _ = try own.query().run()
    var most = 0
    for generation in 0..<5 {
      try save(database, ["x\(generation)": map, "y\(generation)": map], reduce: "_count")
      try expect(keys(database.view("d/x\(generation)")), equals: ["1"])
      try expect(stored(), equals: ["d/own", "d/x\(generation)", "d/y\(generation)"])
      if generation == 0 { most = try keyspaces() }
      try expect(keyspaces(), equals: most)
    }
    // A view that went alone.
    try save(database, ["x4": map], reduce: "_count")
    try expect(keys(database.view("d/x4")), equals: ["1"])
    try expect(stored(), equals: ["d/own", "d/x4"])
    try database.delete("_design/d")
    try save(database, of: "other", ["v": map])
    try expect(keys(database.view("other/v")), equals: ["1"])
    try expect(stored(), equals: ["d/own", "other/v"])
    try expect(database.check(), equals: [])
  }

  @Test(
    "more views than fit are a typed error, and leave room for what else a database stores",
    arguments: someEngines)
  func tooMany(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    let map = "function (doc) { emit(doc.n, 1) }"
    func maps(_ count: Int) -> [String: String] {
      Dictionary(uniqueKeysWithValues: (0..<count).map { ("v\($0)", map) })
    }
    try save(database, of: "full", maps(ViewIndexes.maximumViews))
    try expect(keys(database.view("full/v7")), equals: ["1"])
    try save(database, of: "more", maps(30))
    let couch = try CouchDBView("more", "v1", in: try database.view("v").indexes)
    #expect {
      try couch.answer(CouchDBViewOptions()) { _ in }
    } throws: { ($0 as? CouchDBError)?.status == 507 }
    #expect { try keys(database.view("more/v1")) } throws: { ($0 as? ViewError)?.code == .tooManyViews }
    let count = try database.read { try $0.storage.keyspaces().count }
    expect(count <= StorageLimits.maximumKeyspaces - ViewRecord.reservedKeyspaces)
    try database.createIndex("byN", on: ["n"])
    try expect(keys(database.view("full/v8")), equals: ["1"])
    // The rows of the other design document make room when it is gone.
    try database.delete("_design/full")
    try expect(keys(database.view("more/v1")), equals: ["1"])
    try expect(database.check(), equals: [])
    #expect {
      try couchCheck(database, maps(ViewIndexes.maximumViews + 1))
    } throws: { ($0 as? CouchDBError)?.error == "invalid_design_doc" }
  }

  private func couchCheck(_ database: Database, _ maps: [String: String]) throws {
    let views = maps.mapValues { JSONValue.object(["map": .string($0)]) }
    var object = JSONObject()
    for (name, view) in views { object[name] = view }
    try database.view("v").indexes.checkDesign("d", ["views": .object(object)])
  }

  @Test(
    "names with slashes, percent signs and control characters are those of one view", arguments: someEngines)
  func names(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    let indexes = try database.view("v").indexes
    let designs = ["x", "x/y", "x%2Fy", "50%", "%"]
    let views = ["v", "y/v", "%09", "new\nline"]
    for design in designs {
      var maps: [String: String] = [:]
      for view in views {
        maps[view] = "function (doc) { emit(\(design.jsonText + "+" + view.jsonText), 1) }"
      }
      try save(database, of: design, maps)
    }
    for design in designs {
      for view in views {
        let output = Lock("")
        try CouchDBView(design, view, in: indexes).answer(CouchDBViewOptions()) { bytes in
          output.withLock { $0 += String(decoding: bytes, as: UTF8.self) }
        }
        let key = (design + view).jsonText
        expect(
          output.withLock { $0.contains("\"key\":\(key),") }, "\(design) \(view) \(output.withLock { $0 })")
        expect(ViewName.parts(of: ViewName.joined(design, view))?.design, equals: design)
        expect(ViewName.parts(of: ViewName.joined(design, view))?.view, equals: view)
      }
    }
    let names = designs.flatMap { design in views.map { ViewName.joined(design, $0) } }
    try expect(Set(database.viewNames), equals: Set(names))
    expect(Set(names).count, equals: names.count)
    try expect(indexes.removeUnused(), equals: [])
    #expect(throws: CouchDBError.self) { try CouchDBView("x%2Fy", "nosuch", in: indexes) }
    expect(ViewName.parts(of: "50%/v") == nil && ViewName.parts(of: "x%2fy/v") == nil)
    #expect {
      try indexes.checkDesign(String(repeating: "q", count: 190), ["views": ["v23456789012": ["map": "x"]]])
    } throws: { ($0 as? CouchDBError)?.error == "invalid_design_doc" }
    try expect(database.check(), equals: [])
  }

  @Test("views that are asked for but don't exist take no memory")
  func unknownNames() throws {
    let database = try databases.open(.lmdb)
    try save(database, ["v": "function (doc) { emit(1) }"])
    let indexes = try database.view("d/v").indexes
    let before = indexes.registeredCount
    for number in 0..<1_000 {
      #expect(throws: CouchDBError.self) { try CouchDBView("d", "no\(number)", in: indexes) }
      let view = try database.view("d/no\(number)")
      try expect(!view.hasMap && view.reduce == nil && view.lastUpdate.documents == 0)
      #expect(throws: ViewError.self) { try view.query().run() }
    }
    expect(indexes.registeredCount, equals: before)
  }

  @Test(
    "a document as the value is what the function saw, as long as its revision is stored",
    arguments: someEngines)
  func documentValues(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for (id, number) in [("a", 1), ("b", 2), ("c", 3)] { try database.save(id, ["n": .int(Int64(number))]) }
    try database.apply(PulledRevision(id: "conflict", history: ["1-aa"], body: ["n": 4]))
    try database.apply(PulledRevision(id: "conflict", history: ["1-bb"], body: ["n": 5]))
    try save(database, ["v": "function (doc) { emit(doc.n, doc) }"])
    let view = try database.view("d/v")
    func values(_ mode: ViewUpdateMode) throws -> [JSONValue] {
      var query = view.query()
      query.updateMode = mode
      return try query.run().map(\.value)
    }
    let first = try values(.before)
    expect(first.map { $0["n"] }, equals: [1, 2, 3, 5])
    expect(first.last?["_conflicts"], equals: ["1-aa"])
    expect(first.allSatisfy { $0["_local_seq"] == nil })
    try database.save("a", ["n": 10])
    try database.delete("b")
    try database.purge("c")
    try database.save("conflict", ["n": 50])
    // The old revisions are there until they are compacted; a purged document is gone.
    try expect(values(.never).map { $0["n"] }, equals: [1, 2, .null, 5])
    try database.compact()
    let compacted = try values(.never)
    expect(compacted[2] == .null && compacted.last?["n"] == 5 && compacted.last?["_conflicts"] == ["1-aa"])
    expect(compacted.prefix(2).allSatisfy { $0 == .null || $0["n"] != 10 })
    try expect(values(.before).map { $0["n"] }, equals: [10, 50])
    try expect(database.check(), equals: [])
  }

  @Test("with local_seq, the value has it, and so have reducers", arguments: someEngines)
  func sequences(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    try database.save(
      "_design/d",
      [
        "options": ["local_seq": true],
        "views": [
          "v": [
            "map": "function (doc) { emit(doc.n, doc) }",
            "reduce": "function (k, v, r) { return r ? v[0] : Object.keys(v[0]).sort().join() }",
          ]
        ],
      ])
    var query = try database.view("d/v").query()
    try expect(query.run().map(\.value), equals: ["_id,_local_seq,_rev,n"])
    query.mapOnly = true
    try expect(query.run().first?.value["_local_seq"], equals: 1)
  }
}
