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
      #expect(properties["_id"]?.string == document.id)
      #expect(try properties["_rev"]?.string == document.revisionID.description)
      #expect(try properties["_local_seq"]?.int == Int64(document.sequence))
      #expect(
        try (properties["_conflicts"]?.array ?? []).map(\.string) == document.conflicts.map(\.description))
      #expect(properties["n"]?.int == document["n"]?.int)
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
    #expect(try lines(view) == [#""a" ["1-aa"] a 5"#, #""b" "none" b 7"#])
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
    #expect(try view.query().run().map(\.keyJSON) == [#""x.txt""#])
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
    #expect(
      rows.map { "\($0.keyJSON) \($0.valueJSON)" } == [
        #"null "null key""#, #""no value" null"#, #""null" null"#, #""same" 1"#, #""same" 2"#,
        rows.count > 5 ? #""whole" "# + rows[5].valueJSON : "", #"{"a":[1,true]} [[1.5]]"#,
      ])
    #expect(
      rows.first { $0.key == "whole" }?.value == [
        "_id": "d", "_rev": .string(saved.revisionID.description), "n": 1, "text": "x",
      ])
    #expect(view.lastUpdate.faultCount == 0)
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
    #expect(
      try view.query().run().map { "\($0.keyJSON) \($0.valueJSON)" } == [
        #"1 "before""#, #"1 "after""#, #"2 "before""#, #"3 "before""#, #"3 "after""#,
      ])
    #expect(view.lastUpdate.faults.map(\.documentID) == ["d2"])
    #expect(view.lastUpdate.faults.map(\.view) == ["throwing"])
    // The next update doesn't map it again.
    try database.save("d1", ["n": 4])
    #expect(try view.updateIndex().faultCount == 0)
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
    #expect(try set("1", value: 1))
    #expect(try rows() == ["a1", "A1", "b1"])
    #expect(try !set("1", value: 2))
    #expect(try rows() == ["a1", "A1", "b1"])
    #expect(try set("2", value: 2))
    #expect(try rows() == ["a2", "A2", "b2"])
    #expect(try set("2", .ascii, value: 2))
    #expect(try rows() == ["A2", "a2", "b2"])
    #expect(try set("2", .ascii, type: "a", value: 3))
    #expect(try rows() == ["a3"])
    try database.save("d2", ["key": "a", "type": "other"])
    #expect(try rows() == [])
    try database.save("d0", ["key": "b", "type": "a"])
    #expect(try rows() == ["b3"])
    #expect(try database.check() == [])
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
    #expect(try views[0].updateIndex().documents == 1)
    #expect(try views.map { try $0.lastSequenceIndexed } == [1, 1, 0, 0])
    #expect(try views[1].updateIndex() == ViewUpdate())
    try database.save("b", ["n": 2])
    try views[1].deleteIndex()
    #expect(try views.map { try $0.totalRows } == [1, 0, 0, 0])
    #expect(try views[0].updateIndex().changedRows == 3)
    #expect(try views.map { try $0.totalRows } == [2, 2, 0, 0])
    try views[1].delete()
    #expect(try database.viewNames == ["alone", "g/one", "h/one"])
    #expect(throws: ViewError.self) { try views[1].updateIndex() }
    #expect(try lines(views[0]) == ["1 null a 1", "2 null b 2"])
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
    #expect(try lines(view) == ["1 null a 1"])
    try database.save("a", ["n": 2])
    #expect(try lines(view) == ["2 null a 2"])
    try database.delete("a")
    #expect(try lines(view) == [])
    try database.save("a", ["n": 3])
    #expect(try lines(view) == ["3 null a 4"])
    // Made and deleted between two updates.
    try database.save("b", ["n": 4])
    try database.delete("b")
    #expect(try view.updateIndex().changedRows == 0)
    #expect(try view.lastSequenceChangedAt == 4)
    #expect(try view.lastSequenceIndexed == 6)
  }

  @Test("a conflict that loses maps the winner again, under its own sequence", arguments: someEngines)
  func losingConflict(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let (view, other) = (try numbers(database), try numbers(database, seesConflicts: true))
    try database.apply(PulledRevision(id: "a", history: ["2-bb", "1-aa"], body: ["n": 1]))
    #expect(try lines(view) == ["1 null a 1"])
    #expect(try lines(other) == ["1 0 a 1"])
    try database.apply(PulledRevision(id: "a", history: ["2-aa", "1-aa"], body: ["n": 2]))
    let update = try view.updateIndex()
    #expect(update.documents == 1 && update.changedRows == 0)
    #expect(try other.updateIndex().changedRows == 1)
    #expect(try lines(view) == ["1 null a 1"])
    #expect(try lines(other) == ["1 1 a 1"])
  }

  @Test("a conflict that wins replaces the rows of the old winner", arguments: someEngines)
  func winningConflict(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database, seesConflicts: true)
    try database.apply(PulledRevision(id: "a", history: ["2-aa", "1-aa"], body: ["n": 1]))
    #expect(try lines(view) == ["1 0 a 1"])
    try database.apply(PulledRevision(id: "a", history: ["2-bb", "1-aa"], body: ["n": 2]))
    #expect(try lines(view) == ["2 1 a 2"])
    try database.apply(PulledRevision(id: "a", history: ["3-aa", "2-aa"], body: ["n": 3]))
    #expect(try lines(view) == ["3 1 a 3"])
  }

  @Test("a deleted winner brings back the loser, under its own sequence", arguments: someEngines)
  func promotedLoser(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database, seesConflicts: true)
    try database.apply(PulledRevision(id: "a", history: ["2-aa", "1-aa"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "a", history: ["2-bb", "1-aa"], body: ["n": 2]))
    #expect(try lines(view) == ["2 1 a 2"])
    try database.apply(PulledRevision(id: "a", history: ["3-bb", "2-bb"], isDeleted: true))
    #expect(try lines(view) == ["1 0 a 1"])
    // And away with a branch: the purge of a loser, and of a winner.
    try database.apply(PulledRevision(id: "a", history: ["2-cc", "1-aa"], body: ["n": 3]))
    #expect(try lines(view) == ["3 1 a 4"])
    try database.purge("a", branch: try #require(RevisionID("2-aa")))
    #expect(try lines(view) == ["3 0 a 4"])
    try database.apply(PulledRevision(id: "a", history: ["2-ff", "1-aa"], body: ["n": 4]))
    #expect(try lines(view) == ["4 1 a 6"])
    try database.purge("a", branch: try #require(RevisionID("2-ff")))
    #expect(try lines(view) == ["3 0 a 4"])
  }

  @Test("a resolved conflict", arguments: someEngines)
  func resolved(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database, seesConflicts: true)
    try database.apply(PulledRevision(id: "a", history: ["1-aa"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "a", history: ["1-bb"], body: ["n": 2]))
    #expect(try lines(view) == ["2 1 a 2"])
    try database.resolveConflict(of: "a", keeping: try #require(RevisionID("1-aa")))
    #expect(try lines(view).map { String($0.prefix(5)) } == ["1 0 a"])
  }

  @Test("purges and expiration", arguments: someEngines)
  func purged(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database)
    for number in 1...4 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    #expect(try lines(view).count == 4)
    try database.purge("d1")
    #expect(try view.isStale)
    #expect(try lines(view) == ["2 null d2 2", "3 null d3 3", "4 null d4 4"])
    try database.setExpiration(of: "d2", at: Date(timeIntervalSince1970: 1))
    _ = try database.purgeExpired()
    #expect(try lines(view) == ["3 null d3 3", "4 null d4 4"])
    // Purged and made again; and the newest one purged, whose sequence nothing has now.
    try database.purge("d3")
    try database.save("d3", ["n": 5])
    try database.purge("d4")
    #expect(try lines(view) == ["5 null d3 5"])
    #expect(try view.updateIndex() == ViewUpdate())
    #expect(try !view.isStale)
  }

  @Test("nothing is done when nothing has changed", arguments: someEngines)
  func nothing(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database)
    try database.save("a", ["n": 1])
    let first = try view.query().run()
    #expect(try view.updateIndex() == ViewUpdate())
    #expect(try view.query().runIfChanged(since: first.lastSequenceChangedAt) == nil)
    try database.save("b", ["other": 1])
    #expect(try view.updateIndex().documents == 1)
    #expect(try view.query().runIfChanged(since: first.lastSequenceChangedAt) == nil)
    try database.save("a", ["n": 2])
    #expect(try view.query().runIfChanged(since: first.lastSequenceChangedAt)?.count == 1)
  }

  @Test("the modes of updates", arguments: someEngines)
  func modes(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try numbers(database)
    var query = view.query()
    try database.save("a", ["n": 1])
    query.updateMode = .never
    // A view that was never indexed is indexed in every mode.
    #expect(try query.run().count == 1)
    try database.save("b", ["n": 2])
    let stale = try query.run()
    #expect(try stale.count == 1 && stale.wasStale && stale.isStale)
    query.updateMode = .after
    #expect(try query.run().count == 1)
    try eventually { try !view.isStale }
    query.updateMode = .never
    let fresh = try query.run()
    #expect(try fresh.count == 2 && !fresh.wasStale && !fresh.isStale)
    query.updateMode = .before
    try database.save("c", ["n": 3])
    #expect(try fresh.isStale)
    #expect(try query.run().count == 3)
    // An index that was dropped, too.
    try view.deleteIndex()
    #expect(try view.totalRows == 0 && view.lastSequenceIndexed == 0)
    query.updateMode = .never
    #expect(try query.run().count == 3)
  }

  @Test("a reducer that was set after the update reduces the rows that there are", arguments: someEngines)
  func laterReducer(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<400) { ("d\($0)", ["n": .int(Int64($0))]) }
    let view = try database.view("sums")
    try view.setMap(version: "1") { document, emit in emit(document["n"], document["n"]) }
    view.setReduce(.count)
    var query = view.query()
    #expect(try query.run().map(\.valueJSON) == ["400"])
    query.updateMode = .never
    for (reduce, result) in [(ViewReduce.sum, "79800"), (.max, "399"), (.count, "400")] {
      view.setReduce(reduce)
      #expect(try query.run().map(\.valueJSON) == [result])
    }
    view.setReduce(nil)
    #expect(try query.run().count == 400)
  }
}
