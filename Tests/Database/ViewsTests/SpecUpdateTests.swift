import TestSupport

@testable import Views

/// What views of Couchbase Lite 1.x do: what map functions receive and emit, and what updates change.
@Suite("Views of 1.x: maps and updates") struct SpecUpdateTests {
  private let databases = TestDatabases()

  private func lines(_ view: View) throws -> [String] {
    var query = view.query()
    query.mapOnly = true
    return try query.run().map {
      "\($0.keyJSON) \($0.valueJSON) \($0.sourceDocumentID ?? "-") \($0.sequence)"
    }
  }

  // MARK: Map functions

  @Test("map functions get live documents, with _id, _rev, _local_seq and _conflicts", arguments: someEngines)
  func properties(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try database.view("all")
    try view.setMap(version: "1") { document, emit in
      let properties = try document.properties()
      expect(properties["_id"]?.string, equals: document.id)
      try expect(properties["_rev"]?.string, equals: document.revisionID.description)
      try expect(properties["_local_seq"]?.int, equals: Int64(document.sequence))
      try expect(
        (properties["_conflicts"]?.array ?? []).map(\.string), equals: document.conflicts.map(\.description))
      expect(properties["n"]?.int, equals: document["n"]?.int)
      emit(document.id as String?, properties["_conflicts"] ?? "none")
    }
    try database.save("_design/x", ["n": 1])
    try database.save("gone", ["n": 1])
    try database.delete("gone")
    try database.apply(PulledRevision(id: "a", history: ["1-aa"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "a", history: ["1-bb"], body: ["n": 2]))
    try database.apply(PulledRevision(id: "a", history: ["1-cc"], isDeleted: true))
    try database.save("b", ["n": 3])
    // The sequence is that of the revision.
    try expect(lines(view), equals: [#""a" ["1-aa"] a 5"#, #""b" "none" b 7"#])
  }

  @Test("attachments are in the document as they are stored", arguments: someEngines)
  func attachments(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try database.view("names")
    try view.setMap(version: "1") { document, emit in
      for (name, _) in try document.properties()["_attachments"]?.object ?? JSONObject() {
        emit(.string(name) as JSONValue?, document["n"])
      }
    }
    let digest: JSONValue = .string("sha1-" + Data(repeating: 7, count: 20).base64EncodedString())
    let attachment: JSONValue = [
      "content_type": "text/plain", "digest": digest, "length": 3, "revpos": 1, "stub": true,
    ]
    var pulled = PulledRevision(
      id: "a", history: ["1-aa"], body: .value(["n": 1, "_attachments": ["x.txt": attachment]]))
    pulled.allowsMissingBlobs = true
    try database.apply(pulled)
    try expect(view.query().run().map(\.keyJSON), equals: [#""x.txt""#])
  }

  @Test("keys, values and the emitted document", arguments: someEngines)
  func emissions(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try database.view("emissions")
    try view.setMap(version: "1") { document, emit in
      emit(document["none"], document["n"])
      emit(nil as JSONValue?, 1 as JSONValue?)
      emit(JSONValue.null, "null key" as JSONValue?)
      emit("no value" as JSONValue?)
      emit("null" as JSONValue?, JSONValue.null)
      emit("same" as JSONValue?, 1 as JSONValue?)
      emit("same" as JSONValue?, 2 as JSONValue?)
      emit("whole" as JSONValue?, document)
      emit(["a": [1, true]] as JSONValue?, [[1.5]] as JSONValue?)
    }
    let saved = try database.save("d", ["n": 1, "text": "x"])
    let rows = try view.query().run()
    expect(
      rows.map { "\($0.keyJSON) \($0.valueJSON)" },
      equals: [
        #"null "null key""#, #""no value" null"#, #""null" null"#, #""same" 1"#, #""same" 2"#,
        rows.count > 5 ? #""whole" "# + rows[5].valueJSON : "", #"{"a":[1,true]} [[1.5]]"#,
      ])
    expect(
      rows.first { $0.key == "whole" }?.value,
      equals: [
        "_id": "d", "_rev": .string(saved.revisionID.description), "n": 1, "text": "x",
      ])
    expect(view.lastUpdate.faultCount, equals: 0)
  }

  private struct Wrong: Error {}

  @Test("rows before an exception stay, the document is named, and others go on", arguments: someEngines)
  func exceptions(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try database.view("throwing")
    try view.setMap(version: "1") { document, emit in
      emit(document["n"], "before" as JSONValue?)
      if document["n"]?.int == 2 { throw Wrong() }
      emit(document["n"], "after" as JSONValue?)
    }
    for number in 1...3 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    try expect(
      view.query().run().map { "\($0.keyJSON) \($0.valueJSON)" },
      equals: [
        #"1 "before""#, #"1 "after""#, #"2 "before""#, #"3 "before""#, #"3 "after""#,
      ])
    expect(view.lastUpdate.faults.map(\.documentID), equals: ["d2"])
    expect(view.lastUpdate.faults.map(\.view), equals: ["throwing"])
    // The next update doesn't map it again.
    try database.save("d1", ["n": 4])
    try expect(view.updateIndex().faultCount, equals: 0)
  }

  @Test(
    "a version, a collation or a document type rebuilds; the same version keeps the rows",
    arguments: someEngines)
  func versions(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for (index, text) in ["b", "A", "a"].enumerated() {
      try database.save("d\(index)", ["key": .string(text), "type": .string(text)])
    }
    let view = try database.view("v")
    func set(_ version: String, _ collation: ViewCollation = .unicode, type: String? = nil, value: Int64)
      throws -> Bool
    {
      try view.setMap(version: version, collation: collation, documentType: type) { document, emit in
        emit(document["key"], JSONValue.int(value))
      }
    }
    func rows() throws -> [String] { try view.query().run().map { "\($0.key.string ?? "?")\($0.valueJSON)" } }
    try expect(set("1", value: 1))
    try expect(rows(), equals: ["a1", "A1", "b1"])
    try expect(!set("1", value: 2))
    try expect(rows(), equals: ["a1", "A1", "b1"])
    try expect(set("2", value: 2))
    try expect(rows(), equals: ["a2", "A2", "b2"])
    try expect(set("2", .ascii, value: 2))
    try expect(rows(), equals: ["A2", "a2", "b2"])
    try expect(set("2", .ascii, type: "a", value: 3))
    try expect(rows(), equals: ["a3"])
    try database.save("d2", ["key": "a", "type": "other"])
    try expect(rows(), equals: [])
    try database.save("d0", ["key": "b", "type": "a"])
    try expect(rows(), equals: ["b3"])
    try expect(database.check(), equals: [])
  }

  @Test("views with one name before the slash are updated together", arguments: someEngines)
  func groups(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    let names = ["g/one", "g/two", "h/one", "alone"]
    let views = try names.map { name in
      let view = try database.view(name)
      try view.setMap(version: "1") { document, emit in emit(document["n"]) }
      return view
    }
    try expect(views[0].updateIndex().documents, equals: 1)
    try expect(views.map { try $0.lastSequenceIndexed }, equals: [1, 1, 0, 0])
    try expect(views[1].updateIndex(), equals: ViewUpdate())
    try database.save("b", ["n": 2])
    try views[1].deleteIndex()
    try expect(views.map { try $0.totalRows }, equals: [1, 0, 0, 0])
    try expect(views[0].updateIndex().changedRows, equals: 3)
    try expect(views.map { try $0.totalRows }, equals: [2, 2, 0, 0])
    try views[1].delete()
    try expect(database.viewNames, equals: ["alone", "g/one", "h/one"])
    #expect(throws: ViewError.self) { try views[1].updateIndex() }
    try expect(lines(views[0]), equals: ["1 null a 1", "2 null b 2"])
  }

  // MARK: What changes documents make

  /// A view of the number, with the conflicts as the value if `seesConflicts`.
  private func numbers(_ database: Database, seesConflicts: Bool = false) throws -> View {
    let view = try database.view(seesConflicts ? "conflicts" : "numbers")
    try view.setMap(version: "1") { document, emit in
      if seesConflicts {
        let conflicts = try document.conflicts
        emit(document["n"], JSONValue.int(Int64(conflicts.count)))
      } else {
        emit(document["n"])
      }
    }
    return view
  }

  @Test("a saved and a deleted document", arguments: someEngines)
  func savedAndDeleted(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database)
    try database.save("a", ["n": 1])
    try expect(lines(view), equals: ["1 null a 1"])
    try database.save("a", ["n": 2])
    try expect(lines(view), equals: ["2 null a 2"])
    try database.delete("a")
    try expect(lines(view), equals: [])
    try database.save("a", ["n": 3])
    try expect(lines(view), equals: ["3 null a 4"])
    // Made and deleted between two updates.
    try database.save("b", ["n": 4])
    try database.delete("b")
    try expect(view.updateIndex().changedRows, equals: 0)
    try expect(view.lastSequenceChangedAt, equals: 4)
    try expect(view.lastSequenceIndexed, equals: 6)
  }

  @Test("a conflict that loses maps the winner again, under its own sequence", arguments: someEngines)
  func losingConflict(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let (view, other) = (try numbers(database), try numbers(database, seesConflicts: true))
    try database.apply(PulledRevision(id: "a", history: ["2-bb", "1-aa"], body: ["n": 1]))
    try expect(lines(view), equals: ["1 null a 1"])
    try expect(lines(other), equals: ["1 0 a 1"])
    try database.apply(PulledRevision(id: "a", history: ["2-aa", "1-aa"], body: ["n": 2]))
    let update = try view.updateIndex()
    expect(update.documents == 1 && update.changedRows == 0)
    try expect(other.updateIndex().changedRows, equals: 1)
    try expect(lines(view), equals: ["1 null a 1"])
    try expect(lines(other), equals: ["1 1 a 1"])
  }

  @Test("a conflict that wins replaces the rows of the old winner", arguments: someEngines)
  func winningConflict(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database, seesConflicts: true)
    try database.apply(PulledRevision(id: "a", history: ["2-aa", "1-aa"], body: ["n": 1]))
    try expect(lines(view), equals: ["1 0 a 1"])
    try database.apply(PulledRevision(id: "a", history: ["2-bb", "1-aa"], body: ["n": 2]))
    try expect(lines(view), equals: ["2 1 a 2"])
    try database.apply(PulledRevision(id: "a", history: ["3-aa", "2-aa"], body: ["n": 3]))
    try expect(lines(view), equals: ["3 1 a 3"])
  }

  @Test("a deleted winner brings back the loser, under its own sequence", arguments: someEngines)
  func promotedLoser(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database, seesConflicts: true)
    try database.apply(PulledRevision(id: "a", history: ["2-aa", "1-aa"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "a", history: ["2-bb", "1-aa"], body: ["n": 2]))
    try expect(lines(view), equals: ["2 1 a 2"])
    try database.apply(PulledRevision(id: "a", history: ["3-bb", "2-bb"], isDeleted: true))
    try expect(lines(view), equals: ["1 0 a 1"])
    // And away with a branch: the purge of a loser, and of a winner.
    try database.apply(PulledRevision(id: "a", history: ["2-cc", "1-aa"], body: ["n": 3]))
    try expect(lines(view), equals: ["3 1 a 4"])
    try database.purge("a", branch: try #require(RevisionID("2-aa")))
    try expect(lines(view), equals: ["3 0 a 4"])
    try database.apply(PulledRevision(id: "a", history: ["2-ff", "1-aa"], body: ["n": 4]))
    try expect(lines(view), equals: ["4 1 a 6"])
    try database.purge("a", branch: try #require(RevisionID("2-ff")))
    try expect(lines(view), equals: ["3 0 a 4"])
  }

  @Test("a resolved conflict", arguments: someEngines)
  func resolved(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database, seesConflicts: true)
    try database.apply(PulledRevision(id: "a", history: ["1-aa"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "a", history: ["1-bb"], body: ["n": 2]))
    try expect(lines(view), equals: ["2 1 a 2"])
    try database.resolveConflict(of: "a", keeping: try #require(RevisionID("1-aa")))
    try expect(lines(view).map { String($0.prefix(5)) }, equals: ["1 0 a"])
  }

  @Test("purges and expiration", arguments: someEngines)
  func purged(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database)
    for number in 1...4 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    try expect(lines(view).count, equals: 4)
    try database.purge("d1")
    try expect(view.isStale)
    try expect(lines(view), equals: ["2 null d2 2", "3 null d3 3", "4 null d4 4"])
    try database.setExpiration(of: "d2", at: Date(timeIntervalSince1970: 1))
    _ = try database.purgeExpired()
    try expect(lines(view), equals: ["3 null d3 3", "4 null d4 4"])
    // Purged and made again; and the newest one purged, whose sequence nothing has now.
    try database.purge("d3")
    try database.save("d3", ["n": 5])
    try database.purge("d4")
    try expect(lines(view), equals: ["5 null d3 5"])
    try expect(view.updateIndex(), equals: ViewUpdate())
    try expect(!view.isStale)
  }

  @Test("a purge while the database's first view is built", arguments: someEngines)
  func purgedMeanwhile(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<3) { ("d\($0)", ["n": .int(Int64($0))]) }
    let view = try database.view("v")
    let purged = Lock<String?>(nil)
    try view.setMap(version: "1") { document, emit in
      emit(document.id as String?, document["n"])
      guard purged.withLock({ $0 }) == nil else { return }
      let id = document.id
      purged.withLock { $0 = id }
      try onThreads(1) { _ in try database.purge(id) }
    }
    try view.updateIndex()
    let id = try #require(purged.withLock { $0 })
    let left = ["d0", "d1", "d2"].filter { $0 != id }
    try expect(lines(view).map { $0.prefix(4) }, equals: left.map { "\"\($0)\"" })
  }

  @Test("purges before and after the first update of a batch", arguments: someEngines)
  func purgedInBatch(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<3) { ("d\($0)", ["n": .int(Int64($0))]) }
    let view = try database.view("v")
    try view.setMap(version: "1") { document, emit in emit(document.id as String?, document["n"]) }
    try database.inBatch {
      try database.purge("d0")
      try view.updateIndex()
      try database.purge("d1")
      try expect(lines(view), equals: [#""d2" 2 d2 3"#])
    }
    try database.purge("d2")
    try expect(lines(view), equals: [])
  }

  @Test("nothing is done when nothing has changed", arguments: someEngines)
  func nothing(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database)
    try database.save("a", ["n": 1])
    let first = try view.query().run()
    try expect(view.updateIndex(), equals: ViewUpdate())
    try expect(view.query().runIfChanged(since: first.lastSequenceChangedAt) == nil)
    try database.save("b", ["other": 1])
    try expect(view.updateIndex().documents, equals: 1)
    try expect(view.query().runIfChanged(since: first.lastSequenceChangedAt) == nil)
    try database.save("a", ["n": 2])
    try expect(view.query().runIfChanged(since: first.lastSequenceChangedAt)?.count, equals: 1)
  }

  @Test("the modes of updates", arguments: someEngines)
  func modes(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database)
    var query = view.query()
    try database.save("a", ["n": 1])
    query.updateMode = .never
    // A view that was never indexed is indexed in every mode.
    try expect(query.run().count, equals: 1)
    try database.save("b", ["n": 2])
    let stale = try query.run()
    try expect(stale.count == 1 && stale.wasStale && stale.isStale)
    query.updateMode = .after
    try expect(query.run().count, equals: 1)
    try eventually { try !view.isStale }
    query.updateMode = .never
    let fresh = try query.run()
    try expect(fresh.count == 2 && !fresh.wasStale && !fresh.isStale)
    query.updateMode = .before
    try database.save("c", ["n": 3])
    try expect(fresh.isStale)
    try expect(query.run().count, equals: 3)
    // An index that was dropped, too.
    try view.deleteIndex()
    try expect(view.totalRows == 0 && view.lastSequenceIndexed == 0)
    query.updateMode = .never
    try expect(query.run().count, equals: 3)
  }

  @Test("a reducer that was set after the update reduces the rows that there are", arguments: someEngines)
  func laterReducer(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<400) { ("d\($0)", ["n": .int(Int64($0))]) }
    let view = try database.view("sums")
    try view.setMap(version: "1") { document, emit in emit(document["n"], document["n"]) }
    view.setReduce(.count)
    var query = view.query()
    try expect(query.run().map(\.valueJSON), equals: ["400"])
    query.updateMode = .never
    for (reduce, result) in [(ViewReduce.sum, "79800"), (.max, "399"), (.count, "400")] {
      view.setReduce(reduce)
      try expect(query.run().map(\.valueJSON), equals: [result])
    }
    view.setReduce(nil)
    try expect(query.run().count, equals: 400)
  }
}
