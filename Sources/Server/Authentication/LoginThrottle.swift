import Bytes
import Storage

/// Makes networks with failed logins wait between two tries.
///
/// The first three failures are free. Each one after makes the network wait twice as long as the one before, from a
/// quarter of a second to eight seconds. A network that has been quiet for five minutes is forgotten.
final class LoginThrottle: Sendable {
  private struct Entry {
    var failures: Int
    var last: Double
    var until: Double
  }

  private static let maximum = 4_096
  private static let free = 3
  private static let forgetSeconds = 300.0
  private let entries = Lock<[ByteString: Entry]>([:])

  func secondsToWait(_ network: ByteString) -> Double? {
    let now = MonotonicClock.now
    guard let until = entries.withLock({ $0[network]?.until }), until > now else { return nil }
    return until - now
  }

  func failed(_ network: ByteString) {
    let now = MonotonicClock.now
    entries.withLock { entries in
      if entries[network] == nil, entries.count >= Self.maximum {
        entries = entries.filter { now - $0.value.last < Self.forgetSeconds }
        if entries.count >= Self.maximum, let oldest = entries.min(by: { $0.value.last < $1.value.last }) {
          entries[oldest.key] = nil
        }
      }
      var entry = entries[network] ?? Entry(failures: 0, last: now, until: 0)
      if now - entry.last > Self.forgetSeconds { entry.failures = 0 }
      entry.failures += 1
      entry.last = now
      if entry.failures > Self.free {
        entry.until = now + 0.25 * Double(1 << min(entry.failures - Self.free - 1, 5))
      }
      entries[network] = entry
    }
  }

  func succeeded(_ network: ByteString) { entries.withLock { $0[network] = nil } }

  var count: Int { entries.withLock { $0.count } }
}
