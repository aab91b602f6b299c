import ChildProcesses
import StorageConformance
import TestSupport

/// Several `touchstone serve` with one `_replicator`: one at a time runs the replications of its documents.
@Suite("Replications of several servers") struct ReplicatorProcessTests {
  /// A process that serves.
  private final class Server {
    let process: ChildProcess
    private let port: UInt16

    init(_ place: String, engine: String) throws {
      let path = try #require(builtExecutable("touchstone"))
      process = try ChildProcess.start(
        path, ["serve", place, "--listen", "127.0.0.1:0", "--create", "--engine", engine])
      try process.waitForOutput()
      let line = process.line(0) ?? ""
      port = try #require(
        line.split(separator: ":").last.flatMap { UInt16($0.split(separator: "/")[0]) },
        "\(line) \(process.errorText)")
    }

    deinit { process.kill() }

    func ask(_ method: String, _ target: String, _ body: String = "") -> (status: Int, text: String) {
      askHTTP(port, method, target, body)
    }

    func put(_ target: String, _ body: String = "") {
      let answer = ask("PUT", target, body)
      expect(answer.status, equals: 201, "\(target): \(answer.text)")
    }

    /// The value after the head of an answer.
    func get(_ target: String) throws -> JSONValue {
      let answer = ask("GET", target)
      guard let start = answer.text.range(of: "\r\n\r\n") else { return .null }
      return try JSONValue(json: String(answer.text[start.upperBound...]))
    }

    /// Whether it runs the replication of a document.
    func runs(_ document: String) throws -> Bool {
      try get("/_active_tasks").array?.contains { $0["doc_id"].string == document } ?? false
    }

    func state(_ document: String) throws -> String? {
      try get("/_scheduler/docs/_replicator/\(document)")["state"].string
    }

    func count(_ database: String) throws -> Int64? { try get("/\(database)")["doc_count"].int }
  }

  private static let live = #"{"source":"a","target":"b","continuous":true}"#

  /// Starts two servers, of which the first runs the replications.
  private func start(_ place: String, _ engine: String) throws -> (Server, Server) {
    let first = try Server(place, engine: engine)
    for name in ["a", "b", "c"] { first.put("/" + name) }
    first.put("/a/x0", "{}")
    first.put("/_replicator/live", Self.live)
    try eventually { try first.runs("live") && first.count("b") == 1 }
    return (first, try Server(place, engine: engine))
  }

  private func takeOver(_ place: String, _ engine: String) throws {
    let (first, second) = try start(place, engine)
    // The other one knows what runs, and runs nothing itself.
    try eventually { try second.state("live") == "running" }
    try expect(!second.runs("live") && second.get("/_scheduler/jobs")["total_rows"] == 0)
    // What comes through it is run by the first one.
    second.put("/_replicator/once", #"{"source":"a","target":"c"}"#)
    try eventually { try second.state("once") == "completed" }
    try expect(second.count("c"), equals: 1)
    try expect(second.get("/_replicator/once")["_replication_stats"]["docs_written"], equals: 1)
    // It goes on when the first one is killed.
    first.process.kill(SIGKILL)
    _ = try first.process.wait()
    second.put("/a/x1", "{}")
    try eventually { try second.runs("live") && second.count("b") == 2 }
    // And when the second one ends in order.
    let third = try Server(place, engine: engine)
    try expect(!third.runs("live"))
    second.process.kill(SIGTERM)
    try expect(second.process.wait(), equals: .exited(0))
    third.put("/a/x2", "{}")
    try eventually { try third.runs("live") && third.count("b") == 3 }
    // A document that is deleted through another one ends its replication.
    let fourth = try Server(place, engine: engine)
    let revision = try fourth.get("/_replicator/live")["_rev"].string ?? ""
    expect(fourth.ask("DELETE", "/_replicator/live?rev=\(revision)").status, equals: 200)
    try eventually { try !third.runs("live") }
    try expect(!fourth.runs("live"))
    let (left, right) = (
      try third.get("/a/_all_docs")["rows"], try third.get("/b/_all_docs")["rows"]
    )
    expect(left, equals: right)
  }

  @Test("over a directory", arguments: ["sqlite", "lmdb"])
  func directory(_ engine: String) throws {
    try withTemporaryDirectory { try takeOver($0, engine) }
  }

  /// The location of a database of the server with no databases of ours.
  private func emptyPlace() throws -> String {
    let name = "turns_" + UUID().uuidString.replacingOccurrences(of: "-", with: "").lowercased()
    try server().sql("CREATE DATABASE \(name)")
    return "postgres:///\(name)?host=\(try server().directory)&user=touchstone"
  }

  @Test("over a server", .enabled(if: hasServer)) func overAServer() throws {
    try takeOver(emptyPlace(), "postgres")
  }

  @Test("a cut connection moves the work to one process", .enabled(if: hasServer))
  func cutConnection() throws {
    let place = try emptyPlace()
    let (first, second) = try start(place, "postgres")
    try eventually { try second.state("live") == "running" }
    let servers = [first, second]
    /// Who runs the replication, with the number of the job there.
    func runners() throws -> [String] {
      try servers.enumerated().flatMap { index, server in
        try (server.get("/_active_tasks").array ?? []).map { "\(index) \($0["pid"].string ?? "")" }
      }
    }
    var before = try runners()
    expect(before.count, equals: 1)
    let name = place.dropFirst("postgres:///".count).prefix { $0 != "?" }
    for round in 1...3 {
      // The lock of the turn is the only exclusive one that lasts.
      try eventually {
        try server().sql(
          """
          SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
          WHERE l.locktype = 'advisory' AND l.mode = 'ExclusiveLock' AND l.granted AND d.datname = '\(name)'
          """
        ).contains("t")
      }
      second.put("/a/y\(round)", "{}")
      // Another job runs it, in this process or in the other one, and nothing else does.
      try eventually {
        let now = try runners()
        return now.count == 1 && now != before
      }
      before = try runners()
      try eventually { try second.count("b") == Int64(1 + round) }
      try expect(runners(), equals: before)
    }
  }
}
