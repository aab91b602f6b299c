import Foundation
import Query
import Storage
import Testing

@testable import Touchstone

/// Queries that tell their rows again when commits change them.
@Suite struct LiveQueryTests {
  /// What was told, in order.
  private final class Told: Sendable {
    let rows = Lock<[[String]]>([])
    let signal = CountingSemaphore()

    func append(_ outcome: LiveQuery.Outcome) {
      let lines = (try? outcome.get().map { try $0.json() }) ?? ["failed"]
      rows.withLock { $0.append(lines) }
      signal.signal()
    }
  }

  @Test(arguments: executionEngines)
  func theFirstResultComesAndThenEachChangedOne(_ engine: EngineName) throws {
    try withQueryDatabase(engine) { database in
      try database.fill([("a", #"{"n":1}"#)])
      let query = try database.query("SELECT n FROM _ WHERE n < 10 ORDER BY n")
      let told = Told()
      let live = try database.observe(query) { told.append($0) }
      told.signal.wait()
      #expect(told.rows.withLock { $0 } == [[#"{"n":1}"#]])
      // Another document that isn't of the result: nothing is told for it, and the next result comes.
      try database.fill([("b", #"{"n":99}"#)])
      try database.fill([("c", #"{"n":2}"#)])
      told.signal.wait()
      #expect(told.rows.withLock { $0 } == [[#"{"n":1}"#], [#"{"n":1}"#, #"{"n":2}"#]])
      live.cancel()
    }
  }

  @Test(arguments: executionEngines)
  func theLastResultAlwaysComes(_ engine: EngineName) throws {
    try withQueryDatabase(engine) { database in
      let query = try database.query("SELECT COUNT(*) AS n FROM _")
      let told = Told()
      let live = try database.observe(query) { told.append($0) }
      for number in 1...100 { try database.fill([("d\(number)", "{}")]) }
      while told.rows.withLock({ $0.last }) != [#"{"n":100}"#] { told.signal.wait() }
      let counts = told.rows.withLock { $0 }
      #expect(counts.count <= 101)
      #expect(Set(counts).count == counts.count)
      live.cancel()
    }
  }

  @Test(arguments: executionEngines)
  func closingTheDatabaseWaitsForARunThatIsGoingOn(_ engine: EngineName) throws {
    let (path, options) = try TestDirectory.make(engine)
    defer { TestDirectory.remove(path) }
    var database = try Database.open("test", in: path, options: options)
    try database.fill((0..<2_000).map { ("d\($0)", #"{"n":\#($0 * 7_919 % 2_000)}"#) })
    for round in 0..<20 {
      let told = Told()
      let live = try database.observe(try database.query("SELECT n FROM _ ORDER BY n")) { told.append($0) }
      // The first run may not have begun yet, or be anywhere.
      if round % 4 == 3 { told.signal.wait() }
      try database.close()
      live.cancel()
      database = try Database.open("test", in: path, options: options)
    }
    try database.close()
  }

  @Test(arguments: executionEngines)
  func withAHandlerItEndsWithTheDatabase(_ engine: EngineName) throws {
    for _ in 0..<10 {
      let (path, options) = try TestDirectory.make(engine)
      defer { TestDirectory.remove(path) }
      let database = try Database.open("test", in: path, options: options)
      let told = Told()
      let live = try database.observe(try database.query("SELECT n FROM _")) { told.append($0) }
      told.signal.wait()
      // A run may be waiting or going on while it closes.
      try database.fill([("a", #"{"n":1}"#)])
      // A run that reads right now keeps it open.
      while true {
        do {
          try database.close()
          break
        } catch let error as StorageError where error.code == .inUse {}
      }
      live.waitForRuns()
      let rows = told.rows.withLock { $0 }
      #expect(rows.first == [] && rows.count <= 2)
      #expect(!rows.contains(["failed"]))
    }
  }

  @Test(arguments: executionEngines)
  func asAStreamItEndsWithTheDatabase(_ engine: EngineName) async throws {
    let (path, options) = try TestDirectory.make(engine)
    defer { TestDirectory.remove(path) }
    let database = try Database.open("test", in: path, options: options)
    let query = try database.query("SELECT n FROM _")
    let results = try database.results(of: query)
    var counts: [Int] = []
    for try await rows in results {
      counts.append(rows.count)
      if rows.count == 0 { try database.fill([("a", #"{"n":1}"#)]) }
      if rows.count == 1 {
        // Nothing changes any more: the stream goes on waiting until this.
        try database.close()
      }
    }
    #expect(counts == [0, 1])
  }
}

/// A directory for a database that a test closes itself.
enum TestDirectory {
  static func make(_ engine: EngineName) throws -> (String, DatabaseOptions) {
    let path = NSTemporaryDirectory() + "touchstone-live-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    var options = DatabaseOptions(engine: engine, durability: .none)
    if try Engines.type(engine).encrypts { options.key = try .raw([UInt8](repeating: 7, count: 32)) }
    return (path, options)
  }

  static func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }
}
