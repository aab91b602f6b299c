import Glibc
import Storage

/// Sockets whose answer has been sent while the client still sends.
///
/// A socket that is closed with bytes unread resets the connection, and the client may lose the answer. So a copy is kept
/// open for a short time, and what comes is dropped.
final class LingeringSockets: Sendable {
  private struct Entry {
    var descriptor: Int32
    var since: Double
    var bytes = 0
  }

  private static let maximum = 256
  private static let seconds = 5.0
  private static let maximumBytes = 64 << 20
  private let entries = Lock<[Entry]>([])

  /// Takes over a descriptor. Nothing more is sent through it.
  func add(_ descriptor: Int32) {
    shutdown(descriptor, Int32(SHUT_WR))
    let isAdded = entries.withLock { entries in
      guard entries.count < Self.maximum else { return false }
      entries.append(Entry(descriptor: descriptor, since: MonotonicClock.now))
      return true
    }
    if !isAdded { close(descriptor) }
  }

  var isEmpty: Bool { entries.withLock { $0.isEmpty } }

  /// Drops what has come. Closes those that have ended, or have had their time.
  func drain(now: Double) {
    entries.withLock { entries in
      guard !entries.isEmpty else { return }
      var buffer = [UInt8](repeating: 0, count: 65_536)
      for index in entries.indices.reversed() {
        let descriptor = entries[index].descriptor
        var hasEnded = now - entries[index].since > Self.seconds
        for _ in 0..<64 where !hasEnded {
          let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
          if count < 0, errno == EAGAIN || errno == EINTR { break }
          entries[index].bytes += max(0, count)
          hasEnded = count <= 0 || entries[index].bytes > Self.maximumBytes
        }
        guard hasEnded else { continue }
        close(descriptor)
        entries.remove(at: index)
      }
    }
  }

  func closeAll() {
    entries.withLock { entries in
      for entry in entries { close(entry.descriptor) }
      entries = []
    }
  }
}
