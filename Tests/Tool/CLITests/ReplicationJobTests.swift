import Foundation
import TestSupport
import Testing

/// Replications that `touchstone serve` runs, and what `touchstone sync --list` shows of them.
@Suite struct ReplicationJobTests {
  /// Starts `touchstone serve` over a directory. Gives it with its URL.
  private func serve(_ tool: Tool, directory: String = "dbs", _ arguments: String...) throws -> (
    server: Child, url: String
  ) {
    let server = try Child(
      tool, Tool.executable, ["serve", directory, "--listen", "127.0.0.1:0"] + arguments)
    do {
      try server.wait { server.output.contains("\n") }
      return (server, server.output.split(separator: "\n").first.map(String.init) ?? "")
    } catch {
      server.kill()
      throw error
    }
  }

  private func make(_ tool: Tool, _ engine: TestEngine, _ names: String...) throws {
    try FileManager.default.createDirectory(atPath: tool.path("dbs"), withIntermediateDirectories: true)
    for name in names { try tool.succeed("create", "dbs/\(name)", "--engine", engine.rawValue) }
  }

  private func lines(_ numbers: Range<Int>) -> String {
    numbers.map { #"{"_id":"doc\#($0)","n":\#($0),"text":"\#(String(repeating: "x", count: 200))"}"# }
      .joined(separator: "\n")
  }

  @Test(arguments: TestEngine.some) func jobsSurviveKills(_ engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try make(tool, engine, "a", "b", "c", "_replicator")
      try tool.succeed("put", "dbs/_replicator", "live", #"{"source":"a","target":"b","continuous":true}"#)
      try tool.succeed("put", "dbs/_replicator", "once", #"{"source":"a","target":"c"}"#)
      // Each server is killed with work to do: at once, and later and later.
      for (round, delay) in [0, 3_000, 10_000, 30_000, 80_000].enumerated() {
        let count = isShort ? 1_500 : 4_000
        let numbers = round * count..<(round + 1) * count
        try tool.succeed("import", "dbs/a", "-", input: lines(numbers))
        try tool.succeed("put", "dbs/a", "doc\(round)", #"{"changed":\#(round)}"#)
        let (server, _) = try serve(tool)
        usleep(UInt32(delay))
        server.kill()
        _ = try server.wait()
      }
      let (server, url) = try serve(tool)
      defer { server.kill() }
      try tool.succeed("rm", "dbs/a", "doc7")
      try server.wait { try tool("verify", "--current", "dbs/a", "dbs/b").status == 0 }
      try server.wait { try tool.succeed("get", "dbs/_replicator", "once").output.contains("completed") }
      let listed = try tool.succeed("sync", "--list", url).lines
      expect(listed.count == 3 && listed[0].hasPrefix("DOCUMENT"))
      expect(listed[1].hasPrefix("live") && listed[1].contains("running"))
      expect(listed[2].hasPrefix("once") && listed[2].contains("completed"))
      server.kill(SIGTERM)
      try expect(server.wait().status, equals: 0)
      let offline = try tool.succeed("sync", "--list", "dbs", "--json").lines
      expect(offline.count, equals: 2)
      expect(
        offline.first?.contains(#""document":"live","state":"unfinished","source":"a","target":"b""#),
        equals: true)
      expect(offline.last?.contains(#""state":"completed""#), equals: true)
      for name in ["a", "b", "c", "_replicator"] {
        try expect(tool("check", "dbs/\(name)").faults, equals: [], "\(name)")
      }
    }
  }

  @Test(arguments: [TestEngine.lmdb, .sqlite]) func aJobReachesAnotherServer(_ engine: TestEngine) throws {
    try engine.withDatabase { tool in
      try make(tool, engine, "a", "_replicator")
      try tool.succeed("import", "dbs/a", "-", input: lines(0..<2_000))
      try FileManager.default.createDirectory(
        atPath: tool.path("others"), withIntermediateDirectories: true)
      let (other, there) = try serve(tool, directory: "others", "--create", "--engine", engine.rawValue)
      defer { other.kill() }
      let job = #"{"source":"a","target":"\#(there)copy","create_target":true,"continuous":true}"#
      try tool.succeed("put", "dbs/_replicator", "out", job)
      let first = try serve(tool).server
      usleep(50_000)
      first.kill()
      _ = try first.wait()
      let (server, here) = try serve(tool, "--create", "--engine", engine.rawValue)
      defer { server.kill() }
      try server.wait {
        try tool("info", "others/copy").status == 0
          && tool("verify", "--current", "dbs/a", "others/copy").status == 0
      }
      // And back, into a database that is made.
      let back = #"{"source":"\#(there)copy","target":"back","create_target":true}"#
      try tool.succeed("put", "dbs/_replicator", "then", back)
      try server.wait { try tool.succeed("get", "dbs/_replicator", "then").output.contains("completed") }
      try expect(tool("verify", "--current", "dbs/back", "dbs/a").status, equals: 0)
      try tool.succeed("rm", "dbs/_replicator", "then")
      let listed = try tool.succeed("sync", "--list", here, "--json").lines
      expect(listed.count == 1 && listed[0].contains(#""state":"running""#), "\(listed)")
    }
  }

  @Test func whatIsTooLargeForTheTargetIsCounted() throws {
    try Tool.run { tool in
      try make(tool, .lmdb, "a", "_replicator")
      let large = #"{"text":"\#(String(repeating: "x", count: 8_000_001))"}"#
      try tool.succeed("put", "dbs/a", "large", "-", input: large)
      try tool.succeed("import", "dbs/a", "-", input: lines(0..<3))
      try FileManager.default.createDirectory(atPath: tool.path("others"), withIntermediateDirectories: true)
      let (other, there) = try serve(tool, directory: "others", "--create", "--engine", "sqlite")
      defer { other.kill() }
      let job = #"{"source":"a","target":"\#(there)copy","create_target":true}"#
      try tool.succeed("put", "dbs/_replicator", "out", job)
      let (server, _) = try serve(tool)
      defer { server.kill() }
      try server.wait { try tool.succeed("get", "dbs/_replicator", "out").output.contains("completed") }
      let done = try tool.succeed("get", "dbs/_replicator", "out").json()
      let statistics = done["_replication_stats"] as? [String: Any] ?? [:]
      expect(statistics["docs_read"] as? Int == 4 && statistics["docs_written"] as? Int == 3)
      expect(statistics["doc_write_failures"] as? Int, equals: 1)
    }
  }

  @Test func whatHasFailedIsTold() throws {
    try Tool.run { tool in
      try make(tool, .lmdb, "a", "_replicator")
      try tool.write("secret\n", to: "password")
      try tool.succeed("user", "users", "me", "--password-file", "password")
      try tool.succeed("put", "dbs/_replicator", "bad", #"{"source":"a"}"#)
      try tool.succeed(
        "put", "dbs/_replicator", "lost", #"{"source":"a","target":"http://u:hidden@127.0.0.1:1/x"}"#)
      let (server, url) = try serve(tool, "--user-file", "users")
      defer { server.kill() }
      try expect(tool("sync", "--list", url).status, equals: 3)
      let login = ["--user", "me", "--password-file", "password"]
      func list(_ arguments: String...) throws -> Tool.Result {
        try tool.run(Tool.executable, ["sync", "--list", url] + login + arguments)
      }
      try server.wait { try list("--json").lines.first?.contains(#""state":"failed""#) ?? false }
      let listed = try list()
      expect(listed.status == 1 && listed.errors.contains("failed"))
      expect(listed.output.contains("Missing replicator database"))
      expect(!listed.output.contains("hidden") && !server.errors.contains("hidden"))
      try expect(tool("sync", "--list", "dbs").status, equals: 1)
      try expect(tool("sync", "--list", "nosuch").status, equals: 2)
      try expect(tool("sync", "--list", "ftp://h/").status, equals: 2)
      try expect(tool("sync", "--list", "dbs/a").status, equals: 2)
      try tool.succeed("create", "single", "--engine", "lmdb")
    }
  }

  @Test func serversAreLookedFor() throws {
    try Tool.run { tool in
      // With Avahi or without: nobody announces this type.
      let result = try tool("sync", "--discover", "--seconds", "1", "--type", "_touchstone-no._tcp")
      expect(result.status == 1 && result.output.isEmpty && result.errors.contains("no server was found"))
      try expect(tool("sync", "--discover", "--type", "http").status, equals: 2)
      try make(tool, .lmdb, "a")
      let refused = try tool("serve", "dbs", "--listen", "127.0.0.1:0", "--announce", "Kitchen")
      expect(refused.status == 2 && refused.errors.contains("announced"))
    }
  }
}
