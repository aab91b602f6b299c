import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication

/// Connects when it is allowed to, and to a peer that can be lost.
final class SwitchedConnector: PeerConnector {
  struct State {
    var errors: [ReplicationError] = []
    var always: ReplicationError?
    var attempts = 0
    var peers: [FaultyPeer] = []
  }
  let inner: any PeerConnector
  let state = Lock(State())
  var remoteID: String { inner.remoteID }
  var name: String { inner.name }
  init(_ inner: any PeerConnector) { self.inner = inner }

  func connect(_ options: ConnectionOptions, _ done: @escaping Completion<any Peer>) {
    let error = state.withLock { state in
      state.attempts += 1
      return state.errors.isEmpty ? state.always : state.errors.removeFirst()
    }
    if let error { return done(.failure(error)) }
    inner.connect(options) { result in
      done(
        result.map { peer in
          let faulty = FaultyPeer(peer, Faults(seed: 1, Faults.Rates()))
          self.state.withLock { $0.peers.append(faulty) }
          return faulty
        })
    }
  }

  /// Loses the present connection.
  func lose(_ error: ReplicationError) { state.withLock { $0.peers.last }?.cut(error) }
}

@Suite("Status and retries of replications") struct StatusTests {
  private let databases = TestDatabases()

  @Test("errors are transient, depend on the network, or are permanent") func table() {
    func transient(_ domain: ReplicationError.Domain, _ code: Int) -> Bool {
      ReplicationError(domain, code, "").isTransient
    }
    func network(_ domain: ReplicationError.Domain, _ code: Int) -> Bool {
      ReplicationError(domain, code, "").dependsOnNetwork
    }
    for code in [408, 429, 500, 502, 503, 504] { expect(transient(.http, code)) }
    for code in [400, 401, 403, 404, 409, 412, 501] { expect(!transient(.http, code)) }
    for code in [1000, 1001, 1006, 1011] { expect(transient(.webSocket, code)) }
    for code in [1002, 1003, 1008, 1009, 4002, 403] { expect(!transient(.webSocket, code)) }
    for code in [ENETRESET, ECONNABORTED, ECONNRESET, ETIMEDOUT, ECONNREFUSED] {
      expect(transient(.posix, Int(code)))
    }
    for code in [ENETDOWN, ENETUNREACH, EHOSTDOWN, EPIPE, EACCES] { expect(!transient(.posix, Int(code))) }
    for code in [
      ENETDOWN, ENETUNREACH, ENOTCONN, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH, EADDRNOTAVAIL, EPIPE,
    ] {
      expect(network(.posix, Int(code)))
    }
    expect(!network(.posix, Int(ECONNRESET)) && !network(.http, 503))
    typealias Code = ReplicationError.NetworkCode
    expect(transient(.network, Code.dnsFailure.rawValue) && network(.network, Code.dnsFailure.rawValue))
    expect(transient(.network, Code.timeout.rawValue) && !network(.network, Code.timeout.rawValue))
    expect(!transient(.network, Code.unknownHost.rawValue) && network(.network, Code.unknownHost.rawValue))
    for code in Code.allCases where code.rawValue > 3 {
      expect(!transient(.network, code.rawValue) && !network(.network, code.rawValue))
    }
    expect(!transient(.liteCore, 19) && !transient(.blip, 404) && !transient(.touchstone, 404))
  }

  private final class Watched: Sendable {
    let replicator: Replicator
    let timer = ManualTimer()
    let connector: SwitchedConnector
    let activities = Lock<[ReplicatorStatus.Activity]>([])
    private let token = Lock<ReplicatorToken?>(nil)

    init(_ from: Database, _ to: Database, _ change: (inout ReplicatorConfiguration) -> Void = { _ in }) {
      connector = SwitchedConnector(connection(to: to))
      var configuration = ReplicatorConfiguration(from, ReplicatorTarget(connector))
      configuration.timer = timer
      configuration.skipsTombstonesOfFirstPull = false
      change(&configuration)
      replicator = Replicator(configuration)
      let seen = replicator.observeStatus { [activities] status in
        activities.withLock { if $0.last != status.activity { $0.append(status.activity) } }
      }
      token.withLock { $0 = seen }
    }

    func wait(
      for activity: ReplicatorStatus.Activity, sourceLocation: SourceLocation = #_sourceLocation
    ) {
      eventually({ replicator.status.activity == activity }, sourceLocation: sourceLocation)
    }
    var attempts: Int { connector.state.withLock { $0.attempts } }
    /// The retry delays that were asked for.
    var retries: [Double] { timer.delays.filter { $0 != 5 && $0 != 60 } }
  }

  private static let refused = ReplicationError(.posix, Int(ECONNREFUSED), "Connection refused")

  private func two() throws -> (Database, Database) {
    (try databases.open(.lmdb), try databases.open(.sqlite))
  }

  @Test("a one-shot replication retries twice, after 2 and 4 seconds") func oneShotRetries() throws {
    let (a, b) = try two()
    let watched = Watched(a, b)
    watched.connector.state.withLock { $0.always = Self.refused }
    watched.replicator.start()
    for attempt in 1...2 {
      // The status follows when the retry is scheduled.
      eventually {
        watched.attempts == attempt && watched.timer.count == 1
          && watched.replicator.status.activity == .offline
      }
      expect(watched.replicator.status.error, equals: Self.refused)
      watched.timer.advance(by: 0.9 * Double(1 << attempt))
      expect(watched.attempts, equals: attempt)
      watched.timer.advance(by: 0.1 * Double(1 << attempt))
    }
    watched.wait(for: .stopped)
    expect(watched.retries == [2, 4] && watched.attempts == 3)
    expect(watched.replicator.status.error, equals: Self.refused)
  }

  @Test("a continuous one goes on for ever, at most every ten minutes, and starts again from two seconds")
  func continuousRetries() throws {
    let (a, b) = try two()
    let watched = Watched(a, b) { $0.isContinuous = true }
    watched.connector.state.withLock {
      $0.errors = (0..<12).map { _ in ReplicationError(.posix, Int(ENETDOWN), "Network is down") }
    }
    watched.replicator.start()
    for attempt in 1...12 {
      eventually { watched.attempts == attempt && watched.timer.count == 1 }
      watched.timer.advance(by: 600)
    }
    watched.wait(for: .idle)
    expect(watched.retries, equals: [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600, 600])
    watched.connector.lose(ReplicationError(.webSocket, 1006, "lost"))
    watched.wait(for: .offline)
    eventually { watched.timer.count == 1 }
    expect(watched.retries.last, equals: 2)
    // With the network back it doesn't wait.
    watched.replicator.networkChanged()
    watched.wait(for: .idle)
    watched.replicator.stop()
    watched.wait(for: .stopped)
    expect(watched.replicator.status.error == nil)
  }

  @Test(
    "permanent errors stop it",
    arguments: [
      ReplicationError(.http, 401, "unauthorized"), ReplicationError(.http, 404, "not found"),
      ReplicationError(.webSocket, 1002, "protocol error"), ReplicationError(.network, 4, "invalid URL"),
    ], [false, true])
  func permanent(_ error: ReplicationError, _ isContinuous: Bool) throws {
    let (a, b) = try two()
    let watched = Watched(a, b) { $0.isContinuous = isContinuous }
    watched.connector.state.withLock { $0.always = error }
    watched.replicator.start()
    eventually { watched.attempts == 1 && watched.replicator.status.activity == .stopped }
    expect(watched.replicator.status.error == error && watched.retries == [])
  }

  @Test("an error that depends on the network stops a one-shot replication") func networkOneShot() throws {
    let (a, b) = try two()
    let watched = Watched(a, b)
    watched.connector.state.withLock { $0.always = ReplicationError(.posix, Int(EHOSTUNREACH), "No route") }
    watched.replicator.start()
    eventually { watched.attempts == 1 && watched.replicator.status.activity == .stopped }
    expect(watched.retries, equals: [])
  }

  @Test("a normal close by the peer is retried, or ends it, as the option says", arguments: [true, false])
  func normalClose(_ retries: Bool) throws {
    let (a, b) = try two()
    let watched = Watched(a, b) {
      $0.isContinuous = true
      $0.retriesAfterNormalClose = retries
    }
    watched.replicator.start()
    watched.wait(for: .idle)
    watched.connector.lose(ReplicationError(.webSocket, 1000, "closed by the peer"))
    watched.wait(for: retries ? .offline : .stopped)
    watched.replicator.stop()
    watched.wait(for: .stopped)
  }

  @Test("the number of retries can be set, also to none") func attempts() throws {
    let (a, b) = try two()
    let watched = Watched(a, b) {
      $0.isContinuous = true
      $0.maximumRetries = 0
    }
    watched.connector.state.withLock { $0.always = Self.refused }
    watched.replicator.start()
    eventually { watched.attempts == 1 && watched.replicator.status.activity == .stopped }
  }

  @Test("a continuous replication carries changes of both sides, and is idle between them")
  func continuous() throws {
    let (a, b) = try two()
    try a.save("first", ["n": 1])
    let watched = Watched(a, b) { $0.isContinuous = true }
    watched.replicator.start()
    watched.wait(for: .idle)
    try expectEqual(a, b)
    eventually { watched.activities.withLock { $0 } == [.connecting, .busy, .idle] }
    for number in 0..<20 {
      try a.save("a\(number)", ["n": 1])
      try b.save("b\(number)", ["n": 1])
      if number % 4 == 0 { try a.update("first") { $0["n"] = .int(Int64(number)) } }
    }
    try a.delete("a3")
    try b.purge("b4")
    eventually { (try? b.document("a19")) != nil && (try? a.document("b19")) != nil }
    eventually { (try? b.document("first")?["n"].int) == 16 && (try? b.document("a3")) == .some(nil) }
    watched.wait(for: .idle)
    // A conflict is resolved while it runs.
    try a.inBatch { for number in 0..<300 { try a.save("many\(number)", ["from": "a"]) } }
    try b.inBatch { for number in 0..<300 { _ = try? b.save("many\(number)", ["from": "b"]) } }
    eventually {
      (try? winners(a)) == (try? winners(b)).map { $0.merging((try? winners(a)) ?? [:]) { old, _ in old } }
    }
    watched.wait(for: .idle)
    watched.replicator.stop()
    watched.wait(for: .stopped)
    eventually { watched.activities.withLock { $0.last } == .stopped }
    try b.save("later", ["n": 1])
    // It can be started again.
    watched.replicator.start()
    eventually { (try? a.document("later")) != .some(nil) }
    watched.replicator.stop()
    watched.wait(for: .stopped)
    try expect(a.check() == [] && b.check() == [])
  }

  @Test("changes made offline are carried when the connection is back") func offline() throws {
    let (a, b) = try two()
    let watched = Watched(a, b) { $0.isContinuous = true }
    watched.replicator.start()
    watched.wait(for: .idle)
    watched.connector.state.withLock { $0.always = Self.refused }
    watched.connector.lose(ReplicationError(.webSocket, 1001, "going away"))
    watched.wait(for: .offline)
    for number in 0..<500 { try a.save("a\(number)", ["n": 1]) }
    try b.save("b", ["n": 1])
    watched.connector.state.withLock { $0.always = nil }
    eventually { watched.timer.count == 1 }
    watched.timer.advance(by: 2)
    eventually { (try? b.document("a499")) != .some(nil) && (try? a.document("b")) != .some(nil) }
    watched.wait(for: .idle)
    try expectEqual(a, b)
    watched.replicator.stop()
    watched.wait(for: .stopped)
  }

  @Test("a document that changes all the time is pushed again and again") func changing() throws {
    let (a, b) = try two()
    let watched = Watched(a, b) {
      $0.isContinuous = true
      $0.direction = .push
    }
    watched.replicator.start()
    for number in 0..<300 { try a.save("doc", ["n": .int(Int64(number))]) }
    eventually { (try? b.document("doc")?["n"].int) == 299 }
    watched.replicator.stop()
    watched.wait(for: .stopped)
    try expect(b.conflicts(of: "doc").isEmpty && b.check() == [])
  }

  @Test("a stop in the middle keeps what is stored, and the next run goes on") func stops() throws {
    let (a, b) = try two()
    for number in 0..<3_000 { try a.save("a\(number)", ["n": .int(Int64(number))]) }
    try b.inBatch { for number in 0..<3_000 { try b.save("b\(number)", ["n": .int(Int64(number))]) } }
    for _ in 0..<3 {
      let watched = Watched(a, b)
      watched.replicator.start()
      let before = try b.documentCount + a.documentCount
      eventually {
        (try? b.documentCount + a.documentCount) ?? 0 > before
          || watched.replicator.status.activity == .stopped
      }
      watched.replicator.stop()
      watched.wait(for: .stopped)
      expect(watched.replicator.status.error == nil)
    }
    try replicate(a, b)
    try expectEqual(a, b)
  }

  @Test(
    "closing a database ends its replication",
    .enabled(if: !linksByHTTP, "over HTTP all leaves go, and conflicts stay"), arguments: [true, false],
    [EngineName.lmdb, .sqlite])
  func closing(_ closesTarget: Bool, _ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let a = try Database.open("a", in: directory.path, options: try options(engine))
    let b = try Database.open("b", in: directory.path, options: try options(engine))
    for number in 0..<2_000 { try a.save("a\(number)", ["n": 1]) }
    let watched = Watched(a, b) { $0.isContinuous = true }
    watched.replicator.start()
    eventually { (try? b.documentCount) ?? 0 > 100 }
    try (closesTarget ? b : a).close()
    if closesTarget, linksByBLIP {
      // The other side may come back.
      watched.wait(for: .offline)
      watched.replicator.stop()
    } else {
      watched.wait(for: .stopped)
      expect((watched.replicator.status.error == nil), equals: !closesTarget)
    }
    try a.close()
    try b.close()
    let again = try Database.open("b", in: directory.path, options: try options(engine))
    try expect(again.check(), equals: [])
    try again.close()
  }

  @Test("after a start, a reader waits for its end, also with nothing to do") func ends() async throws {
    let (a, b) = try two()
    let replicator = Replicator(ReplicatorConfiguration(a, ReplicatorTarget(connection(to: b))))
    expect(replicator.status.activity, equals: .stopped)
    for _ in 0..<3 {
      replicator.start()
      for await status in replicator.statusChanges where status.activity == .stopped { break }
      expect(replicator.status.error == nil)
    }
  }

  @Test("the last reference ends it, and status is an asynchronous sequence") func references() async throws {
    let (a, b) = try two()
    try a.save("doc", ["n": 1])
    do {
      let replicator = Replicator(ReplicatorConfiguration(a, ReplicatorTarget(connection(to: b))))
      let statuses = replicator.statusChanges
      replicator.start()
      var last: ReplicatorStatus?
      for await status in statuses {
        last = status
        if status.activity == .stopped, status.progress.completed > 0 { break }
      }
      expect(last?.error == nil && last?.progress.completed == 1)
      var configuration = ReplicatorConfiguration(a, ReplicatorTarget(connection(to: b)))
      configuration.isContinuous = true
      let other = Replicator(configuration)
      other.start()
    }
    try a.save("doc2", ["n": 1])
  }
}
