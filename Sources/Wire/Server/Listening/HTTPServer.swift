import HTTP
import CMicrohttpd
import Glibc
import Logs
import System

/// An HTTP/1.1 server: sockets, TLS, logins, limits. What it serves is the handler's.
///
/// All calls may come from any thread.
package final class HTTPServer: Sendable {
  private struct Running {
    let core: ServerCore
    let acceptor: Acceptor
    let sweeper: Sweeper
    let daemon: Daemon
    let terminator: TLSTerminator?
    let addresses: [PeerAddress]
  }

  private enum State {
    case new
    case running(Running)
    case stopping
    case stopped
  }

  private let configuration: HTTPServerConfiguration
  private let handler: any HTTPHandler
  private let state = Lock((State.new, [CountingSemaphore]()))
  /// Files that the rest of the process may need.
  private static let otherFiles = 64
  /// How long handlers have to end, and those who took over a connection to give it back, after it was cut off.
  private static let lastSeconds = 60.0

  /// Makes a server that doesn't run yet.
  package init(_ configuration: HTTPServerConfiguration, handler: any HTTPHandler) {
    self.configuration = configuration
    self.handler = handler
  }

  /// Makes a server with a closure, which is called on a handler's thread and answers now or later.
  package convenience init(
    _ configuration: HTTPServerConfiguration,
    _ handler: @escaping @Sendable (HTTPRequest, HTTPResponder) -> Void
  ) {
    self.init(configuration, handler: ClosureHandler(body: handler))
  }

  deinit { stop(graceSeconds: 0) }

  /// Begins to listen. Throws an `HTTPServerError`.
  package func start() throws {
    try state.withLock { state in
      guard case .new = state.0 else {
        throw HTTPServerError(.alreadyStarted, "this server was started before; make another one")
      }
      try check()
      let sockets = try ListeningSocket.open(configuration.listen, port: configuration.port)
      let addresses = sockets.map(\.address)
      let core = ServerCore(configuration, handler, addresses)
      let daemon = try Daemon(core)
      let terminator: TLSTerminator?
      let acceptor: Acceptor
      do {
        terminator = try configuration.tls.map { try TLSTerminator(core, daemon, $0) }
        acceptor = try Acceptor(core, sockets, daemon, terminator, maximum: possibleConnections)
      } catch {
        daemon.stop()
        throw error
      }
      let sweeper = Sweeper(core)
      sweeper.start()
      acceptor.start()
      state.0 = .running(
        Running(
          core: core, acceptor: acceptor, sweeper: sweeper, daemon: daemon, terminator: terminator,
          addresses: addresses))
    }
    Log.write(.info, .network, nil, "listener: listens on \(urls.joined(separator: ", "))")
  }

  private func check() throws {
    let limits = configuration.limits
    let numbers: [(String, Double)] = [
      ("connections", Double(limits.connections)),
      ("connectionsPerAddress", Double(limits.connectionsPerAddress)),
      ("headerBytes", Double(limits.headerBytes)), ("bodyBytes", Double(limits.bodyBytes)),
      ("bufferedBodyBytes", Double(limits.bufferedBodyBytes)),
      ("bufferedAnswerBytes", Double(limits.bufferedAnswerBytes)), ("headerSeconds", limits.headerSeconds),
      ("idleSeconds", limits.idleSeconds), ("handlerSeconds", limits.handlerSeconds),
      ("slowSeconds", limits.slowSeconds),
      ("threads", Double(configuration.threads)), ("handlerThreads", Double(configuration.handlerThreads)),
    ]
    for (name, value) in numbers where !(value > 0) {
      throw HTTPServerError(.invalidConfiguration, "\(name) is \(value); it must be above 0")
    }
    guard limits.headerBytes <= 16 << 20, limits.connections <= 1 << 20 else {
      throw HTTPServerError(
        .invalidConfiguration, "headerBytes is at most 16,777,216, and connections at most 1,048,576")
    }
    if case .none = configuration.clientCertificates { return }
    if configuration.tls == nil {
      throw HTTPServerError(
        .invalidConfiguration, "client certificates need TLS; give the server a certificate")
    }
  }

  /// The number of connections, as the limit of the process for open files allows it.
  private var possibleConnections: Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
      return configuration.limits.connections
    }
    // With TLS there is a pair beside the client's socket.
    let filesEach = configuration.tls == nil ? 1 : 3
    let possible = max(1, (Int(clamping: limit.rlim_cur) - Self.otherFiles) / filesEach)
    if possible < configuration.limits.connections {
      Log.write(
        .info, .network, nil,
        "listener: the process may open \(limit.rlim_cur) files, so there are at most \(possible) connections"
      )
    }
    return min(possible, configuration.limits.connections)
  }

  private func running<Result>(_ body: (inout Running) throws -> Result) rethrows -> Result? {
    try state.withLock { state in
      guard case .running(var running) = state.0 else { return nil }
      defer { state.0 = .running(running) }
      return try body(&running)
    }
  }

  /// The port that it listens on; nil if it doesn't run.
  package var port: UInt16? { running { $0.addresses.first?.port } ?? nil }

  /// The URLs that it is reached by, without a slash at the end; none if it doesn't run.
  package var urls: [String] {
    let scheme = configuration.tls == nil ? "http" : "https"
    return running { $0.addresses.map { "\(scheme)://\($0)" } } ?? []
  }

  /// The open connections.
  package var connections: [HTTPConnectionStatus] {
    (running { $0.core.table.all } ?? []).map { HTTPConnectionStatus($0) }
  }

  /// The number of open connections.
  package var connectionCount: Int { running { $0.core.table.count } ?? 0 }

  /// The SHA-256 of the certificate that new connections get, as lower-case hexadecimal digits; nil without TLS or if it
  /// doesn't run.
  package var fingerprint: String? { running { $0.terminator?.identity.fingerprint } ?? nil }

  /// Uses another certificate for new connections. Those that are open keep theirs. Throws an `HTTPServerError`, and
  /// changes nothing then.
  package func use(_ identity: TLSIdentity) throws { try terminator.use(identity) }

  /// Reads the files of the certificate and its key again, for new connections. If something is wrong with them, the
  /// server keeps what it has, writes a warning to the log, and this throws an `HTTPServerError`.
  package func reloadIdentity() throws {
    let terminator = try terminator
    do { try terminator.use(terminator.identity.reread()) } catch {
      Log.write(.warning, .network, nil, "listener: keeps its certificate: \(error)")
      throw error
    }
    Log.write(.info, .network, nil, "listener: has read its certificate again")
  }

  private var terminator: TLSTerminator {
    get throws {
      guard let terminator = running({ $0.terminator }) ?? nil else {
        throw HTTPServerError(.invalidConfiguration, "this server doesn't run, or was started without TLS")
      }
      return terminator
    }
  }

  /// Stops: refuses new connections, lets requests that are being worked on end within `graceSeconds`, says goodbye to
  /// WebSockets, cuts off the rest. Returns when nothing is left and no handler runs; a second call waits for the first.
  /// A handler that calls it, or that has the last reference to the server, doesn't wait for itself.
  package func stop(graceSeconds: Double = 10) {
    let other = CountingSemaphore()
    enum Part { case stop(Running), wait, nothing }
    let part = state.withLock { state -> Part in
      switch state.0 {
      case .new, .stopped:
        state.0 = .stopped
        return .nothing
      case .stopping:
        state.1.append(other)
        return .wait
      case .running(let running):
        state.0 = .stopping
        return .stop(running)
      }
    }
    switch part {
    case .nothing: return
    case .wait: return other.wait()
    case .stop(let running): stop(running, graceSeconds)
    }
    let waiting = state.withLock { state in
      state.0 = .stopped
      defer { state.1 = [] }
      return state.1
    }
    for semaphore in waiting { semaphore.signal() }
    Log.write(.info, .network, nil, "listener: stopped")
  }

  private func stop(_ running: Running, _ graceSeconds: Double) {
    let core = running.core
    core.beginStopping()
    running.acceptor.stop()
    for upgraded in core.upgraded.all { upgraded.stop() }
    // The sweeper cuts off connections without a request.
    if !core.table.waitUntilEmpty(seconds: graceSeconds) {
      for connection in core.table.all { connection.cutOff() }
    }
    // A library's thread that is about to hand over a request sees that it was aborted, or is told here again.
    let deadline = MonotonicClock.now + Self.lastSeconds
    while !core.table.waitUntilEmpty(seconds: 0.1) {
      for connection in core.table.all { connection.cutOff() }
      guard MonotonicClock.now < deadline else {
        // Whoever took over a connection still uses its descriptor. The threads that serve it stay.
        running.sweeper.stop()
        return Log.write(
          .error, .network, nil, "listener: \(core.table.count) upgraded connections weren't given back")
      }
    }
    running.sweeper.stop()
    running.daemon.stop()
    // A handler whose client was cut off looks at its cancellation, but not while it waits for a lock of a database.
    if !core.threads.waitUntilQuiet(until: max(deadline, MonotonicClock.now)) {
      Log.write(.error, .network, nil, "listener: handlers go on after their requests were cut off")
    }
  }

  /// Lets the process open more files, up to `count` and to what the system allows it. A server with many connections
  /// needs one file for each, two for a WebSocket, and two more with TLS. Returns how many it may open now.
  @discardableResult
  package static func allowOpenFiles(_ count: Int) -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 0 }
    if limit.rlim_cur < rlim_t(count) {
      var more = limit
      more.rlim_cur = min(limit.rlim_max, rlim_t(count))
      if setrlimit(resource, &more) == 0 { limit = more }
    }
    return Int(clamping: limit.rlim_cur)
  }
}
