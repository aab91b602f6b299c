import TestSupport

@testable import Documents

/// Histories that reach further back than the document does here.
@Suite("The older part of a history is joined") struct JoinedHistoryTests {
  private let databases = TestDatabases()

  @discardableResult
  private func apply(_ database: Database, _ history: String..., deleted: Bool = false) throws -> Bool {
    try database.apply(
      PulledRevision(id: "a", history: history, isDeleted: deleted, body: ["from": .string(history[0])]))
  }

  private func revisions(_ database: Database) throws -> [String] {
    try database.revisions(of: "a")?.map { $0.id.description } ?? []
  }

  private func faults(_ database: Database) throws -> [String] {
    try storageFaults(database) + database.check(deep: true).map(\.description)
  }

  @Test("a document that began later gets its beginning", arguments: someEngines)
  func beginning(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try apply(database, "5-e")
    try expect(apply(database, "6-f", "5-e", "4-d", "3-c"))
    try expect(revisions(database), equals: ["6-f", "5-e", "4-d", "3-c"])
    try expect(
      database.revisions(of: "a")?.map { $0.parent?.description }, equals: ["5-e", "4-d", "3-c", nil])
    try expect(database.lastSequence, equals: 3)
    try expect(database.changes().map(\.sequence), equals: [3])
    // What is older isn't a conflict, and isn't new.
    try expect(!apply(database, "4-d", "3-c"))
    try expect(database.document("a")?.isConflicted, equals: false)
    try expect(apply(database, "7-g", "6-f", "5-e", "4-d", "3-c"))
    try expect(database.lastSequence, equals: 4)
    // A branch from what was joined.
    try expect(apply(database, "5-z", "4-d"))
    try expect(database.leaves(of: "a").map(\.id.description), equals: ["7-g", "5-z"])
    try expect(faults(database), equals: [])
  }

  @Test("a leaf that another one descends from is no conflict", arguments: someEngines, [true, false])
  func noConflict(_ engine: EngineName, _ keepsBodies: Bool) throws {
    let database = try databases.open(engine) { $0.keepsReplacedBodies = keepsBodies }
    try apply(database, "5-e")
    try apply(database, "3-c")
    try apply(database, "1-a")
    try expect(database.document("a")?.isConflicted, equals: true)
    try apply(database, "6-f", "5-e", "4-d", "3-c", "2-b", "1-a")
    try expect(revisions(database), equals: ["6-f", "5-e", "4-d", "3-c", "2-b", "1-a"])
    try expect(database.document("a")?.isConflicted, equals: false)
    try expect(database.document("a")?["from"].string, equals: "6-f")
    let old = try database.revisions(of: "a")?.first { $0.id.description == "3-c" }
    let kept: JSONValue? = keepsBodies ? ["from": "3-c"] : nil
    expect(old?.isLeaf == false && old?.body == kept)
    try expect(faults(database), equals: [])
  }

  @Test("the current revision may turn out to be an ancestor", arguments: someEngines)
  func current(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.createIndex("from", on: ["`from`"])
    try apply(database, "5-e", deleted: true)
    try apply(database, "3-c")
    try apply(database, "3-x", "2-y")
    try expect(database.document("a")?.revisionID.description, equals: "3-x")
    try apply(database, "6-f", "5-e", "4-d", "3-x", "2-y", deleted: true)
    try expect(database.document("a")?.revisionID.description, equals: "3-c")
    try expect(database.leaves(of: "a", includeDeleted: true).map(\.id.description), equals: ["3-c", "6-f"])
    try expect(faults(database), equals: [])
    try apply(database, "4-k", "3-c", deleted: true)
    try expect(database.document("a") == nil)
    try expect(faults(database), equals: [])
  }

  @Test("a resolver is asked, and what lost may have no branch to end", arguments: someEngines)
  func resolved(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try apply(database, "5-e", deleted: true)
    try apply(database, "3-c")
    let revision = PulledRevision(
      id: "a", history: ["6-f", "5-e", "4-d", "3-c"], isDeleted: false, body: ["from": "6-f"])
    try database.apply(revision, resolvingWith: ClosureConflictResolver { _ in .remote })
    try expect(database.leaves(of: "a", includeDeleted: true).map(\.id.description), equals: ["6-f"])
    try expect(faults(database), equals: [])
  }

  @Test("what pruning would remove isn't joined", arguments: someEngines)
  func pruned(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.maximumTreeDepth = 5 }
    func history(_ newest: Int) -> [String] { (1...newest).reversed().map { "\($0)-a\($0 % 10)" } }
    for newest in 1...12 {
      try database.apply(PulledRevision(id: "a", history: history(newest), isDeleted: false, body: [:]))
      try expect(database.lastSequence, equals: UInt64(newest))
    }
    try expect(revisions(database), equals: Array(history(12).prefix(5)))
    // With conflicts each branch has its depth.
    try apply(database, "12-b", "11-b")
    try database.apply(PulledRevision(id: "a", history: history(13), isDeleted: false, body: [:]))
    try expect(database.lastSequence, equals: 14)
    try apply(database, "13-b", "12-b", "11-b", "10-b", "9-b", "8-b")
    try expect(
      revisions(database).filter { $0.hasSuffix("b") }, equals: ["13-b", "12-b", "11-b", "10-b", "9-b"])
    try expect(faults(database), equals: [])
  }

  @Test("deep histories too", arguments: someEngines)
  func deep(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.maximumTreeDepth = 1_000 }
    func history(_ newest: Int, _ oldest: Int) -> [String] {
      (oldest...newest).reversed().map { "\($0)-a\($0 % 10)" }
    }
    func add(_ newest: Int, _ oldest: Int) throws {
      try database.apply(
        PulledRevision(id: "a", history: history(newest, oldest), isDeleted: false, body: [:]))
    }
    try add(300, 300)
    for newest in 301...400 { try add(newest, newest - 1) }
    try expect(revisions(database).count, equals: 101)
    let last = try database.lastSequence
    try add(401, 150)
    try expect(revisions(database), equals: history(401, 150))
    try expect(database.lastSequence, equals: last + 2)
    try add(402, 150)
    try expect(database.lastSequence, equals: last + 3)
    try expect(faults(database), equals: [])
  }

  @Test("a known revision that comes again with a longer history gets it", arguments: someEngines)
  func known(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.createIndex("from", on: ["`from`"])
    try apply(database, "3-c", "2-b", "1-a")
    try apply(database, "5-e", "4-d", deleted: true)
    try expect(database.document("a")?.revisionID.description, equals: "3-c")
    try expect(!apply(database, "5-e", "4-d", "3-c", "2-b", "1-a", deleted: true))
    try expect(database.leaves(of: "a", includeDeleted: true).map(\.id.description), equals: ["5-e"])
    try expect(revisions(database), equals: ["5-e", "4-d", "3-c", "2-b", "1-a"])
    try expect(database.document("a") == nil)
    // Feeds see that the leaf is gone.
    try expect(database.changes().map(\.sequence), equals: [3])
    try expect(database.changes(since: 2).map(\.isDeleted), equals: [true])
    try expect(!apply(database, "5-e", "4-d", "3-c", "2-b", "1-a", deleted: true))
    try expect(!apply(database, "4-d", "3-c", "2-b", "1-a"))
    try expect(database.lastSequence, equals: 3)
    try expect(faults(database), equals: [])
  }

  @Test("an ancestor that comes again with a longer history gets it too", arguments: someEngines)
  func knownAncestor(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try apply(database, "2-b")
    try apply(database, "6-f", "5-e", "4-d")
    try apply(database, "6-g", "5-e")
    try expect(!apply(database, "4-d", "3-c", "2-b", "1-a"))
    try expect(database.leaves(of: "a").map(\.id.description), equals: ["6-g", "6-f"])
    try expect(
      database.revisions(of: "a")?.map(\.id.description).suffix(5),
      equals: ["5-e", "4-d", "3-c", "2-b", "1-a"])
    try expect(faults(database), equals: [])
  }

  @Test("a leaf in a gap of another history is no leaf once the gap is filled", arguments: someEngines)
  func gap(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try apply(database, "6-f", "2-b", "1-a")
    try apply(database, "5-e", "4-d")
    try apply(database, "4-z", "3-z", "2-b")
    try expect(database.leaves(of: "a").map(\.id.description), equals: ["6-f", "5-e", "4-z"])
    try expect(!apply(database, "6-f", "5-e", "4-d", "3-c", "2-b"))
    try expect(database.leaves(of: "a").map(\.id.description), equals: ["6-f", "4-z"])
    let parents = try database.revisions(of: "a")?.map { "\($0.id) \($0.parent?.description ?? "")" }
    expect(
      Set(parents ?? []),
      equals: [
        "6-f 5-e", "5-e 4-d", "4-d 3-c", "3-c 2-b", "2-b 1-a", "1-a ", "4-z 3-z", "3-z 2-b",
      ])
    try expect(faults(database), equals: [])
  }

  @Test("a history that can't be the branch's changes nothing", arguments: someEngines)
  func contradiction(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try apply(database, "5-e", "4-d", "3-c", "2-b", "1-a")
    try apply(database, "3-z", "2-z")
    try expect(!apply(database, "5-e", "4-d", "3-z", "2-z", "1-z"))
    try expect(database.leaves(of: "a").map(\.id.description), equals: ["5-e", "3-z"])
    try expect(database.lastSequence, equals: 2)
    try expect(faults(database), equals: [])
  }

  /// A tree of revisions as they are somewhere, of which histories tell parts.
  private struct TrueTree {
    var parents: [String: String] = [:]
    var deleted: Set<String> = []
    var revisions: [String] = []

    init(_ count: Int, using random: inout some RandomNumberGenerator) {
      for number in 0..<count {
        let parent =
          revisions.isEmpty || Int.random(in: 0..<12, using: &random) == 0
          ? nil : Bool.random(using: &random) ? revisions.last : revisions.randomElement(using: &random)
        let revision = "\((parent.map(Self.generation) ?? 0) + 1)-\(String(number + 16, radix: 16))"
        if let parent { parents[revision] = parent }
        if Int.random(in: 0..<5, using: &random) == 0 { deleted.insert(revision) }
        revisions.append(revision)
      }
    }

    static func generation(_ revision: String) -> Int { Int(revision.prefix { $0 != "-" }) ?? 0 }

    /// A revision with a part of its ancestors.
    func history(gaps: Bool, using random: inout some RandomNumberGenerator) -> [String] {
      var history = [revisions[Int.random(in: 0..<revisions.count, using: &random)]]
      let length = Int.random(in: 0..<5, using: &random)
      var next = parents[history[0]]
      while let revision = next, history.count <= length {
        if !gaps || Int.random(in: 0..<3, using: &random) > 0 { history.append(revision) }
        next = parents[revision]
      }
      return history
    }
  }

  /// What histories of one tree tell of ancestors.
  private struct Told {
    /// The ancestors of each revision.
    var ancestors: [String: Set<String>] = [:]

    mutating func add(_ history: [String]) {
      for (index, revision) in history.enumerated() {
        ancestors[revision, default: []].formUnion(history[(index + 1)...])
      }
      var before: [String: Set<String>]
      repeat {
        before = ancestors
        for (_, all) in before {
          // They are one line.
          for ancestor in all {
            ancestors[ancestor]?.formUnion(
              all.filter { TrueTree.generation($0) < TrueTree.generation(ancestor) })
          }
        }
        for (revision, all) in ancestors {
          for ancestor in all {
            let further = ancestors[ancestor] ?? []
            ancestors[revision]?.formUnion(further)
          }
        }
      } while ancestors != before
    }

    var leaves: Set<String> { Set(ancestors.keys).subtracting(ancestors.values.joined()) }
  }

  @Test(
    "parts of histories in any order make the tree that they tell", arguments: someEngines, [false, true])
  func anyOrder(_ engine: EngineName, _ gaps: Bool) throws {
    try withSeed { random in
      for round in 0..<12 {
        let database = try databases.open(engine) {
          $0.maximumTreeDepth = 1_000
          if round % 2 == 0 { $0.revisionsPerBlock = 2 }
        }
        let tree = TrueTree(Int.random(in: 3...24, using: &random), using: &random)
        var told = Told()
        var trace: [String] = []
        for _ in 0..<20 {
          let history = tree.history(gaps: gaps, using: &random)
          trace.append(history.joined(separator: ","))
          let isDeleted = tree.deleted.contains(history[0])
          try database.apply(
            PulledRevision(
              id: "a", history: history, isDeleted: isDeleted, body: ["from": .string(history[0])]))
          told.add(history)
          let leaves = try database.leaves(of: "a", includeDeleted: true)
          expect(Set(leaves.map(\.id.description)), equals: told.leaves, "\(trace)")
          let stored = try database.revisions(of: "a") ?? []
          expect(Set(stored.map(\.id.description)), equals: Set(told.ancestors.keys), "\(trace)")
          let parents = Dictionary(
            stored.compactMap { node in node.parent.map { (node.id.description, $0.description) } },
            uniquingKeysWith: { first, _ in first })
          for (revision, ancestors) in told.ancestors {
            let found = sequence(first: revision) { parents[$0] }.dropFirst()
            expect(Set(found), equals: ancestors, "\(revision) after \(trace)")
          }
          let live = told.leaves.subtracting(tree.deleted)
          let winner = (live.isEmpty ? told.leaves : live).compactMap { RevisionID($0) }.max()
          expect(leaves.first?.id, equals: winner, "\(trace)")
        }
        try expect(faults(database), equals: [], "\(trace)")
      }
    }
  }

  @Test("pruning never takes a leaf", arguments: someEngines)
  func anyOrderPruned(_ engine: EngineName) throws {
    try withSeed { random in
      for _ in 0..<12 {
        let database = try databases.open(engine) {
          $0.maximumTreeDepth = Int.random(in: 1...4, using: &random)
          $0.revisionsPerBlock = 2
        }
        let tree = TrueTree(Int.random(in: 3...24, using: &random), using: &random)
        var told = Told()
        var trace: [String] = []
        for _ in 0..<20 {
          let history = tree.history(gaps: Bool.random(using: &random), using: &random)
          trace.append(history.joined(separator: ","))
          try database.apply(
            PulledRevision(id: "a", history: history, isDeleted: tree.deleted.contains(history[0]), body: [:])
          )
          told.add(history)
          let leaves = Set(try database.leaves(of: "a", includeDeleted: true).map(\.id.description))
          expect(told.leaves.isSubset(of: leaves), "\(trace)")
          expect(leaves.isDisjoint(with: history.dropFirst()), "\(trace)")
        }
        try expect(faults(database), equals: [], "\(trace)")
      }
    }
  }
}
