import Query
import StorageConformance
import TestSupport

@testable import Documents
@testable import Storage
@testable import Touchstone

/// What a process keeps in memory from one transaction to the next, while others commit in between.
@Suite("Commits of others between transactions") struct ForeignCommitTests {
  private static let kinds: [any IndexKind] = [ValueIndexKind(), FullTextIndexKind()]

  /// Another process's writes: it opens the documents anew each time, and knows nothing of this one.
  private final class Others: Sendable {
    private let generator = Lock(SeededGenerator(seed: testSeed &+ 1))
    private let last = Lock(0)
    let mayChangeIndexes: Bool

    init(mayChangeIndexes: Bool) { self.mayChangeIndexes = mayChangeIndexes }

    func commit(_ engine: any StorageEngine) throws {
      var options = DocumentStore.Options(indexKinds: ForeignCommitTests.kinds)
      options.path = "others"
      guard try engine.read({ try DocumentStore.storedFormat($0, in: "") }) != nil else { return }
      let store = try DocumentStore(engine: engine, options: options)
      let (kind, number) = generator.withLock { ($0.below(10), $0.below(30)) }
      let count = last.withLock { last in
        last += 1
        return last
      }
      let text = JSONValue.string("w\(number % 24) w\(count % 24) w\(count * 7 % 24)")
      switch kind {
      case 0: try notGone { try store.delete("d\(number)") }
      case 1: try notGone { try store.purge("d\(number)") }
      case 2 where mayChangeIndexes:
        let indexes = try store.indexes
        if indexes.contains(where: { $0.name == "theirs" }) {
          _ = try store.deleteIndex("theirs")
        } else if let like = indexes.first(where: { $0.name == "n" }) {
          try store.createIndex("theirs", kind: like.kind, definition: like.definition)
        }
      default:
        try store.save("d\(number)", ["n": .int(Int64(count % 6)), "text": text, "theirs\(count % 200)": 1])
      }
    }

    private func notGone(_ body: () throws -> Void) throws {
      do { try body() } catch let error as DocumentError where error.code == .notFound {}
    }
  }

  private func run(_ engine: EngineName, conflicts: Int? = nil, mayChangeIndexes: Bool) throws {
    let others = Others(mayChangeIndexes: mayChangeIndexes)
    let strictness = Strictness(conflicts: conflicts, seed: testSeed, strangers: { try others.commit($0) })
    try withStrictDatabase(engine, strictness) { database in
      try IndexedTexts.makeIndexes(database)
      var texts = IndexedTexts(database, seed: testSeed)
      for _ in 0..<(isLong ? 40 : 3) {
        try texts.change(isLong ? 300 : 60)
        try expect(IndexedTexts.faults(database), equals: [], "TOUCHSTONE_SEED=\(testSeed)")
      }
      try database.compact()
      try texts.change(20)
      try expect(IndexedTexts.faults(database), equals: [], "TOUCHSTONE_SEED=\(testSeed)")
      try expect(storageFaults(database), equals: [])
    }
  }

  @Test("indexes stay right when others change documents", arguments: [EngineName.sqlite, .lmdb])
  func documents(_ engine: EngineName) throws { try run(engine, mayChangeIndexes: false) }

  @Test("indexes stay right when others change indexes too", arguments: [EngineName.sqlite, .lmdb])
  func indexes(_ engine: EngineName) throws { try run(engine, mayChangeIndexes: true) }

  @Test("indexes stay right when transactions conflict too", arguments: [EngineName.sqlite, .lmdb])
  func conflicts(_ engine: EngineName) throws { try run(engine, conflicts: 4, mayChangeIndexes: true) }

  @Test("two processes write a database with a full-text index at the same time", arguments: sharedEngines)
  func processes(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try Database.open(
      "test", in: directory.path, options: options(engine, durability: .normal))
    try IndexedTexts.makeIndexes(database)
    let count = isLong ? 3_000 : 150
    let child = try startChild(
      .database, "documents", "texts", "\(engine)", directory.path, "\(testSeed)", "\(count)")
    var texts = IndexedTexts(database, seed: testSeed &+ 1)
    try texts.change(count)
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    try texts.change(count / 10)
    try expect(IndexedTexts.faults(database), equals: [], "TOUCHSTONE_SEED=\(testSeed)")
    try database.close()
  }

  @Test("the depth of trees that another process sets holds from the next write on", arguments: sharedEngines)
  func treeDepth(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try Database.open(
      "test", in: directory.path, options: options(engine, durability: .normal))
    try expect(database.maximumTreeDepth, equals: 20)
    let child = try startChild(.database, "documents", "depth", "\(engine)", directory.path, "3")
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    try expect(database.maximumTreeDepth, equals: 3)
    for number in 0..<6 { try database.save("a", ["n": .int(Int64(number))]) }
    try expect(database.revisions(of: "a")?.count, equals: 3)
    try database.setMaximumTreeDepth(5)
    try expect(database.maximumTreeDepth, equals: 5)
    for number in 0..<6 { try database.save("a", ["n": .int(Int64(number))]) }
    try expect(database.revisions(of: "a")?.count, equals: 5)
    try database.close()
  }
}
