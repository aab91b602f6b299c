import Bytes
import System

/// Makes a network with failed logins of a user wait before it tries that user again.
///
/// The first three failures are free. Each one after makes it wait twice as long as the one before, from a quarter of a second to eight
/// seconds. A network and a user that have been quiet for five minutes are forgotten; so are those that have been quiet for longest when
/// there are too many.
final class LoginThrottle: Sendable {
  private struct Login: Hashable {
    var network: ByteString
    var user: ByteString

    /// Longer names than any user has may share an entry.
    init(_ user: ByteString, _ network: ByteString) {
      self.network = network
      self.user = user.bytes.count <= 256 ? user : ByteString(user.bytes.prefix(256))
    }
  }

  private struct Entry {
    var failures: Int
    var last: Double
    var until: Double
  }

  private static let maximum = 4_096
  private static let free = 3
  private static let forgetSeconds = 300.0
  private let entries = Lock<[Login: Entry]>([:])
  private let now: @Sendable () -> Double

  /// `now` is the time in seconds.
  init(now: @escaping @Sendable () -> Double = { MonotonicClock.now }) { self.now = now }

  /// How long the network has to wait before it tries the user again, in seconds; nil if it needn't.
  func secondsToWait(_ user: ByteString, _ network: ByteString) -> Double? {
    let now = now()
    let login = Login(user, network)
    guard let until = entries.withLock({ $0[login]?.until }), until > now else { return nil }
    return until - now
  }

  func failed(_ user: ByteString, _ network: ByteString) {
    let now = now()
    let login = Login(user, network)
    entries.withLock { entries in
      if entries[login] == nil, entries.count >= Self.maximum {
        entries = entries.filter { now - $0.value.last < Self.forgetSeconds }
        if entries.count >= Self.maximum, let oldest = entries.min(by: { $0.value.last < $1.value.last }) {
          entries[oldest.key] = nil
        }
      }
      var entry = entries[login] ?? Entry(failures: 0, last: now, until: 0)
      if now - entry.last > Self.forgetSeconds { entry.failures = 0 }
      entry.failures += 1
      entry.last = now
      if entry.failures > Self.free {
        entry.until = now + 0.25 * Double(1 << min(entry.failures - Self.free - 1, 5))
      }
      entries[login] = entry
    }
  }

  func succeeded(_ user: ByteString, _ network: ByteString) {
    let login = Login(user, network)
    entries.withLock { $0[login] = nil }
  }

  var count: Int { entries.withLock { $0.count } }
}
