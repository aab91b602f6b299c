import TestSupport

@testable import Touchstone

/// Reads, saves with an expected revision, refusals and updates of several threads and processes can be put in
/// one order, in which each of them is right.
@Suite("One order of what many do") struct LinearizabilityTests {
  private static let ids = ["a", "b", "c"]

  private func open(_ engine: EngineName, _ directory: TemporaryDirectory) throws -> Database {
    let database = try Database.open("test", in: directory.path, options: options(engine))
    for id in Self.ids { try database.save(id, ["n": 0]) }
    return database
  }

  @Test("threads and processes agree on one order", arguments: sharedEngines)
  func order(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    let (threads, count, processes) = isLong ? (16, 2_000, 4) : (6, 40, 2)
    let histories = Lock([RegisterHistory](repeating: RegisterHistory(), count: Self.ids.count))
    @Sendable func add(_ more: [RegisterHistory]) {
      histories.withLock { all in
        for place in all.indices { all[place].operations += more[place].operations }
      }
    }
    let children = try (1...processes).map {
      try startChild(
        .database,
        [
          "documents", "registers", "\(engine)", directory.path, "\($0 * 100)", "3", "\(count)",
          "\(testSeed)",
        ]
          + Self.ids)
    }
    try onThreads(threads) { thread in
      var client = RegisterClient(database, Self.ids, number: thread, seed: testSeed)
      try client.run(count)
      add(client.histories)
    }
    for child in children {
      try expect(child.wait(), equals: .exited(0), "\(child.outputText.suffix(500)) \(child.errorText)")
      var more = [RegisterHistory](repeating: RegisterHistory(), count: Self.ids.count)
      for line in child.outputText.split(separator: "\n") {
        guard let space = line.firstIndex(of: " "), let place = Int(line[..<space]) else { continue }
        let operation = try #require(RegisterHistory.Operation(String(line[space...].dropFirst())))
        more[place].operations.append(operation)
      }
      expect(more.contains { !$0.operations.isEmpty })
      add(more)
    }
    for (place, history) in histories.withLock({ $0 }).enumerated() {
      expect(history.fault() == nil, "\(Self.ids[place]), TOUCHSTONE_SEED=\(testSeed)")
    }
    try expect(database.check(), equals: [])
    try database.close()
  }

  @Test("commits that fail refuse nobody for what never was", arguments: [EngineName.sqlite, .lmdb])
  func failingCommits(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    try open(engine, directory).close()
    let child = try startChild(
      .database,
      ["documents", "failing-registers", "\(engine)", directory.path, "100", "6", isLong ? "2000" : "60"]
        + ["\(testSeed)"] + Self.ids)
    try expect(child.wait(), equals: .exited(0), "\(child.outputText.suffix(500)) \(child.errorText)")
    var histories = [RegisterHistory](repeating: RegisterHistory(), count: Self.ids.count)
    for line in child.outputText.split(separator: "\n") {
      guard let space = line.firstIndex(of: " "), let place = Int(line[..<space]) else { continue }
      let operation = try #require(RegisterHistory.Operation(String(line[space...].dropFirst())))
      histories[place].operations.append(operation)
    }
    for (place, history) in histories.enumerated() {
      expect(!history.operations.isEmpty)
      expect(history.fault() == nil, "\(Self.ids[place]), TOUCHSTONE_SEED=\(testSeed)")
    }
  }

  @Test("32 threads and another process count one document up, and nobody gives up", arguments: sharedEngines)
  func counting(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try Database.open("test", in: directory.path, options: options(engine))
    try database.save("total", ["n": 0])
    let (threads, count) = (32, isLong ? 200 : 4)
    let child = try startChild(
      .database, "documents", "count", "\(engine)", directory.path, "\(threads)", "\(count)")
    try onThreads(threads) { _ in
      for _ in 0..<count {
        try database.update("total") { $0["n"] = .int(($0["n"].int ?? 0) + 1) }
      }
    }
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    try expect(database.document("total")?["n"].int, equals: Int64(2 * threads * count))
    try expect(database.document("total")?.revisionID.generation, equals: UInt64(1 + 2 * threads * count))
    try database.close()
  }

  @Test("what can't be put in one order is found")
  func faults() {
    typealias Operation = RegisterHistory.Operation
    func fault(_ operations: Operation...) -> String? { RegisterHistory(operations).fault() }
    expect(fault() == nil)
    // Two that overlap come in either order.
    expect(fault(Operation(1, 9, .wrote(1, on: 0)), Operation(2, 8, .wrote(2, on: 1))) == nil)
    expect(fault(Operation(1, 9, .wrote(2, on: 1)), Operation(2, 8, .wrote(1, on: 0))) == nil)
    // A later one on top of an earlier one only.
    expect(fault(Operation(5, 6, .wrote(1, on: 0)), Operation(1, 2, .wrote(2, on: 1))) != nil)
    // A lost one.
    expect(fault(Operation(1, 2, .wrote(1, on: 0)), Operation(3, 4, .wrote(2, on: 0))) != nil)
    // A read of what isn't there yet, or not any more.
    expect(fault(Operation(1, 2, .read(1)), Operation(3, 4, .wrote(1, on: 0))) != nil)
    expect(fault(Operation(1, 2, .wrote(1, on: 0)), Operation(3, 4, .read(0))) != nil)
    expect(fault(Operation(1, 5, .wrote(1, on: 0)), Operation(3, 4, .read(0))) == nil)
    expect(fault(Operation(1, 2, .read(7))) != nil)
    // A refusal because of what never came, or of what was read not to be there yet.
    expect(fault(Operation(1, 2, .refused(on: 0))) != nil)
    expect(fault(Operation(1, 9, .wrote(1, on: 0)), Operation(2, 3, .refused(on: 0))) == nil)
    expect(
      fault(
        Operation(1, 9, .wrote(1, on: 0)), Operation(2, 3, .refused(on: 0)), Operation(4, 5, .read(0))) != nil
    )
    let operation = Operation(3, 4, .wrote(1, on: 0))
    expect(Operation("\(operation)"), equals: operation)
  }
}
