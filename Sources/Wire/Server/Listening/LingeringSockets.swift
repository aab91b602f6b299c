import Glibc
import System

/// Sockets whose answer has been sent while the client still sends.
///
/// A socket that is closed with bytes unread resets the connection, and the client may lose the answer: many clients read none before they
/// have sent their whole request. So a copy is kept open for a time, and what comes is dropped.
final class LingeringSockets: Sendable {
  private struct Entry {
    var descriptor: Int32
    var since: Double
    var lastSeen: Double
    var bytes = 0
  }

  /// When there are more, the oldest is closed.
  private static let maximum = 256
  /// What is dropped of one socket at a time. The kernel doesn't copy it.
  private static let pieceBytes = 16 << 20
  private let limits: HTTPServerLimits
  private let entries = Lock<[Entry]>([])

  init(_ limits: HTTPServerLimits) { self.limits = limits }

  /// Takes over a descriptor of a TCP connection. Nothing more is sent through it.
  func add(_ descriptor: Int32) {
    shutdown(descriptor, Int32(SHUT_WR))
    let now = MonotonicClock.now
    entries.withLock { entries in
      if entries.count == Self.maximum { close(entries.removeFirst().descriptor) }
      entries.append(Entry(descriptor: descriptor, since: now, lastSeen: now))
    }
  }

  var isEmpty: Bool { entries.withLock { $0.isEmpty } }

  /// Drops what has come. Closes those that have ended, or have had their time.
  func drain(now: Double) {
    entries.withLock { entries in
      for index in entries.indices.reversed() where drain(&entries[index], now) {
        close(entries.remove(at: index).descriptor)
      }
    }
  }

  /// Returns whether nothing more is to be read.
  private func drain(_ entry: inout Entry, _ now: Double) -> Bool {
    let count = recv(entry.descriptor, nil, Self.pieceBytes, Int32(MSG_DONTWAIT) | Int32(MSG_TRUNC))
    if count > 0 {
      entry.bytes += count
      entry.lastSeen = now
    } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
      return true
    }
    return entry.bytes > limits.lingeringBytes || now - entry.since > limits.lingeringSeconds
      || now - entry.lastSeen > limits.lingeringIdleSeconds
  }

  func closeAll() {
    entries.withLock { entries in
      for entry in entries { close(entry.descriptor) }
      entries = []
    }
  }
}
