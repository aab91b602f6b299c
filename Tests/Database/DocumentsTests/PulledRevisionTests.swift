import TestSupport

@testable import Documents

@Suite("Revisions from elsewhere") struct PulledRevisionTests {
  private let databases = TestDatabases()

  private func pulled(_ id: String, _ history: [String], _ n: Int64, deleted: Bool = false)
    -> PulledRevision
  {
    PulledRevision(id: id, history: history, isDeleted: deleted, body: ["n": .int(n)])
  }

  @Test("a history is remembered without bodies, and takes one sequence", arguments: someEngines)
  func history(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try expect(database.apply(pulled("a", ["4-4444", "3-3333", "2-2222", "1-1111"], 4)))
    try expect(database.lastSequence, equals: 1)
    let revisions = try #require(try database.revisions(of: "a"))
    expect(revisions.map(\.id.description), equals: ["4-4444", "3-3333", "2-2222", "1-1111"])
    expect(revisions.map { $0.body != nil }, equals: [true, false, false, false])
    try expect(database.document("a")?["n"].int, equals: 4)
    // Known already: nothing happens.
    try expect(!database.apply(pulled("a", ["4-4444", "3-3333"], 9)))
    try expect(!database.apply(pulled("a", ["3-3333", "2-2222", "1-1111"], 9)))
    try expect(database.lastSequence, equals: 1)
    try expect(database.document("a")?["n"].int, equals: 4)
  }

  @Test("a branch makes a conflict that the documented revision wins", arguments: someEngines)
  func conflicts(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.apply(pulled("a", ["4-4444", "3-3333", "2-2222", "1-1111"], 4))
    try database.apply(pulled("a", ["5-5555", "4-4545", "3-3030", "2-2222", "1-1111"], 5))
    var document = try #require(try database.document("a"))
    expect(document.revisionID.description, equals: "5-5555")
    expect(document.isConflicted)
    try expect(database.changes().map(\.isConflicted), equals: [true])
    var revisions = try #require(try database.revisions(of: "a"))
    expect(revisions.filter(\.isLeaf).map(\.id.description), equals: ["5-5555", "4-4444"])
    expect(revisions.filter(\.isLeaf).map { $0.body?["n"] }, equals: [5, 4])
    // A shorter branch, arriving later, doesn't win; its body is kept.
    try database.apply(pulled("a", ["3-9999", "2-2222"], 3))
    document = try #require(try database.document("a"))
    expect(document["n"].int, equals: 5)
    revisions = try #require(try database.revisions(of: "a"))
    expect(revisions.filter(\.isLeaf).map { $0.body?["n"] }, equals: [5, 4, 3])
    // Deleting the winner makes the next one current, body and all; and so on.
    try database.delete("a")
    try expect(database.document("a")?.revisionID.description, equals: "4-4444")
    try expect(database.document("a")?["n"].int, equals: 4)
    try database.delete("a")
    try expect(database.document("a")?["n"].int, equals: 3)
    try expect(database.document("a")?.isConflicted, equals: false)
    try database.delete("a")
    try expect(database.document("a") == nil)
    try expect(database.tombstoneCount, equals: 1)
  }

  @Test("a losing branch goes on by its own revisions", arguments: someEngines)
  func losingBranch(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.apply(pulled("a", ["2-bbbb", "1-1111"], 1))
    try database.apply(pulled("a", ["2-aaaa", "1-1111"], 2))
    try expect(database.document("a")?["n"].int, equals: 1)
    try database.apply(pulled("a", ["3-aaaa", "2-aaaa", "1-1111"], 3))
    try expect(database.document("a")?["n"].int, equals: 3)
    try database.apply(pulled("a", ["3-bbbb", "2-bbbb"], 4, deleted: true))
    try expect(database.document("a")?["n"].int, equals: 3)
    try expect(database.document("a")?.isConflicted, equals: false)
    // A revision with a root of its own.
    try database.apply(pulled("a", ["9-cccc", "8-cccc"], 5))
    try expect(database.document("a")?["n"].int, equals: 5)
    try expect(database.document("a")?.isConflicted, equals: true)
    let known = try #require(try database.revisions(of: "a"))
    var bodies: [String: JSONValue] = [:]
    for revision in known { bodies[revision.id.description] = revision.body?["n"] }
    expect(bodies, equals: ["9-cccc": 5, "3-aaaa": 3, "3-bbbb": 4, "2-bbbb": 1, "2-aaaa": 2])
    try database.compact()
    let leaves = try #require(try database.revisions(of: "a")).filter { $0.body != nil }
    expect(!leaves.contains { !$0.isLeaf })
    expect(leaves.count, equals: 3)
  }

  @Test("a history longer than the depth is cut, IDs of 1.x stay as they are", arguments: someEngines)
  func longAndOdd(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.apply(pulled("a", (1...50).reversed().map { "\($0)-0a" }, 1))
    try expect(database.revisions(of: "a")?.count, equals: 20)
    let odd = ["3-foo", "2-953875a1-9bc5-4010-8014-936dfc114f80", "1-ABC"]
    try database.apply(pulled("b", odd, 1))
    try expect(database.revisions(of: "b")?.map(\.id.description), equals: odd)
    // A local save goes on top of it.
    try expect(database.save("b", ["n": 2]).generation, equals: 4)
    try expect(database.apply(pulled(String(repeating: "i", count: 480), ["1-a"], 1)))
  }

  @Test("what can't be a history is refused", arguments: someEngines)
  func refusals(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let refused: [(id: String, history: [String], code: DocumentError.Code)] = [
      ("a", [], .invalidHistory), ("a", ["2-a", "3-b"], .invalidHistory),
      ("a", ["2-a", "2-b"], .invalidHistory), ("a", ["x"], .invalidRevisionID),
      ("a", ["0-a"], .invalidRevisionID), ("", ["1-a"], .invalidDocumentID),
    ]
    for (id, history, expected) in refused {
      try expect(documentCode { try database.apply(pulled(id, history, 1)) }, equals: expected)
    }
    try expect(database.lastSequence, equals: 0)
  }

  @Test(
    "the same revisions in any order give the same winner and the same tree, and the same bytes on every engine"
  )
  func orderOfArrival() throws {
    try withSeed { random in
      for _ in 0..<8 {
        // Random branches that share beginnings, each known by its leaf's history.
        var branches: [[String]] = [["1-00"]]
        for number in 0..<6 {
          let base = branches.randomElement(using: &random) ?? []
          var branch = Array(base.suffix(Int.random(in: 1...base.count, using: &random)))
          for _ in 0..<Int.random(in: 1...3, using: &random) {
            branch.insert("\(branch.count + 1)-\(number)\(Int.random(in: 0...9, using: &random))", at: 0)
          }
          branches.append(branch)
        }
        var reference: [String]?
        for _ in 0..<3 {
          let order = branches.shuffled(using: &random)
          var bytes: [UInt8]?
          for engine in someEngines {
            try withDatabase(engine) { database in
              for branch in order {
                let n = Int64(branch[0].unicodeScalars.reduce(0) { $0 &* 31 &+ Int($1.value) } % 1_000)
                try database.apply(pulled("a", branch, n, deleted: n % 4 == 0))
              }
              // What an ancestor was before it had a child depends on the order.
              let tree = try #require(try database.revisions(of: "a")).map { revision in
                let leaf = revision.isLeaf ? "\(revision.isDeleted) \(revision.body as Any)" : "no leaf"
                return "\(revision.id) on \(revision.parent?.description ?? "nothing"): \(leaf)"
              }
              expect(reference == nil || reference == tree)
              reference = tree
              let stored = try storedTree(database)
              expect(bytes == nil || bytes == stored, "\(engine)")
              bytes = stored
            }
          }
        }
      }
    }
  }

  /// The tree of "a" as it is stored.
  private func storedTree(_ database: Database) throws -> [UInt8] {
    try database.engine.readEntries { transaction in
      let record = try #require(try transaction.record(of: "a"))
      return [UInt8](copying: try DocumentRecord(record.span.bytes).tree)
    }
  }
}
