import Documents
import Foundation
import TestSupport
import Testing
import Touchstone
import TouchstoneServer
import TouchstoneSync

@testable import Replication
@testable import ReplicationBLIP

@Suite("Killed replications", .serialized) struct KillTests {
  /// The checkpoints aren't reset: they must not say more than what is stored.
  @Test(
    "after a kill the next replication completes what is missing",
    arguments: [(EngineName.lmdb, EngineName.lmdb), (.sqlite, .lmdb), (.lmdb, .sqlite)])
  func kills(_ here: EngineName, _ there: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    var unfinished = 0
    var directory = TemporaryDirectory()
    let rounds = times(5, sanitized: 10, long: 70)
    let wanted = isShort ? 1 : 2
    // On a loaded machine kills come too early or too late more often. Then there are more of them.
    for round in 0..<3 * rounds {
      if round >= rounds, unfinished > wanted { break }
      let what = "TOUCHSTONE_SEED=\(testSeed), round \(round)"
      if round % 5 == 0 { directory = TemporaryDirectory() }
      let child = try startChild(
        .sync, "replication", "run", "\(here)", "\(there)", directory.path, "\(testSeed &+ UInt64(round))")
      try child.waitForOutput(lines: 1 + random.below(3))
      usleep(UInt32(random.below(60_000)))
      child.kill()
      try child.wait()
      expect(!child.outputText.contains("failed"), "\(what): \(child.outputText.suffix(300))")
      let a = try Database.open("a", in: directory.path, options: try options(here))
      let b = try Database.open("b", in: directory.path, options: try options(there))
      try expect(a.check(deep: true) == [] && b.check(deep: true) == [], "\(what)")
      let rest = try replicate(a, b)
      expect(rest.status.error == nil, "\(what)")
      if !rest.documents.isEmpty { unfinished += 1 }
      if round % 2 == 1 { try replicate(a, b) { $0.resetsCheckpoint = true } }
      try expectEqual(a, b, what, anyTombstone: true)
      try a.close()
      try b.close()
    }
    expect(unfinished > wanted, "only \(unfinished) kills came in the middle of something")
  }

  /// Both sides are processes of their own. Each is killed while the other one goes on.
  @Test(
    "kills on either side of a connection lose nothing that was acknowledged",
    arguments: [(EngineName.lmdb, EngineName.lmdb), (.lmdbEncrypted, .sqlite)])
  func killsOverNetwork(_ here: EngineName, _ there: EngineName) throws {
    let sides = KilledSides(here, there, client: "sync")
    try sides.run(rounds: times(2, sanitized: 5, long: 50), roundsOfDatabases: 5) { a, b, port, what in
      // The checkpoints of the children go on over the same URL.
      var configuration = SyncListenerConfiguration(databases: ["b": b])
      configuration.port = port
      let listener = SyncListener(configuration)
      try listener.start()
      var replication = ReplicatorConfiguration(a, try .url("ws://127.0.0.1:\(port)/b"))
      replication.skipsTombstonesOfFirstPull = false
      let rest = try run(replication)
      expect(rest.status.error == nil, "\(what)")
      try expectEqual(a, b, what, anyTombstone: true)
      listener.stop()
    }
  }
}
