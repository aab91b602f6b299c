import ChildProcesses
import Expectations
import Foundation
import StorageConformance
import TestTools
import Testing

@testable import StoragePostgres

/// Writers, servers and primaries that are killed in the middle of commits.
@Suite(.enabled(if: hasServer), .serialized)
struct KillTests {
  /// A primary with a standby that has every commit before it is acknowledged.
  private final class Pair {
    private(set) var primary: PostgresServer
    private(set) var standby: PostgresServer

    /// A standby looks for its primary soon.
    private static let options = ["wal_retrieve_retry_interval=50ms"]

    init() throws {
      primary = try PostgresServer(options: Self.options)
      standby = try PostgresServer(options: Self.options, standbyOf: primary)
      try synchronize()
    }

    /// Commits wait for the standby from now on. It was copied before, so it doesn't wait itself when it takes over.
    private func synchronize() throws {
      try primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
      try primary.sql("SELECT pg_reload_conf()")
      try eventually {
        try primary.sql("SELECT sync_state FROM pg_stat_replication") == ["sync"]
      }
    }

    var location: String {
      "postgres:///postgres?host=\(primary.directory),\(standby.directory)&user=touchstone&target_session_attrs=read-write#k"
    }

    /// The primary dies, and the standby takes over. Nobody waits for standbys that aren't there yet.
    func failOver() throws {
      try primary.stop(.crash)
      try standby.sql("SELECT pg_promote()")
      primary = standby
    }

    /// The new primary gets a standby.
    func addStandby() throws {
      standby = try PostgresServer(options: Self.options, standbyOf: primary)
      try synchronize()
    }

    func restart() throws {
      try primary.stop(.crash)
      try primary.start()
    }
  }

  /// What the writers have said, by the keys of their entries.
  private struct Said {
    var known: Set<String> = []
    var unknown: Set<String> = []

    mutating func add(_ child: ChildProcess, _ name: String) {
      for line in child.wholeLines {
        let words = line.split(separator: " ")
        guard words.count == 2 else { continue }
        let key = "\(name)-\(words[1])"
        if words[0] == "did" { known.insert(key) } else if words[0] == "unknown" { unknown.insert(key) }
      }
    }
  }

  @Test func killsOfWritersServersAndPrimariesLoseAndDoubleNoCommit() throws {
    let pair = try Pair()
    let engine = try open(pair.location)
    try engine.fill(["count": "0"])
    try engine.close()
    var random = SeededGenerator(seed: testSeed)
    var said = Said()
    var names = 0
    var writers: [(name: String, child: ChildProcess)] = []
    var kills = (writers: 0, servers: 0, primaries: 0)
    func start() throws {
      names += 1
      let name = "w\(names)"
      writers.append((name, try startChild(.storage, "server", "write", pair.location, name)))
    }
    func end(_ index: Int) throws {
      let (name, child) = writers.remove(at: index)
      child.kill()
      let ending = try child.wait()
      expect(
        ending, equals: .signalled(SIGKILL), "\(name): \(child.outputText.suffix(300)) \(child.errorText)")
      said.add(child, name)
    }
    /// Each writer gets on.
    func waitForCommits() throws {
      for (name, child) in writers {
        let before = child.wholeLines.count
        let deadline = Date(timeIntervalSinceNow: 180)
        while child.wholeLines.count < before + 2 {
          guard child.ending == nil, Date() < deadline else {
            throw ConformanceFailure("the writer \(name) doesn't get on: \(child.outputText.suffix(300))")
          }
          usleep(2_000)
        }
      }
    }
    for _ in 0..<2 { try start() }
    let rounds = isLong ? 500 : 20
    for round in 0..<rounds {
      try waitForCommits()
      usleep(UInt32.random(in: 0...20_000, using: &random))
      switch round % 10 {
      case 3, 6:
        kills.servers += 1
        try pair.restart()
      case 9:
        kills.primaries += 1
        try pair.failOver()
        // They go on with the server that took over, before and while it gets a standby.
        try waitForCommits()
        try pair.addStandby()
        // The next one has another place.
        for _ in 0..<2 { try end(0) }
        for _ in 0..<2 { try start() }
      default:
        kills.writers += 1
        try end(Int.random(in: 0..<2, using: &random))
        try start()
      }
    }
    try waitForCommits()
    while !writers.isEmpty { try end(0) }

    try open(pair.location, .openExisting).closing { engine in
      var found = try engine.texts()
      let count = Int(found.removeValue(forKey: "count") ?? "") ?? -1
      print(
        "\(kills.writers) killed writers, \(kills.servers) servers, \(kills.primaries) primaries, seed \(testSeed): \(said.known.count) commits acknowledged, \(said.unknown.count) unknown, \(found.count) found"
      )
      // None is lost.
      expect(said.known.filter { found[$0] == nil }.sorted(), equals: [])
      // None is doubled, and each has seen all before it.
      expect(count, equals: found.count)
      expect(found.values.compactMap { Int($0) }.sorted() == Array(1...max(1, count)))
      expect(found.count >= said.known.count)
      try expect(try engine.checkIntegrity(), equals: [])
    }
  }
}
