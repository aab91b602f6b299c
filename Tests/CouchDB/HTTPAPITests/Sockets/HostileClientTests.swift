import Foundation
import RawHTTP
import Storage
import StorageConformance
import TestSupport
import Testing

#if canImport(Glibc)
  import Glibc
#endif

/// Clients that are slow, go away or are many don't stop others.
@Suite("Hostile clients", .serialized) struct HostileClientTests {
  /// More than the threads that a server has for handlers, blocked ones included.
  private static let many = 300

  /// Asks as a client that does as it should, and says how long the slowest answer took, in seconds.
  private func slowest(_ server: ServingChild, requests: Int = 50) throws -> Double {
    var slowest = 0.0
    for number in 0..<requests {
      let began = Date()
      let client = try server.client(from: "127.0.0.2")
      try expect(client.ask("GET", "/db/doc").status, equals: 200)
      try expect(client.ask("PUT", "/db/\(UUID())", Array("{\"n\":\(number)}".utf8)).status, equals: 201)
      slowest = max(slowest, Date().timeIntervalSince(began))
    }
    return slowest
  }

  /// All in the long run.
  private static let engines = isLong ? Array(allEngines) : [EngineName.lmdb]

  private func serving(_ engine: EngineName, _ connections: Int? = nil) throws
    -> (ServingChild, TemporaryDirectory)
  {
    let directory = TemporaryDirectory()
    let server = try ServingChild(engine, directory.path, connections: connections)
    let client = try server.client()
    try expect(client.ask("PUT", "/db").status, equals: 201)
    try expect(client.ask("PUT", "/db/doc", Array(#"{"n":1}"#.utf8)).status, equals: 201)
    return (server, directory)
  }

  /// A client takes its answers in so many seconds, whatever others do: some of them are cut off first.
  private static let patience = 50.0

  @Test("clients that never end their headers", arguments: engines)
  func slowHeads(_ engine: EngineName) throws {
    let (server, directory) = try serving(engine)
    defer { withExtendedLifetime(directory) {} }
    let clients = try (0..<Self.many).map { _ in try server.client() }
    for client in clients { try client.send("GET /db/doc HTTP/1.1\r\nHost: local") }
    try expect(slowest(server) < Self.patience)
  }

  @Test("clients that never end their bodies", arguments: engines, ["doc", "doc/file", "multipart"])
  func slowBodies(_ engine: EngineName, _ what: String) throws {
    let (server, directory) = try serving(engine)
    defer { withExtendedLifetime(directory) {} }
    let clients = try (0..<Self.many).map { _ in try server.client() }
    let type = what == "multipart" ? "multipart/related; boundary=x" : "application/json"
    for (number, client) in clients.enumerated() {
      let target = what == "doc/file" ? "/db/\(number)/file" : "/db/\(number)"
      try client.send(
        "PUT \(target) HTTP/1.1\r\nHost: localhost\r\nContent-Type: \(type)\r\nContent-Length: 100000\r\n\r\n--x\r\n"
      )
    }
    try expect(slowest(server) < Self.patience)
  }

  @Test(
    "clients that don't take their answers", arguments: engines, ["_all_docs?include_docs=true", "doc/file"])
  func slowReaders(_ engine: EngineName, _ what: String) throws {
    let (server, directory) = try serving(engine)
    defer { withExtendedLifetime(directory) {} }
    let filling = [UInt8](repeating: 0x78, count: 4 << 20)
    let client = try server.client()
    let text = Array("{\"text\":\"".utf8) + filling + Array("\"}".utf8)
    for number in 0..<4 { try expect(client.ask("PUT", "/db/large\(number)", text).status, equals: 201) }
    let revision = try client.ask("GET", "/db/doc").json()["_rev"].string ?? ""
    try expect(
      client.ask("PUT", "/db/doc/file?rev=\(revision)", filling, type: "application/octet-stream").status,
      equals: 201)
    let clients = try (0..<Self.many).map { _ in try server.client(receiveBufferBytes: 4_096) }
    for client in clients { try client.send("GET /db/\(what) HTTP/1.1\r\nHost: localhost\r\n\r\n") }
    try expect(slowest(server) < Self.patience)
  }

  @Test("clients that close one half, or go away in the middle of an answer", arguments: engines)
  func goingAway(_ engine: EngineName) throws {
    let (server, directory) = try serving(engine)
    defer { withExtendedLifetime(directory) {} }
    let client = try server.client()
    let filling = Array("{\"text\":\"".utf8) + [UInt8](repeating: 0x78, count: 1 << 20) + Array("\"}".utf8)
    for number in 0..<8 { try expect(client.ask("PUT", "/db/large\(number)", filling).status, equals: 201) }
    for target in ["_all_docs?include_docs=true", "_changes?include_docs=true", "_changes?feed=continuous"] {
      var half: [RawClient] = []
      for number in 0..<Self.many {
        let client = try server.client(receiveBufferBytes: 4_096)
        try client.send("GET /db/\(target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        if number % 2 == 0 { half.append(client) }
        if number % 4 == 0 { client.shutdownSending() }
      }
      try expect(slowest(server, requests: 20) < Self.patience, "\(target)")
    }
    // Nothing of them is left that would keep the database.
    try expect(server.client(from: "127.0.0.2").ask("DELETE", "/db").status, equals: 200)
    try expect(server.client(from: "127.0.0.2").ask("PUT", "/db").status, equals: 201)
  }

  /// 10,000 in the long run, if the system lets a process open so many files.
  @Test("many connections at once", arguments: engines) func manyConnections(_ engine: EngineName) throws {
    let wanted = isLong ? 10_000 : 1_500
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = min(limit.rlim_max, rlim_t(wanted) + 1_000)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    guard limit.rlim_cur >= rlim_t(wanted) + 500 else {
      print("skipped: a process may open \(limit.rlim_cur) files only")
      return
    }
    let (server, directory) = try serving(engine, wanted + 100)
    defer { withExtendedLifetime(directory) {} }
    let clients = try (0..<wanted).map { try server.client(from: "127.0.1.\($0 / 1_000 + 1)") }
    for round in 0..<2 {
      for client in clients { try client.send("GET /db/doc HTTP/1.1\r\nHost: localhost\r\n\r\n") }
      for client in clients { try expect(client.answer().status, equals: 200, "round \(round)") }
    }
    try expect(slowest(server) < Self.patience)
    print("\(wanted) connections in \(server.anonymousBytes >> 20) MiB of memory")
  }
}
