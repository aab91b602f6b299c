import TestSupport

@testable import Documents

/// Histories deeper than a record: the newest revisions in the record, the older ones in blocks.
@Suite("Deep histories") struct HistoryTests {
  private let databases = TestDatabases()

  private func pulled(_ history: [String], _ n: Int64 = 0, deleted: Bool = false) -> PulledRevision {
    PulledRevision(id: "a", history: history, isDeleted: deleted, body: ["n": .int(n)])
  }

  /// Saves revisions `numbers` of "a", 100 in a transaction.
  private func update(_ database: Database, _ numbers: ClosedRange<Int>) throws {
    for start in stride(from: numbers.lowerBound, through: numbers.upperBound, by: 100) {
      try database.saveBatch(start...min(start + 99, numbers.upperBound)) { number in
        ("a", ["n": .int(Int64(number))])
      }
    }
  }

  /// The version of the record of "a", the revisions in it, and the blocks beside it.
  private func layout(_ database: Database) throws -> (version: UInt8, revisions: Int, blocks: Int) {
    try database.engine.readEntries { transaction in
      var found = (UInt8(0), 0, 0)
      if let bytes = try transaction.record(of: "a") {
        let tree = RevisionTree()
        try tree.decode(DocumentRecord(bytes.span.bytes).tree)
        found = (bytes[0], tree.nodes.count, 0)
      }
      if let history = try transaction.keyspace(named: "history") {
        found.2 = try transaction.count(of: history)
      }
      return found
    }
  }

  private func faults(_ database: Database) throws -> [String] {
    try storageFaults(database) + database.check(deep: true).map(\.description)
  }

  private func generations(_ database: Database) throws -> [Int] {
    try database.revisions(of: "a", withBodies: false)?.map { Int($0.id.generation) } ?? []
  }

  @Test("a thousand revisions are all there, and the record stays small", arguments: someEngines)
  func thousand(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.maximumTreeDepth = 1_000 }
    try update(database, 1...64)
    var found = try layout(database)
    expect(found == (1, 64, 0))
    try expect(database.engine.read { try $0.keyspaces() }["history"] == nil)
    try update(database, 65...65)
    found = try layout(database)
    expect(found == (2, 33, 1))
    try update(database, 66...2_222)
    found = try layout(database)
    expect(found.version == 2 && (33...64).contains(found.revisions))
    expect((30...32).contains(found.blocks))
    let revisions = try #require(try database.revisions(of: "a"))
    expect(revisions.map { Int($0.id.generation) }, equals: Array((1_223...2_222).reversed()))
    let numbers: [JSONValue?] = (1_223...2_222).reversed().map { .int($0) }
    expect(revisions.map { $0.body?["n"] }, equals: numbers)
    for (child, parent) in zip(revisions, revisions.dropFirst()) { expect(child.parent, equals: parent.id) }
    expect(revisions.last?.parent == nil)
    try expect(faults(database), equals: [])
    // One of them, and what two have in common.
    let old = revisions[700]
    try expect(database.revision(old.id, of: "a")?.parent, equals: revisions[701].id)
    try expect(database.commonAncestor(of: revisions[3].id, and: old.id, in: "a")?.id, equals: old.id)
    try expect(database.leaves(of: "a").map(\.id), equals: [revisions[0].id])
    // What is known is known, and what was pruned isn't.
    let before = try database.lastSequence
    try expect(!database.apply(pulled([old.id.description])))
    try expect(!database.apply(pulled([revisions[999].id.description])))
    let refused = try documentCode { try database.save("a", ["n": 0], basedOn: old.id, onConflict: .fail) }
    expect(refused, equals: .conflict)
    try expect(database.lastSequence, equals: before)
    try expect(database.purge("a", branch: revisions[0].id), equals: revisions.map(\.id))
    found = try layout(database)
    expect(found == (0, 0, 0))
    try expect(faults(database), equals: [])
  }

  @Test("a branch from an old revision, its end, and what follows", arguments: someEngines)
  func branches(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.maximumTreeDepth = 300 }
    try update(database, 1...500)
    let revisions = try #require(try database.revisions(of: "a", withBodies: false))
    let base = revisions[250]
    let branch =
      (1...3).reversed().map { "\(base.id.generation + UInt64($0))-ab0\($0)" } + [base.id.description]
    try expect(database.apply(pulled(branch, -1)))
    var found = try layout(database)
    expect(found == (1, 303, 0))
    try expect(database.document("a")?.isConflicted, equals: true)
    try expect(
      database.commonAncestor(of: revisions[0].id, and: #require(RevisionID(branch[0])), in: "a")?.id,
      equals: base.id)
    try expect(faults(database), equals: [])
    try expect(database.purge("a", branch: #require(RevisionID(branch[0]))).count, equals: 3)
    try update(database, 501...501)
    found = try layout(database)
    expect(found.version == 2 && found.revisions <= 64 && found.blocks > 0)
    try expect(generations(database), equals: Array((202...501).reversed()))
    // The same by a save, and by sync with a resolver that has to know the common ancestor.
    let saved = try database.save("a", ["n": -2], basedOn: revisions[200].id, onConflict: .allowConflict)
    expect(saved.generation, equals: revisions[200].id.generation + 1)
    try database.purge("a", branch: saved.revisionID)
    try update(database, 502...502)
    try database.apply(
      pulled(branch, -3),
      resolvingWith: ClosureConflictResolver { conflict in
        expect(conflict.commonAncestor?.id, equals: base.id)
        expect(conflict.commonAncestor?.body, equals: ["n": .int(Int64(base.id.generation))])
        return .local
      })
    try expect(database.document("a")?["n"].int, equals: 502)
    try expect(faults(database), equals: [])
    // A root of its own that isn't known.
    try expect(database.apply(pulled(["900-cc", "899-cc"], 9)))
    try expect(faults(database), equals: [])
  }

  @Test("the depth goes down and up again", arguments: someEngines)
  func depths(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.setMaximumTreeDepth(500)
    try update(database, 1...600)
    try database.setMaximumTreeDepth(200)
    try expect(generations(database).count, equals: 500)
    try update(database, 601...601)
    try expect(generations(database), equals: Array((402...601).reversed()))
    try expect(faults(database), equals: [])
    // What was pruned doesn't come back, though it may still be stored.
    try database.setMaximumTreeDepth(500)
    try update(database, 602...610)
    try expect(generations(database), equals: Array((402...610).reversed()))
    try update(database, 611...700)
    try expect(generations(database), equals: Array((402...700).reversed()))
    try expect(faults(database), equals: [])
    try database.setMaximumTreeDepth(20)
    try update(database, 701...701)
    try expect(generations(database), equals: Array((682...701).reversed()))
    try expect(layout(database) == (1, 20, 0))
    try expect(faults(database), equals: [])
    // A long history at once; a tombstone, and a document over it.
    try database.setMaximumTreeDepth(500)
    let current = try #require(try database.document("a")).revisionID.description
    try expect(database.apply(pulled((702...950).reversed().map { "\($0)-0a" } + [current], 950)))
    try expect(generations(database), equals: Array((682...950).reversed()))
    try database.delete("a")
    try expect(layout(database).version, equals: 2)
    try update(database, 952...952)
    try expect(generations(database).count, equals: 271)
    try database.compact()
    try expect(generations(database).count, equals: 271)
    try expect(faults(database), equals: [])
    try database.setExpiration(of: "a", at: Date(timeIntervalSince1970: 1))
    _ = try database.purgeExpired(asOf: Date())
    try expect(layout(database) == (0, 0, 0))
    try expect(faults(database), equals: [])
  }

  @Test("files with all in the record are taken over, and equal those with blocks", arguments: someEngines)
  func takenOver(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    func open(_ name: String, _ size: Int?) throws -> Database {
      var options = try options(engine)
      options.maximumTreeDepth = 400
      options.revisionsPerBlock = size
      return try Database.open(name, in: directory.path, options: options)
    }
    var old = try open("old", 1_000_000)
    try update(old, 1...450)
    try expect(layout(old) == (1, 400, 0))
    try old.close()
    old = try open("old", nil)
    let new = try open("new", 3)
    try update(new, 1...450)
    try expect(layout(new).blocks > 100)
    try expectEqual(old, new)
    try update(old, 451...451)
    try update(new, 451...451)
    try expect(layout(old).version, equals: 2)
    try expectEqual(old, new)
    try expect(faults(old), equals: [])
    // The other way: blocks of three, then of 32.
    try new.close()
    let again = try open("new", nil)
    for database in [old, again] { try update(database, 452...900) }
    try expectEqual(old, again)
    try expect(faults(again), equals: [])
    try again.close()
    let target: EngineName = engine == .lmdb ? .sqlite : .lmdb
    try Database.convert("new", in: directory.path, to: target, at: "other", key: options(engine).key)
    let converted = try Database.open(
      "other", in: directory.path, options: DatabaseOptions(engine: target, maximumTreeDepth: 400))
    try expectEqual(old, converted)
    for database in [old, converted] { try update(database, 901...1_000) }
    try expectEqual(old, converted)
    try expect(faults(converted), equals: [])
    try old.close()
    try converted.close()
  }

  static let rounds = isLong ? 40 : 2

  /// The same operations on a database with small blocks, and on one that keeps every tree whole in its record.
  @Test("any operations give what whole trees in records give", arguments: someEngines, 0..<rounds)
  func besideWholeTrees(_ engine: EngineName, _ round: Int) throws {
    try withSeed(offset: UInt64(round)) { random in
      let directory = TemporaryDirectory()
      let keeps = Bool.random(using: &random)
      let sizes = [Int.random(in: 1...6, using: &random), 1_000_000]
      let databases = try sizes.enumerated().map { index, size in
        var options = try options(engine)
        options.keepsReplacedBodies = keeps
        options.revisionsPerBlock = size
        return try Database.open("\(index)", in: directory.path, options: options)
      }
      // Deep to begin with.
      for database in databases {
        try database.setMaximumTreeDepth(25)
        try update(database, 1...20)
      }
      var deepest = try layout(databases[0]).blocks
      for step in 0..<120 {
        let operation = try self.operation(on: databases[1], &random)
        let results = databases.map { database in
          do { return try operation(database) } catch {
            return (error as? DocumentError)?.code.rawValue ?? "\(error)"
          }
        }
        expect(results[0], equals: results[1], "step \(step)")
        deepest = max(deepest, try layout(databases[0]).blocks)
        guard step % 5 == 4 else { continue }
        try expectEqual(databases[0], databases[1])
        for database in databases {
          let found = try faults(database)
          expect(found, equals: [], "step \(step): \(found)")
        }
        try expect(layout(databases[1]).blocks, equals: 0)
      }
      expect(deepest > 1, "no history was deep: nothing was tested")
      for database in databases { try database.close() }
    }
  }

  private func operation(
    on database: Database, _ random: inout SeededGenerator
  ) throws -> @Sendable (Database) throws -> String {
    func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
    let revisions = try database.revisions(of: "a") ?? []
    let known = revisions.randomElement(using: &random)
    let leaf = revisions.filter(\.isLeaf).randomElement(using: &random)
    let n = Int64(below(1_000_000))
    switch below(24) {
    case 0..<8:
      let count = 1 + below(12)
      return { database in
        // Another document, so that nothing of one gets into the other.
        try database.save("other\(n % 9)", ["n": .int(n)])
        return try (0..<count).map {
          try database.save("a", ["n": .int(n + Int64($0))]).revisionID.description
        }
        .joined(separator: " ")
      }
    case 8..<11:
      // From elsewhere: on top of what is current, of something else, or of nothing.
      let top = [known, leaf, revisions.first][below(3)]
      let base = below(6) == 0 ? nil : top
      let first = (base?.id.generation ?? UInt64(below(30))) + 1
      var history = (0..<(1 + below(8))).map {
        "\(first + UInt64($0))-\(["0a", "ff", "Text"][below(3)])\($0)0"
      }
      history.reverse()
      if let base { history.append(base.id.description) }
      if let base, below(2) == 0 {
        // With all its ancestors, and older ones than there are here.
        var (oldest, next) = (base.id.generation, base.parent)
        while let parent = next {
          history.append(parent.description)
          oldest = parent.generation
          next = revisions.first { $0.id == parent }?.parent
        }
        for number in 0..<below(40) where oldest > 1 {
          oldest -= 1
          history.append("\(oldest)-0d\(number % 2)0")
        }
      }
      let revision = pulled(history, n, deleted: below(6) == 0)
      return { "\(try $0.apply(revision))" }
    case 11, 12:
      guard let known else { return { _ in "" } }
      return {
        "\(try $0.save("a", ["n": .int(n)], basedOn: known.id, onConflict: .allowConflict).revisionID)"
      }
    case 13:
      guard let known else { return { _ in "" } }
      return { "\(try $0.save("a", ["n": .int(n)], basedOn: known.id, onConflict: .fail).revisionID)" }
    case 14, 15:
      guard let leaf else { return { _ in "" } }
      return { database in
        try database.resolveConflict(of: "a", keeping: leaf.id, merged: ["n": .int(n)])
        return ""
      }
    case 16, 17, 18:
      // Every branch but the current one, so that it becomes a single one again.
      let others = revisions.filter { $0.isLeaf && !$0.isCurrent }.map(\.id)
      return { database in
        try others.map { "\(try database.purge("a", branch: $0))" }.joined()
      }
    case 19:
      let depth = [1, 3, 10, 25, 60][below(5)]
      return { database in
        try database.setMaximumTreeDepth(depth)
        return ""
      }
    case 20: return { "\(try $0.delete("a").revisionID)" }
    case 21:
      let data: JSONValue = ["_attachments": ["x": ["data": .string("aGk=")]], "n": .int(n)]
      return { "\(try $0.save("a", .value(data)).revisionID)" }
    case 22:
      let stub: JSONValue = ["_attachments": ["x": ["stub": true]], "n": .int(n)]
      return { "\(try $0.save("a", .value(stub)).revisionID)" }
    default:
      guard let known, let other = revisions.randomElement(using: &random), below(4) > 0 else {
        let purges = below(3) == 0
        return { database in
          if purges { try database.purge("a") } else { try database.compact() }
          return ""
        }
      }
      return { database in
        let ancestor = try database.commonAncestor(of: known.id, and: other.id, in: "a")
        return "\(ancestor?.id as Any) \(ancestor?.hasBody as Any) \(ancestor?.parent as Any)"
      }
    }
  }

  private func expectEqual(_ a: Database, _ b: Database) throws {
    try expect(differences(a, b, sequences: true), equals: [])
  }
}
