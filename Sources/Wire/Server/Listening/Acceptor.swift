import CMicrohttpd
import Glibc
import Logs
import System

/// A thread that accepts connections and hands them to TLS, or to the daemon.
final class Acceptor: Sendable {
  private let core: ServerCore
  private let sockets: Lock<[ListeningSocket]>
  private let daemon: Daemon
  private let terminator: TLSTerminator?
  private let maximum: Int
  /// Written to when the thread has to end.
  private let wakeUp: Int32
  private let ended = CountingSemaphore()
  private let worker = Workers(maximum: 1)

  init(
    _ core: ServerCore, _ sockets: [ListeningSocket], _ daemon: Daemon, _ terminator: TLSTerminator?,
    maximum: Int
  ) throws {
    self.core = core
    self.sockets = Lock(sockets)
    self.daemon = daemon
    self.terminator = terminator
    self.maximum = maximum
    wakeUp = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    guard wakeUp >= 0 else {
      throw HTTPServerError(.systemFailure, "can't start the HTTP server: \(ListeningSocket.text(errno))")
    }
  }

  deinit { close(wakeUp) }

  func start() { worker.enqueue { [self] in run() } }

  /// Closes the listening sockets. No connection comes afterwards.
  func stop() {
    var one: UInt64 = 1
    write(wakeUp, &one, 8)
    ended.wait()
    sockets.withLock { $0 = [] }
  }

  private func run() {
    let descriptors = sockets.withLock { $0.map(\.descriptor) }
    var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    entries.append(pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0))
    defer { ended.signal() }
    while true {
      guard poll(&entries, nfds_t(entries.count), -1) > 0 else { continue }
      if entries[descriptors.count].revents != 0 { return }
      for (index, descriptor) in descriptors.enumerated() where entries[index].revents != 0 {
        // So many at most before the others are looked at.
        for _ in 0..<64 where !accept(descriptor) { break }
      }
    }
  }

  /// Returns whether to go on.
  private func accept(_ listener: Int32) -> Bool {
    var address = sockaddr_storage()
    var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let descriptor = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        accept4(listener, $0, &size, Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue))
      }
    }
    guard descriptor >= 0 else {
      let number = errno
      if [EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(number) {
        Log.write(
          .warning, .network, nil, "listener: can't accept a connection: \(ListeningSocket.text(number))")
        // Waits until something may have been closed, or the server stops.
        var entry = pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0)
        poll(&entry, 1, 100)
      }
      return number == EINTR || number == ECONNABORTED
    }
    let peer = PeerAddress(address)
    let connection = ServerConnection(socket: descriptor, peer: peer, isSecure: terminator != nil)
    guard
      core.table.add(
        connection, socket: descriptor, maximum: maximum, perNetwork: core.limits.connectionsPerAddress)
    else {
      Log.write(.info, .network, nil, "listener: too many connections; closed one from \(peer)")
      close(descriptor)
      return true
    }
    var yes: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, 4)
    if let terminator {
      terminator.begin(connection, descriptor, SocketAddress(storage: address, size: size))
    } else {
      daemon.add(connection, SocketAddress(storage: address, size: size))
    }
    return true
  }
}
