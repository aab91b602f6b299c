import Bytes
import CCrypto
import System

/// Remembers which credentials were right, by a keyed hash: neither names nor passwords are kept.
final class CredentialCache: Sendable {
  private static let maximum = 1_024
  private let seconds: Double
  private let key: [UInt8]
  private let until = Lock<[ByteString: Double]>([:])

  init(seconds: Double) throws {
    self.seconds = seconds
    var key = [UInt8](repeating: 0, count: 32)
    guard RAND_bytes(&key, Int32(key.count)) == 1 else {
      throw HTTPServerError(.systemFailure, "the random generator of the system failed")
    }
    self.key = key
  }

  func contains(_ user: ByteString, _ password: [UInt8], _ mark: UInt64) -> Bool {
    guard seconds > 0 else { return false }
    let digest = digest(user, password, mark)
    return until.withLock { $0[digest] ?? 0 } > MonotonicClock.now
  }

  func insert(_ user: ByteString, _ password: [UInt8], _ mark: UInt64) {
    guard seconds > 0 else { return }
    let digest = digest(user, password, mark)
    let now = MonotonicClock.now
    until.withLock { until in
      if until.count >= Self.maximum {
        until = until.filter { $0.value > now }
        if until.count >= Self.maximum { until = [:] }
      }
      until[digest] = now + seconds
    }
  }

  private func digest(_ user: ByteString, _ password: [UInt8], _ mark: UInt64) -> ByteString {
    // Neither part has a zero byte.
    let text = user.bytes + [0] + password + [0] + withUnsafeBytes(of: mark) { Array($0) }
    var digest = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 32
    HMAC(EVP_sha256(), key, Int32(key.count), text, text.count, &digest, &count)
    return ByteString(digest)
  }
}
