import TestSupport

@testable import Documents
@testable import Touchstone

/// Documents with many leaves, whose record a transaction writes once.
@Suite("Documents with many leaves") struct WideTreeTests {
  private let databases = TestDatabases()

  private func revision(_ number: Int, _ generation: Int = 2) -> String {
    "\(generation)-\(sha1(Array("leaf \(number)".utf8)))"
  }

  private func leaf(_ number: Int, of id: String = "wide") -> PulledRevision {
    PulledRevision(
      id: id, history: [revision(number), "1-00aa"], isDeleted: false, body: ["n": .int(Int64(number))])
  }

  private func faults(_ database: Database) throws -> [String] {
    try storageFaults(database) + database.check(deep: true).map(\.description)
  }

  // MARK: The same as one by one

  private enum Operation {
    case apply(String, [String], deleted: Bool, remote: Bool)
    case save(String, base: String?, n: Int, ConcurrencyControl)
    case delete(String, base: String?, ConcurrencyControl)
    case purgeBranch(String, String)
    case purge(String)
    case resolve(String, String, merged: Int?)
    case read(String)
  }

  /// A transaction of many changes stores the same bytes as a transaction of each.
  @Test(
    "stored are the same bytes as without this", arguments: someEngines,
    0..<times(isStrict ? 2 : 6, sanitized: 6, long: 60))
  func sameBytes(_ engine: EngineName, _ round: Int) throws {
    try withSeed(offset: UInt64(round)) { random in
      let depth = [2, 3, 5, 20, 1, 4][round % 6]
      let keeps = Bool.random(using: &random)
      let (one, many) = try (
        databases.open(engine) { set(&$0, depth, keeps, wide: .max) },
        databases.open(engine) { set(&$0, depth, keeps, wide: 2) }
      )
      var remotes: [UInt32] = []
      for database in [one, many] {
        try database.createIndex("n", on: ["n"])
        remotes.append(try database.store.remoteNumber("other"))
      }
      for batch in 0..<25 {
        var operations: [(Operation, String)] = []
        for _ in 0..<Int.random(in: 1...40, using: &random) {
          let operation = try randomOperation(one, &random)
          operations.append((operation, run(operation, on: one, remote: remotes[0])))
        }
        try many.inBatch {
          for (operation, expected) in operations {
            expect(run(operation, on: many, remote: remotes[1]), equals: expected, "\(batch): \(operation)")
          }
        }
        let isSame = try entries(many) == entries(one)
        try #require(isSame, "\(batch): \(operations.map(\.0))")
      }
      for database in [one, many] { try expect(faults(database), equals: []) }
    }
  }

  private func set(_ options: inout DatabaseOptions, _ depth: Int, _ keeps: Bool, wide: Int) {
    options.maximumTreeDepth = depth
    options.keepsReplacedBodies = keeps
    options.compaction = .off
    options.wideTree = wide
  }

  /// The entries of all keyspaces but for the identity of the database and the indexes. The check compares these with the documents.
  private func entries(_ database: Database) throws -> [String: [[UInt8]]] {
    var entries: [String: [[UInt8]]] = [:]
    try database.engine.readEntries { transaction in
      for (name, keyspace) in try transaction.keyspaces() where name != "meta" && !name.hasPrefix("index.") {
        try transaction.scan(keyspace) { key, value in
          entries[name, default: []] += [[UInt8](copying: key), [UInt8](copying: value)]
          return true
        }
      }
    }
    return entries
  }

  private func randomOperation(_ database: Database, _ random: inout SeededGenerator) throws -> Operation {
    func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
    let id = below(8) == 0 ? "b" : "a"
    let known = try database.revisions(of: id) ?? []
    let leaves = known.filter(\.isLeaf)
    let base = below(4) == 0 ? known.randomElement(using: &random) : leaves.randomElement(using: &random)
    let control = [ConcurrencyControl.lastWriteWins, .fail, .allowConflict][below(3)]
    switch below(20) {
    case 0..<11:
      var history: [String] = []
      var generation = below(4)
      if below(5) > 0, let ancestor = known.randomElement(using: &random) {
        generation = Int(ancestor.id.generation)
        history = [ancestor.id.description]
        var next = ancestor.parent
        while let parent = next, below(4) > 0 {
          history.append(parent.description)
          next = known.first { $0.id == parent }?.parent
        }
        // Older ones than are known here.
        if next == nil, below(4) == 0, let last = history.last.flatMap({ RevisionID($0) }),
          last.generation > 1
        {
          history.append("\(last.generation - 1)-\(below(3) == 0 ? "00aa" : "0\(below(9))")")
        }
      }
      for _ in 0..<(below(6) == 0 ? below(5) : 1) {
        generation += below(9) == 0 ? 2 : 1
        history.insert("\(generation)-\(below(4) == 0 ? "T" : "")\(10 + below(90))", at: 0)
      }
      if history.isEmpty { history = ["1-00aa"] }
      return .apply(id, history, deleted: below(6) == 0, remote: below(4) == 0)
    case 11..<14: return .save(id, base: base?.id.description, n: below(5), control)
    case 14..<16: return .delete(id, base: base?.id.description, control)
    case 16 where !leaves.isEmpty: return .purgeBranch(id, leaves[below(leaves.count)].id.description)
    case 17 where !leaves.isEmpty && below(12) == 0:
      return .resolve(
        id, leaves[below(leaves.count)].id.description, merged: below(2) == 0 ? nil : below(9))
    case 18 where below(15) == 0: return .purge(id)
    default: return .read(id)
    }
  }

  /// Runs it; what came of it as text.
  private func run(_ operation: Operation, on database: Database, remote: UInt32) -> String {
    do {
      switch operation {
      case .apply(let id, let history, let deleted, remote: true):
        let revision = SyncRevision(
          id: id, history: history, isDeleted: deleted, body: .json(Array(#"{"n":\#(history.count)}"#.utf8)))
        return "\(try database.store.apply([revision], .allow, remote: remote))"
      case .apply(let id, let history, let deleted, remote: false):
        return try
          "\(database.apply(PulledRevision(id: id, history: history, isDeleted: deleted, body: ["n": 7])))"
      case .save(let id, let base, let n, let control):
        return try database.save(
          id, .value(["n": .int(Int64(n))]), basedOn: base.flatMap { RevisionID($0) }, onConflict: control
        ).revisionID.description
      case .delete(let id, let base, let control):
        return try database.delete(id, basedOn: base.flatMap { RevisionID($0) }, onConflict: control)
          .revisionID
          .description
      case .purgeBranch(let id, let leaf):
        return "\(try database.purge(id, branch: #require(RevisionID(leaf))))"
      case .purge(let id):
        try database.purge(id)
        return "purged"
      case .resolve(let id, let leaf, let merged):
        try database.resolveConflict(
          of: id, keeping: #require(RevisionID(leaf)), merged: merged.map { ["n": .int(Int64($0))] })
        return "resolved"
      case .read(let id):
        let document = try database.document(id, includeDeleted: true)
        return try "\(String(describing: document?.revisionID)) \(database.leaves(of: id).map(\.id))"
      }
    } catch { return (error as? DocumentError)?.code.rawValue ?? "\(error)" }
  }

  // MARK: Reading in between

  @Test("reads of the same transaction see each change", arguments: someEngines)
  func readsInBetween(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.wideTree = 4 }
    try database.createIndex("n", on: ["n"])
    try database.inBatch {
      var highest = ""
      for number in 0..<60 {
        try database.apply(leaf(number))
        if number % 5 == 0 { try database.save("other", ["n": .int(Int64(number))]) }
        highest = max(highest, revision(number))
        guard number % 7 == 0 else { continue }
        try expect(database.document("wide")?.revisionID.description, equals: highest)
        try expect(database.leaves(of: "wide").count, equals: number + 1)
        let read = try database.read { try $0.document("wide")?.revisionID.description }
        expect(read, equals: highest)
      }
      for number in 0..<60 {
        let revision = try #require(RevisionID(revision(number)))
        try database.delete("wide", basedOn: revision, onConflict: .fail)
        try expect(database.documentCount, equals: number == 59 ? 1 : 2)
      }
      try expect(database.tombstoneCount, equals: 1)
    }
    try expect(database.document("wide") == nil)
    try expect(faults(database), equals: [])
  }

  @Test("a transaction that fails leaves nothing", arguments: someEngines)
  func failure(_ engine: EngineName) throws {
    struct Undo: Error {}
    let database = try databases.open(engine) { $0.wideTree = 4 }
    try database.inBatch { for number in 0..<20 { try database.apply(leaf(number)) } }
    let before = try entries(database)
    do {
      try database.inBatch {
        for number in 20..<60 { try database.apply(leaf(number)) }
        throw Undo()
      }
    } catch is Undo {}
    try expect(entries(database), equals: before)
    // What the failed one had in memory isn't used.
    try database.inBatch { for number in 30..<40 { try database.apply(leaf(number)) } }
    try expect(database.conflicts(of: "wide").count, equals: 30)
    try expect(faults(database), equals: [])
  }

  @Test("observers hear of each change", arguments: someEngines)
  func observers(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.wideTree = 4 }
    let seen = Lock<[String]>([])
    let token = try database.observe { change in
      seen.withLock {
        $0 += change.changes.map {
          "\($0.documentID) \(String(describing: $0.revisionID)) \($0.isConflicted)"
        }
      }
    }
    try database.inBatch { for number in 0..<40 { try database.apply(leaf(number)) } }
    let current = try database.document("wide")?.revisionID
    let expected = "wide \(String(describing: current)) true"
    eventually { seen.withLock { $0 } == [expected] }
    token.cancel()
  }

  // MARK: Work

  /// How many nodes the trees of a database's writer have looked at while `body` ran.
  private func work(_ database: Database, _ body: () throws -> Void) throws -> Int {
    let before = try database.store.writer.tree.work
    try body()
    return try database.store.writer.tree.work - before
  }

  @Test("the work of a transaction grows with n log n", arguments: someEngines)
  func counted(_ engine: EngineName) throws {
    let count = 2_000
    let database = try databases.open(engine)
    /// A bound of c n log n, far below n² = 4,000,000.
    let bound = 24 * count * 11 / 10
    let inserted = try work(database) {
      try database.inBatch { for number in 0..<count { try database.apply(leaf(number)) } }
    }
    expect(inserted < bound, "\(inserted)")
    let known = try work(database) {
      try database.inBatch { for number in 0..<count { try database.apply(leaf(number)) } }
    }
    expect(known < bound, "\(known)")
    let purged = try work(database) {
      try database.inBatch {
        for number in 0..<500 { try database.purge("wide", branch: #require(RevisionID(revision(number)))) }
      }
    }
    expect(purged < bound, "\(purged)")
    let saved = try work(database) {
      try database.inBatch {
        for number in 500..<1_000 {
          let base = try #require(RevisionID(revision(number)))
          try database.save("wide", ["n": 1], basedOn: base, onConflict: .fail)
        }
      }
    }
    expect(saved < bound, "\(saved)")
    let resolved = try work(database) {
      let current = try #require(database.document("wide")?.revisionID)
      try database.resolveConflict(of: "wide", keeping: current)
    }
    expect(resolved < bound, "\(resolved)")
    try expect(database.leaves(of: "wide").count, equals: 1)
    try expect(faults(database), equals: [])
  }

  @Test("one change of a wide tree doesn't decode it again", arguments: someEngines)
  func singly(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.inBatch { for number in 0..<1_000 { try database.apply(leaf(number)) } }
    // Each commit sorts and encodes the nodes; it finds them as it left them.
    for number in 1_000..<1_010 {
      let work = try work(database) { try database.apply(leaf(number)) }
      expect(work < 2_100, "\(work)")
    }
    // Another document takes the place.
    try database.save("other", ["n": 1])
    try database.save("other", ["n": 2])
    try database.apply(leaf(1_010))
    try expect(database.conflicts(of: "wide").count, equals: 1_011)
    try expect(faults(database), equals: [])
  }
}
