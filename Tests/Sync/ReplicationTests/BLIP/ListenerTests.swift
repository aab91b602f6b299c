import BLIP
import Documents
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone
import TouchstoneServer
import TouchstoneSync
import Transport

@testable import Replication
@testable import ReplicationBLIP

@Suite("The listener") struct ListenerTests {
  private let databases = TestDatabases()

  private func listener(
    _ databases: [String: Database], _ change: (inout SyncListenerConfiguration) -> Void = { _ in }
  ) throws -> SyncListener {
    var configuration = SyncListenerConfiguration(databases: databases)
    change(&configuration)
    let listener = SyncListener(configuration)
    try listener.start()
    return listener
  }

  private func sync(
    _ local: Database, _ url: String, _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
  ) throws -> Outcome {
    var configuration = ReplicatorConfiguration(local, try .url(url))
    configuration.skipsTombstonesOfFirstPull = false
    configuration.maximumRetries = 0
    change(&configuration)
    return try run(configuration)
  }

  @Test("databases replicate with it, by their names") func names() throws {
    let (a, b, c) = (try databases.open(.lmdb), try databases.open(.sqlite), try databases.open(.lmdb))
    try a.save("a", ["n": 1])
    try b.save("b", ["n": 2])
    try c.save("c", ["n": 3])
    let listener = try listener(["notes": b, "A name/ü": c])
    expect(
      listener.urls.count == 2 && listener.port != nil && listener.urls[0].hasSuffix("/A%20name%2F%C3%BC"))
    expect(listener.urls.allSatisfy { $0.hasPrefix("ws://127.0.0.1:\(listener.port ?? 0)/") })
    #expect(throws: SyncListenerError.self) { try listener.start() }
    try expect(sync(a, listener.urls[1]).pulled, equals: ["b"])
    try expect(sync(a, listener.urls[0]).pulled, equals: ["c"])
    try expect(b.documentCount == 2 && c.documentCount == 3)
    let unknown = try sync(a, "ws://127.0.0.1:\(listener.port ?? 0)/other")
    expect(unknown.status.error?.domain == .http && unknown.status.error?.code == 404)
    eventually { listener.connections.isEmpty }
    listener.stop()
    expect(listener.port == nil && listener.urls == [])
    let refused = try sync(a, "ws://127.0.0.1:1/notes")
    expect(refused.status.error?.domain == .posix && refused.status.error?.code == Int(ECONNREFUSED))
    try listener.start()
    try expect(sync(a, listener.urls[1]).status.error == nil)
    listener.stop()
  }

  @Test("a continuous replication goes on when the listener comes back") func comesBack() throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.lmdb))
    let first = try listener(["db": b])
    let port = try #require(first.port)
    var configuration = ReplicatorConfiguration(a, try .url("ws://127.0.0.1:\(port)/db"))
    configuration.isContinuous = true
    configuration.maximumRetryWait = 0.2
    let replicator = Replicator(configuration)
    replicator.start()
    eventually { replicator.status.activity == .idle && first.connections.count == 1 }
    expect(first.connections[0].isReplicating && first.connections[0].sentBytes > 0)
    first.stop()
    eventually { replicator.status.activity < .idle }
    try a.save("a", ["n": 1])
    try b.save("b", ["n": 2])
    let second = try listener(["db": b]) { $0.port = port }
    eventually { (try? a.documentCount) == 2 && (try? b.documentCount) == 2 }
    replicator.stop()
    eventually { replicator.status.activity == .stopped }
    second.stop()
  }

  @Test("users have to give their passwords") func users() throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.lmdb))
    try b.save("b", ["n": 2])
    let listener = try listener(["db": b]) { $0.authenticator = .basic { $0 == "me" && $1 == "secret" } }
    let url = listener.urls[0]
    try expect(sync(a, url).status.error?.code, equals: 401)
    try expect(
      sync(a, url) { $0.connection.authenticator = .basic(name: "me", password: "wrong") }.status.error?
        .code, equals: 401)
    for answersChallenge in [true, false] {
      let outcome = try sync(a, url) {
        $0.connection.authenticator = .basic(
          name: "me", password: "secret", answersChallenge: answersChallenge)
      }
      expect(outcome.status.error == nil)
    }
    try expect(a.documentCount, equals: 1)
    listener.stop()
  }

  @Test("with TLS the client trusts what is pinned, or what has signed itself") func tls() throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.lmdb))
    let directory = TemporaryDirectory()
    try b.save("b", ["n": 2])
    let listener = try listener(["db": b]) { $0.tls = .selfSigned(directory: directory.path) }
    let url = listener.urls[0]
    expect(url.hasPrefix("wss://") && listener.certificateFingerprint?.count == 64)
    let untrusted = try sync(a, url)
    expect(untrusted.status.error?.domain, equals: .network)
    let pem = try [UInt8](Data(contentsOf: URL(filePath: directory.path + "/server-cert.pem")))
    try expect(sync(a, url) { $0.connection.serverTrust = .pinned(pem) }.status.error == nil)
    try expect(sync(a, url) { $0.connection.serverTrust = .selfSigned }.status.error == nil)
    try expect(a.documentCount, equals: 1)
    // Another certificate in the same files.
    let old = listener.certificateFingerprint
    let other = TemporaryDirectory()
    let maker = try self.listener(["db": b]) { $0.tls = .selfSigned(directory: other.path) }
    maker.stop()
    for name in ["/server-cert.pem", "/server-key.pem"] {
      try Data(contentsOf: URL(filePath: other.path + name)).write(to: URL(filePath: directory.path + name))
    }
    try listener.reloadCertificate()
    expect(listener.certificateFingerprint != old)
    try expect(
      sync(a, url) { $0.connection.serverTrust = .pinned(pem) }.status.error?.domain, equals: .network)
    try expect(sync(a, url) { $0.connection.serverTrust = .selfSigned }.status.error == nil)
    #expect(throws: SyncListenerError.self) { try maker.reloadCertificate() }
    listener.stop()
  }

  @Test("one that is read only takes nothing") func readOnly() throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.lmdb))
    try a.save("a", ["n": 1])
    try b.save("b", ["n": 2])
    let listener = try listener(["db": b]) { $0.isReadOnly = true }
    try expect(sync(a, listener.urls[0]) { $0.direction = .pull }.pulled, equals: ["b"])
    try expect(sync(a, listener.urls[0]) { $0.direction = .push }.status.error?.code, equals: 403)
    try expect(b.documentCount, equals: 1)
    listener.stop()
  }

  @Test("what can't be listened on is said before it begins") func refusals() throws {
    let b = try databases.open(.lmdb)
    func error(_ databases: [String: Database], _ change: (inout SyncListenerConfiguration) -> Void)
      -> ErrorKind?
    {
      do {
        try listener(databases, change).stop()
        return nil
      } catch { return (error as? SyncListenerError)?.kind }
    }
    expect(error([:]) { _ in }, equals: .badRequest)
    expect(error(["_x": b]) { _ in }, equals: .badRequest)
    expect(error(["db": b]) { $0.port = 70_000 }, equals: .badRequest)
    expect(error(["db": b]) { $0.address = "0.0.0.0" }, equals: .forbidden)
    expect(error(["db": b]) { $0.address = "somewhere" } != nil)
    expect(error(["db": b]) { $0.tls = .files(certificate: "/none", key: "/none") }, equals: .ioError)
    expect(error(["db": b]) { $0.authenticator = .userFile("/none") }, equals: .ioError)
    expect(error(["db": b]) { $0.authenticator = .certificatesAccepted { _ in true } }, equals: .badRequest)
    let first = try listener(["db": b])
    expect(error(["db": b]) { $0.port = first.port ?? 0 }, equals: .busy)
    first.stop()
  }

  @Test("a database that is closed loses its connections, and others go on") func closedDatabase() throws {
    let (a, b) = (try databases.open(.lmdb), try databases.open(.lmdb))
    let directory = TemporaryDirectory()
    let c = try Database.open("c", in: directory.path, options: try options(.lmdb))
    let listener = try listener(["b": b, "c": c])
    var configuration = ReplicatorConfiguration(a, try .url(listener.urls[1]))
    configuration.isContinuous = true
    let replicator = Replicator(configuration)
    replicator.start()
    eventually { replicator.status.activity == .idle }
    try c.close()
    eventually { replicator.status.activity < .idle && replicator.status.error != nil }
    replicator.stop()
    try expect(sync(a, listener.urls[0]).status.error == nil)
    listener.stop()
  }
}
