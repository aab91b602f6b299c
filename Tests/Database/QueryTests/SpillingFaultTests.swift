import Query
import TestSupport

/// Temporary files of queries on a machine whose calls fail, in processes that are killed, and of queries that are ended. `database-child` makes
/// the queries and looks at what is left of them.
@Suite("Temporary files of queries when something fails") struct SpillingFaultTests {
  private let directory = TemporaryDirectory()
  private let temporary = TemporaryDirectory()

  private func start(_ command: String, _ engine: EngineName, _ more: String...) throws -> ChildProcess {
    try startChild(
      .database, ["spilling", command, "\(engine)", directory.path, temporary.path] + more)
  }

  /// Lets a process end well. Returns the number that it says.
  private func run(_ command: String, _ engine: EngineName, _ more: String...) throws -> Int {
    let child = try startChild(
      .database, ["spilling", command, "\(engine)", directory.path, temporary.path] + more)
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText), seed \(testSeed)")
    try expect(temporary.names(), equals: [])
    return child.wholeLines.last.flatMap { Int($0.dropFirst("done ".count)) } ?? 0
  }

  @Test(
    "a full disk and a failing call are errors with the directory, and leave nothing",
    .enabled(if: !isSanitized), arguments: someEngines)
  func failing(_ engine: EngineName) throws {
    for seed in 0..<(isLong ? UInt64(20) : 1) {
      try expect(run("fails", engine, "\(testSeed &+ seed)"), equals: 102)
    }
  }

  @Test(
    "a query that is cancelled, or whose time is over, at a call on its files leaves nothing",
    .enabled(if: !isSanitized), arguments: someEngines)
  func ended(_ engine: EngineName) throws {
    for seed in 0..<(isLong ? UInt64(20) : 1) {
      try expect(run("ends", engine, "\(testSeed &+ seed)"), equals: 36)
    }
  }

  @Test("a directory where nobody may write is named", arguments: someEngines)
  func refused(_ engine: EngineName) throws {
    try expect(run("refused", engine), equals: 6)
  }

  @Test(
    "a process that is killed in the middle of a query leaves no file", .enabled(if: !isSanitized),
    arguments: someEngines)
  func killed(_ engine: EngineName) throws {
    for (call, number) in [("open", 0), ("write", 6), ("write", 37), ("read", 2), ("read", 13)] {
      let child = try start("dies", engine, call, "\(number)")
      try expect(child.wait(), equals: .signalled(9), "\(child.outputText)")
      try expect(temporary.names(), equals: [], "\(call) \(number)")
    }
    try expect(run("named", engine), equals: 1)
    let database = try Database.open("test", in: directory.path, options: options(engine))
    try expect(database.check(deep: true), equals: [])
    try database.close()
  }

  @Test(
    "where a file has a name at first, a killed process leaves it empty, and the next one removes it",
    .enabled(if: !isSanitized))
  func named() throws {
    let child = try start("dies", .lmdb, "name", "0")
    try expect(child.wait(), equals: .signalled(9), "\(child.outputText)")
    let left = try temporary.names()
    expect(left.count, equals: 1)
    for name in left {
      let size = try FileManager.default.attributesOfItem(atPath: temporary.file(name))[.size] as? Int
      expect(size, equals: 0)
    }
    try expect(run("named", .lmdb), equals: 1)
  }
}
