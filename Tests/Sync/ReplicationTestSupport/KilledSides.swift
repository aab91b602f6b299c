import Foundation
import TestSupport
import Testing
import Touchstone

/// Two databases that replicate between processes of their own, which are killed while the other one goes on.
package struct KilledSides {
  let here: EngineName
  let there: EngineName
  /// The command of `sync-child replication` that connects to the side `there`.
  let client: String

  package init(_ here: EngineName, _ there: EngineName, client: String) {
    (self.here, self.there, self.client) = (here, there, client)
  }

  /// Kills one side or the other some times in each round. `complete` replicates then between both databases, by way of a
  /// listener at that port, and looks that they are equal. After some rounds both begin as empty ones.
  package func run(
    rounds: Int, roundsOfDatabases: Int,
    _ complete: (_ here: Database, _ there: Database, _ port: Int, _ what: String) throws -> Void
  ) throws {
    var random = SeededGenerator(seed: testSeed)
    var directory = TemporaryDirectory()
    for round in 0..<rounds {
      if round % roundsOfDatabases == 0 { directory = TemporaryDirectory() }
      let (local, remote) = (directory.path + "/here", directory.path + "/there")
      for path in [local, remote] {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      }
      let what = "TOUCHSTONE_SEED=\(testSeed), round \(round)"
      let port = try kill(local, remote, seed: testSeed &+ UInt64(round) | 1, &random, what)
      let a = try Database.open("a", in: local, options: try options(here))
      let b = try Database.open("b", in: remote, options: try options(there))
      try expect(a.check(deep: true) == [] && b.check(deep: true) == [], "\(what)")
      try complete(a, b, port, what)
      try a.close()
      try b.close()
    }
  }

  /// Returns the port of the side that listened.
  private func kill(
    _ local: String, _ remote: String, seed: UInt64, _ random: inout SeededGenerator, _ what: String
  ) throws -> Int {
    func startServer(_ port: Int) throws -> ChildProcess {
      let server = try startChild(.sync, "replication", "serve", "\(there)", remote, "\(port)", "\(seed)")
      try server.waitForOutput(lines: 1)
      return server
    }
    var server = try startServer(0)
    let port = try #require(server.wholeLines.first.flatMap { Int($0) }, "\(what)")
    func startClient() throws -> ChildProcess {
      let child = try startChild(.sync, "replication", client, "\(here)", local, "\(port)", "\(seed)")
      try child.waitForOutput(lines: 2)
      return child
    }
    var connected = try startClient()
    for _ in 0..<2 {
      usleep(UInt32(random.below(100_000)))
      if random.below(2) == 0 {
        server.kill()
        try server.wait()
        server = try startServer(port)
      } else {
        connected.kill()
        try connected.wait()
        connected = try startClient()
      }
    }
    for child in [connected, server] {
      child.kill()
      try child.wait()
      expect(!child.outputText.contains("failed"), "\(what): \(child.outputText.suffix(300))")
    }
    return port
  }
}
