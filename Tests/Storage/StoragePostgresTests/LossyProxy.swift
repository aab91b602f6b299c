import Foundation
import Storage

/// A Unix socket in front of a server that loses what it is told to lose.
final class LossyProxy: Sendable {
  /// What happens to the next request that commits.
  enum Fault: Sendable {
    case none
    /// The server gets it, and its answer is lost with the connection.
    case losesAnswer
    /// The connection is lost before the server gets it.
    case losesRequest
    /// Nothing more passes in either direction, and the connection stays.
    case hangs
  }

  private struct State {
    var fault = Fault.none
    var accepts = true
    var isHanging = false
    var faults = 0
  }

  private let state = Lock(State())
  private let directory: String
  private let server: String
  private let listener: Int32

  /// Listens in `directory` for a server with its socket in `server`.
  init(_ directory: String, server: String) throws {
    self.directory = directory
    self.server = server
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    let bound = Self.withAddress(directory) { bind(listener, $0, $1) }
    guard bound == 0, listen(listener, 64) == 0 else {
      throw StorageError(.ioError, "can't listen: \(errno)")
    }
    Thread.detachNewThread { [self] in
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        Thread.detachNewThread { [self] in serve(client) }
      }
    }
  }

  func end() {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
  }

  /// Sets what happens to the next commit.
  func set(_ fault: Fault) { state.withLock { $0.fault = fault } }

  /// The number of faults that have happened.
  var faults: Int { state.withLock { $0.faults } }

  /// Whether new connections are served, or closed at once.
  func accepts(_ accepts: Bool) { state.withLock { $0.accepts = accepts } }

  private static func withAddress<Result>(
    _ directory: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let path = "\(directory)/.s.PGSQL.5432"
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }

  private func serve(_ client: Int32) {
    defer { close(client) }
    guard state.withLock({ $0.accepts }) else { return }
    let upstream = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(upstream) }
    guard Self.withAddress(server, { connect(upstream, $0, $1) }) == 0 else { return }
    var entries = [
      pollfd(fd: client, events: Int16(POLLIN), revents: 0),
      pollfd(fd: upstream, events: Int16(POLLIN), revents: 0),
    ]
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      guard poll(&entries, 2, -1) > 0 else { continue }
      for (from, to) in [(0, 1), (1, 0)] where entries[from].revents != 0 {
        let count = read(entries[from].fd, &buffer, buffer.count)
        guard count > 0 else { return }
        if from == 0, Data(buffer[..<count]).range(of: Data("COMMIT\0".utf8)) != nil {
          switch takeFault() {
          case .none: break
          case .losesRequest: return
          case .losesAnswer:
            write(entries[1].fd, buffer, count)
            // The server has committed when it answers.
            _ = read(entries[1].fd, &buffer, buffer.count)
            return
          case .hangs:
            // Until the client gives up.
            while read(client, &buffer, buffer.count) > 0 {}
            return
          }
        }
        var sent = 0
        while sent < count {
          let written = buffer[sent..<count].withUnsafeBytes {
            send(entries[to].fd, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
          }
          guard written > 0 else { return }
          sent += written
        }
      }
    }
  }

  private func takeFault() -> Fault {
    state.withLock { state in
      defer { state.fault = .none }
      if state.fault != .none { state.faults += 1 }
      return state.fault
    }
  }
}
