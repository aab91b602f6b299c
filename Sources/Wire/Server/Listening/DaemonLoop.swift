import CMicrohttpd
import Glibc
import System

/// A daemon of libmicrohttpd, and the thread that runs it.
///
/// A thread of the library's own may wait for good with requests in its hands: if the kernel has exactly as many events for it as it
/// takes at once, 128, it asks for more before it looks at any, and that call doesn't return until there are more. So this thread waits
/// itself until the daemon has something to do, and then lets the library do it without waiting.
final class DaemonLoop: @unchecked Sendable {
  private struct State {
    /// Connections that the thread has yet to give to the library.
    var incoming: [(connection: ServerConnection, address: SocketAddress)] = []
    var isStopping = false
  }

  private let core: ServerCore
  // Only the thread uses these, and whoever makes or stops it.
  private let daemon: OpaquePointer
  private let events: Int32
  /// Written to when the state has changed.
  private let wakeUp: Int32
  private let state = Lock(State())
  /// Requests that are with handlers. Only the thread uses it.
  var requests = 0
  private let ended = CountingSemaphore()
  private let worker = Workers(maximum: 1)

  /// Starts the daemon and the thread. `setup` must live until `stop` has returned.
  init(_ core: ServerCore, _ setup: UnsafeMutablePointer<cmicrohttpd_setup>) throws {
    self.core = core
    wakeUp = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    guard wakeUp >= 0 else {
      throw HTTPServerError(.systemFailure, "can't start the HTTP server: \(ListeningSocket.text(errno))")
    }
    guard let daemon = cmicrohttpd_start(setup) else {
      let reason = ListeningSocket.text(errno)
      close(wakeUp)
      throw HTTPServerError(.systemFailure, "can't start the HTTP server: libmicrohttpd refused: \(reason)")
    }
    self.daemon = daemon
    events = cmicrohttpd_events(daemon)
    worker.enqueue { [self] in run() }
  }

  deinit { close(wakeUp) }

  /// Serves a connection. From any thread.
  func add(_ connection: ServerConnection, _ address: SocketAddress) {
    connection.loop = self
    state.withLock { $0.incoming.append((connection, address)) }
    wake()
  }

  /// Ends the thread and the daemon. No connection may come any more.
  func stop() {
    state.withLock { $0.isStopping = true }
    wake()
    ended.wait()
    MHD_stop_daemon(daemon)
  }

  /// Lets the daemon look again at what was resumed, which its descriptor doesn't tell. From any thread.
  func wake() {
    var one: UInt64 = 1
    write(wakeUp, &one, 8)
  }

  // MARK: The thread

  /// How long the thread looks for the next event before it sleeps, in seconds. To be woken takes as long as a short request.
  private static let watchSeconds = sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1 ? 100e-6 : 0

  private func run() {
    var entries = [events, wakeUp].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    defer { ended.signal() }
    var watchEnd = 0.0
    while true {
      let count = wait(&entries, watchEnd)
      // With several clients, handlers need the processors.
      defer {
        let watches = count > 0 && requests <= 1 && core.hasOneClient.load(ordering: .relaxed)
        watchEnd = watches ? MonotonicClock.now + Self.watchSeconds : 0
      }
      if count > 0, entries[1].revents != 0 {
        var value: UInt64 = 0
        read(wakeUp, &value, 8)
        let (incoming, isStopping) = state.withLock { state in
          defer { state.incoming = [] }
          return (state.incoming, state.isStopping)
        }
        for (connection, address) in incoming { serve(connection, address) }
        if isStopping { return }
      }
      MHD_run(daemon)
    }
  }

  /// Waits for an event, until `watchEnd` without sleeping.
  private func wait(_ entries: inout [pollfd], _ watchEnd: Double) -> Int32 {
    let milliseconds = milliseconds
    if milliseconds != 0 {
      while MonotonicClock.now < watchEnd {
        let count = poll(&entries, nfds_t(entries.count), 0)
        if count != 0 { return count }
      }
    }
    return poll(&entries, nfds_t(entries.count), milliseconds)
  }

  /// How long the library may be left alone; -1 if it has nothing to do but what its descriptor tells.
  private var milliseconds: Int32 {
    var milliseconds: UInt64 = 0
    return MHD_get_timeout(daemon, &milliseconds) == .YES ? Int32(clamping: milliseconds) : -1
  }

  /// Gives a connection to the library, which closes the descriptor, also when it can't serve it.
  private func serve(_ connection: ServerConnection, _ address: SocketAddress) {
    core.table.serve(connection)
    let isServed = withUnsafePointer(to: address.storage) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        MHD_add_connection(daemon, connection.served, $0, address.size) == .YES
      }
    }
    guard !isServed else { return }
    core.table.stopServing(connection)
    // With TLS, the other end of the pair hears of it.
    if !connection.isSecure { core.table.remove(connection) }
  }
}
