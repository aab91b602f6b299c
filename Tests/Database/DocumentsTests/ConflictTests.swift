import TestSupport

@testable import Documents

@Suite("Conflicts and history") struct ConflictTests {
  private let databases = TestDatabases()

  private let directory = TemporaryDirectory()

  private func pulled(_ history: [String], _ body: JSONValue, deleted: Bool = false) -> PulledRevision {
    PulledRevision(id: "a", history: history, isDeleted: deleted, body: .value(body))
  }

  private func id(_ text: String) throws -> RevisionID { try #require(RevisionID(text)) }

  private func texts(_ revisions: [Revision]) -> [String] { revisions.map(\.id.description) }

  /// 1-aa with the branches 2-bb, 3-bb and 2-cc.
  private func makeConflict(_ database: Database) throws {
    try database.apply(pulled(["1-aa"], ["n": 1, "x": "base"]))
    try database.apply(pulled(["2-cc", "1-aa"], ["n": 2, "x": "cc"]))
    try database.apply(pulled(["3-bb", "2-bb", "1-aa"], ["n": 3, "x": "bb"]))
  }

  @Test("are listed with their bodies, and end by picking one", arguments: someEngines)
  func picking(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try expect(database.conflicts(of: "a").isEmpty)
    try makeConflict(database)
    let conflicts = try database.conflicts(of: "a")
    expect(texts(conflicts), equals: ["3-bb", "2-cc"])
    expect(conflicts.map { $0.body?["x"] }, equals: ["bb", "cc"])
    try database.resolveConflict(of: "a", keeping: id("2-cc"))
    let document = try #require(try database.document("a"))
    expect(document.revisionID.description == "2-cc" && !document.isConflicted)
    expect(document["x"].string, equals: "cc")
    try expect(database.conflicts(of: "a").isEmpty)
    let leaves = try database.leaves(of: "a", includeDeleted: true)
    expect(leaves.map(\.isDeleted), equals: [false, true])
    expect(leaves[1].parent?.description, equals: "3-bb")
    // It came to its end here, so what comes from there goes to the end as well.
    try database.delete("a")
    try expect(database.document("a", includeDeleted: true)?.revisionID.generation, equals: 3)
    try expect(database.leaves(of: "a", includeDeleted: true)[0].parent?.description, equals: "2-cc")
    try expect(storageFaults(database), equals: [])
    try expect(documentCode { try database.resolveConflict(of: "a", keeping: id("9-ff")) }, equals: .notFound)
    try expect(documentCode { try database.resolveConflict(of: "b", keeping: id("2-cc")) }, equals: .notFound)
    try expect(documentCode { try database.resolveConflict(of: "a", keeping: id("2-cc")) }, equals: .conflict)
  }

  @Test("end by a merge; a body that is refused changes nothing", arguments: someEngines)
  func merging(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try makeConflict(database)
    let before = try database.lastSequence
    let refused = try documentCode {
      try database.resolveConflict(of: "a", keeping: id("3-bb"), merged: ["_x": 1])
    }
    expect(refused, equals: .reservedProperty)
    try expect(database.lastSequence, equals: before)
    try expect(database.conflicts(of: "a").count, equals: 2)
    try database.resolveConflict(of: "a", keeping: id("3-bb"), merged: ["x": "both"])
    let revisions = try #require(try database.revisions(of: "a"))
    expect(revisions[0].parent?.description, equals: "3-bb")
    expect(revisions[0].body, equals: ["x": "both"])
    try expect(database.document("a")?.isConflicted, equals: false)
    // The merge and the end of the other branch.
    try expect(database.lastSequence, equals: before + 2)
    try expect(storageFaults(database), equals: [])
  }

  @Test("a save may make one on purpose", arguments: someEngines)
  func allowing(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let first = try database.save("a", ["n": 1]).revisionID
    try database.save("a", ["n": 2], basedOn: first)
    let refused = [
      try documentCode { try database.save("a", ["n": 3], basedOn: first, onConflict: .fail) },
      try documentCode {
        try database.save("a", ["n": 3], basedOn: id("5-ff"), onConflict: .allowConflict)
      },
      try documentCode { try database.save("b", ["n": 3], basedOn: first, onConflict: .allowConflict) },
    ]
    expect(refused, equals: [.conflict, .notFound, .notFound])
    let branch = try database.save("a", ["n": 3], basedOn: first, onConflict: .allowConflict).revisionID
    expect(branch.generation, equals: 2)
    try expect(Set(database.conflicts(of: "a").map { $0.body?["n"] }), equals: [2, 3])
    try expect(
      database.commonAncestor(of: branch, and: #require(database.conflicts(of: "a").first?.id), in: "a")
        != nil)
    try database.delete("a", basedOn: first, onConflict: .allowConflict)
    try expect(database.leaves(of: "a", includeDeleted: true).count, equals: 3)
    try expect(storageFaults(database), equals: [])
  }

  @Test("common ancestors, bodies while they last, and what isn't known", arguments: someEngines)
  func ancestors(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try makeConflict(database)
    var ancestor = try database.commonAncestor(of: id("3-bb"), and: id("2-cc"), in: "a")
    expect(ancestor?.id.description, equals: "1-aa")
    expect(ancestor?.body, equals: ["n": 1, "x": "base"])
    try expect(database.commonAncestor(of: id("3-bb"), and: id("2-bb"), in: "a")?.hasBody, equals: false)
    try expect(database.commonAncestor(of: id("2-cc"), and: id("2-cc"), in: "a")?.body?["x"], equals: "cc")
    let all = try #require(try database.revisions(of: "a", withBodies: false))
    expect(texts(all), equals: ["3-bb", "2-cc", "2-bb", "1-aa"])
    expect(all.map(\.hasBody), equals: [true, true, false, true])
    expect(all.map(\.body), equals: [nil, nil, nil, nil])
    try database.compact()
    ancestor = try database.commonAncestor(of: id("3-bb"), and: id("2-cc"), in: "a")
    expect(ancestor?.id.description == "1-aa" && ancestor?.hasBody == false && ancestor?.body == nil)
    try database.apply(pulled(["7-dd"], [:]))
    try expect(database.commonAncestor(of: id("7-dd"), and: id("2-cc"), in: "a") == nil)
    try expect(database.revision(id("2-cc"), of: "a")?.body?["n"], equals: 2)
    try expect(database.revision(id("2-ce"), of: "a") == nil)
    let refused = try documentCode {
      _ = try database.commonAncestor(of: id("3-bb"), and: id("2-ee"), in: "a")
    }
    expect(refused, equals: .notFound)
  }

  @Test("the default resolver decides as 2.x, and the incoming branch goes on", arguments: someEngines)
  func defaultResolver(_ engine: EngineName) throws {
    // Local history and deletion; remote ones; whose content wins.
    let cases: [(local: [String], Bool, remote: [String], Bool, winner: String)] = [
      (["2-aa", "1-aa"], false, ["2-bb", "1-aa"], false, "remote"),
      (["2-bb", "1-aa"], false, ["2-aa", "1-aa"], false, "local"),
      (["3-aa", "2-aa", "1-aa"], false, ["2-bb", "1-aa"], false, "local"),
      (["2-aa", "1-aa"], false, ["3-00", "2-bb", "1-aa"], false, "remote"),
      (["9-aa", "8-aa", "1-aa"], false, ["2-bb", "1-aa"], true, "remote deletion"),
      (["2-aa", "1-aa"], true, ["9-bb", "1-aa"], false, "local deletion"),
      (["2-aa", "1-aa"], true, ["2-bb", "1-aa"], true, "remote deletion"),
    ]
    for (local, localDeleted, remote, remoteDeleted, winner) in cases {
      try withDatabase(engine) { database in
        try database.apply(pulled(["1-aa"], ["who": "base"]))
        try database.apply(pulled(local, ["who": "local"], deleted: localDeleted))
        let resolver = DefaultConflictResolver()
        try expect(
          database.apply(
            pulled(remote, ["who": "remote"], deleted: remoteDeleted), resolvingWith: resolver))
        let document = try #require(try database.document("a", includeDeleted: true))
        expect(document.isDeleted, equals: winner.hasSuffix("deletion"), "\(winner)")
        expect(document["who"].string, equals: String(winner.prefix { $0 != " " }))
        expect(!document.isConflicted)
        // The current revision is the incoming one or its child.
        let revisions = try #require(try database.revisions(of: "a"))
        let way = [revisions[0].id.description, revisions[0].parent?.description]
        expect(way.contains(remote[0]))
        try expect(storageFaults(database), equals: [])
        // Known now: nothing happens again.
        let sequence = try database.lastSequence
        try expect(!database.apply(pulled(remote, [:]), resolvingWith: resolver))
        try expect(database.lastSequence, equals: sequence)
      }
    }
  }

  @Test("a resolver sees both and their ancestor, and may merge, delete or refuse", arguments: someEngines)
  func customResolver(_ engine: EngineName) throws {
    struct Refusal: Error {}
    try withDatabase(engine) { database in
      func apply(
        _ history: [String], _ body: JSONValue,
        _ resolution: @escaping @Sendable (Conflict) throws -> ConflictResolution
      ) throws {
        try database.apply(pulled(history, body), resolvingWith: ClosureConflictResolver(resolution))
      }
      try database.apply(pulled(["1-aa"], ["n": 1]))
      // No conflict: nobody is asked.
      try apply(["2-aa", "1-aa"], ["n": 2]) { _ in throw Refusal() }
      #expect(throws: Refusal.self) { try apply(["2-bb", "1-aa"], ["n": 5]) { _ in throw Refusal() } }
      try expect(database.leaves(of: "a", includeDeleted: true).count, equals: 1)
      try apply(["2-bb", "1-aa"], ["n": 5]) { conflict in
        expect(conflict.documentID, equals: "a")
        expect(conflict.local.id.description == "2-aa" && conflict.local.body == ["n": 2])
        expect(conflict.remote.id.description == "2-bb" && conflict.remote.body == ["n": 5])
        expect(
          conflict.commonAncestor?.id.description == "1-aa" && conflict.commonAncestor?.body == ["n": 1])
        return .merged(["n": 7])
      }
      var document = try #require(try database.document("a"))
      expect(document["n"].int == 7 && !document.isConflicted)
      try expect(database.revisions(of: "a")?[0].parent?.description, equals: "2-bb")
      // What can't be stored leaves nothing behind.
      let sequence = try database.lastSequence
      let refused = try documentCode { try apply(["2-cc", "1-aa"], ["n": 6]) { _ in .merged(["_id": 1]) } }
      expect(refused, equals: .reservedProperty)
      try expect(database.lastSequence, equals: sequence)
      // Somebody else writes while it thinks: it is asked again.
      nonisolated(unsafe) var asked = 0
      try apply(["2-dd", "1-aa"], ["n": 8]) { conflict in
        asked += 1
        if asked == 1 { try database.save("a", ["n": 100]) }
        return .merged(["n": .int((conflict.local.body?["n"].int ?? 0) + 1)])
      }
      expect(asked, equals: 2)
      document = try #require(try database.document("a"))
      expect(document["n"].int, equals: 101)
      try apply(["2-ee", "1-aa"], ["n": 9]) { _ in .delete }
      try expect(database.document("a") == nil)
      try expect(storageFaults(database), equals: [])
    }
  }

  @Test("updates try again when somebody was faster, and the last time nobody can be", arguments: someEngines)
  func updates(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.save("a", ["n": 0])
      var runs = 0
      try database.update("a") { document in
        runs += 1
        if runs < 3 { try database.update("a") { $0["n"] = .int(($0["n"].int ?? 0) + 10) } }
        document["n"] = .int((document["n"].int ?? 0) + 1)
      }
      expect(runs, equals: 3)
      try expect(database.document("a")?["n"].int, equals: 21)
      var tries = 0
      let refused = [
        try documentCode {
          try database.update("a", attempts: 4) { document in
            tries += 1
            try database.save("a", ["n": .int(Int64(100 + tries))])
            document["n"] = 0
          }
        },
        try documentCode { try database.update("b") { $0["n"] = 1 } },
      ]
      expect(refused, equals: [.conflict, .notFound])
      expect(tries, equals: 4)
      // The fourth attempt was one transaction, which is undone.
      try expect(database.document("a")?["n"].int, equals: 103)
      // However many others write, the change is saved in the end.
      var rounds = 0
      try database.update("a") { document in
        rounds += 1
        if rounds <= 3 { try onAnotherThread { _ = try database.save("a", ["n": 1]) } }
        document["n"] = .int((document["n"].int ?? 0) + 1)
      }
      expect(rounds, equals: 4)
      try expect(database.document("a")?["n"].int, equals: 2)
      try expect(database.update("b", creating: true) { $0["n"] = 1 }.generation, equals: 1)
    }
    // Many writers count together.
    try withDatabase(engine) { database in
      try database.save("a", ["n": 0])
      try onThreads(4) { _ in
        for _ in 0..<25 {
          try database.update("a", attempts: 10_000) { $0["n"] = .int(($0["n"].int ?? 0) + 1) }
        }
      }
      try expect(database.document("a")?["n"].int, equals: 100)
    }
  }

  @Test("what was read is deleted by what it was; tombstones keep what they are told", arguments: someEngines)
  func deleting(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var new = MutableDocument(id: "a", ["n": 1])
    try expect(documentCode { try database.delete(&new) }, equals: .notFound)
    try database.save(&new)
    let read = try #require(try database.document("a"))
    try database.save("a", ["n": 2])
    try expect(documentCode { try database.delete(read, onConflict: .fail) }, equals: .conflict)
    try expect(database.delete(read, keeping: ["why": "old"])?.generation, equals: 3)
    try expect(database.delete(read) == nil)
    let tombstone = try #require(try database.document("a", includeDeleted: true))
    expect(tombstone.isDeleted && tombstone["why"].string == "old")
    try expect(database.document("a") == nil)
    // A save brings it back, on top of its tombstone.
    try expect(database.save("a", ["n": 4], onConflict: .fail).generation, equals: 4)
    try expect(database.revisions(of: "a")?[0].parent, equals: tombstone.revisionID)
    try database.purge("a")
    try expect(database.delete(read) == nil)
    try expect(database.revisions(of: "a") == nil)
  }

  @Test("the purge of a branch is a change, and the next leaf takes its place", arguments: someEngines)
  func purgingBranches(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try makeConflict(database)
    let sequence = try database.lastSequence
    for (document, branch) in [("a", "1-aa"), ("a", "2-ff"), ("b", "1-aa")] {
      try expect(documentCode { try database.purge(document, branch: id(branch)) }, equals: .notFound)
    }
    try expect(database.purge("a", branch: id("3-bb")).map(\.description), equals: ["3-bb", "2-bb"])
    try expect(database.lastSequence, equals: sequence + 1)
    let document = try #require(try database.document("a"))
    expect(
      document.revisionID.description == "2-cc" && document["x"].string == "cc" && !document.isConflicted)
    expect(document.sequence, equals: sequence + 1)
    let changes = try database.changes(since: sequence)
    expect(changes.map(\.sequence) == [sequence + 1] && changes.map(\.isConflicted) == [false])
    try expect(database.changes().count == 1 && changes.allSatisfy { !$0.isFromSync })
    try expect(storageFaults(database), equals: [])
    // What was purged may come again.
    try expect(database.apply(pulled(["3-bb", "2-bb", "1-aa"], ["x": "again"])))
    try expect(database.document("a")?["x"].string, equals: "again")
    try expect(database.purge("a", branch: id("2-cc")).map(\.description), equals: ["2-cc"])
    try expect(database.purge("a", branch: id("3-bb")).count, equals: 3)
    try expect(database.document("a", includeDeleted: true) == nil)
    try expect(database.changes().isEmpty && database.documentCount == 0)
    // A tombstone takes the place of a live branch.
    try database.apply(pulled(["5-aa"], [:], deleted: true))
    try database.apply(pulled(["2-bb"], ["n": 1]))
    try expect(database.purge("a", branch: id("2-bb")).count, equals: 1)
    try expect(database.documentCount == 0 && database.tombstoneCount == 1)
    try expect(storageFaults(database), equals: [])
  }

  @Test("the depth can be changed, and stays so", arguments: someEngines)
  func depth(_ engine: EngineName) throws {
    var database = try Database.open("depth", in: directory.path, options: options(engine))
    try expect(database.maximumTreeDepth, equals: 20)
    for n in 1...30 { try database.save("a", ["n": .int(Int64(n))]) }
    try expect(database.revisions(of: "a")?.count, equals: 20)
    try database.setMaximumTreeDepth(5)
    try expect(database.revisions(of: "a")?.count, equals: 20)
    try database.save("a", ["n": 31])
    try expect(database.revisions(of: "a")?.map(\.id.generation), equals: [31, 30, 29, 28, 27])
    try database.inBatch {
      #expect(throws: StorageError.self) { try database.setMaximumTreeDepth(7) }
    }
    try database.close()
    database = try Database.open("depth", in: directory.path, options: options(engine))
    try expect(database.maximumTreeDepth, equals: 5)
    try database.setMaximumTreeDepth(40)
    for n in 32...90 { try database.save("a", ["n": .int(Int64(n))]) }
    try expect(database.revisions(of: "a")?.count, equals: 40)
    try expect(storageFaults(database), equals: [])
    try database.close()
    var other = try options(engine)
    other.maximumTreeDepth = 3
    database = try Database.open("depth", in: directory.path, options: other)
    try database.save("a", ["n": 0])
    try expect(database.revisions(of: "a")?.count, equals: 3)
    try database.setMaximumTreeDepth(0)
    try expect(database.maximumTreeDepth, equals: 20)
    try database.close()
    other.maximumTreeDepth = 0
    database = try Database.open("depth", in: directory.path, options: other)
    try expect(database.maximumTreeDepth, equals: 20)
    try database.close()
  }
}
