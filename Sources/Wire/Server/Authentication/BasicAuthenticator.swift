import Bytes
import FoundationEssentials
import HTTP

/// Knows passwords.
package protocol PasswordChecker: Sendable {
  /// Changes when a password that was right may be wrong now.
  var generation: UInt64 { get }
  /// Whether the password is the user's. Called on a thread for logins; calls `completion` once, from any thread.
  func check(_ user: ByteString, _ password: [UInt8], _ completion: @escaping @Sendable (Bool) -> Void)
}

/// A checker of one closure.
package struct ClosurePasswordChecker: PasswordChecker {
  private let body: @Sendable (ByteString, [UInt8], @escaping @Sendable (Bool) -> Void) -> Void
  package let generation: UInt64 = 0

  /// `body` answers now or later.
  package init(_ body: @escaping @Sendable (ByteString, [UInt8], @escaping @Sendable (Bool) -> Void) -> Void)
  {
    self.body = body
  }

  package func check(
    _ user: ByteString, _ password: [UInt8], _ completion: @escaping @Sendable (Bool) -> Void
  ) {
    body(user, password, completion)
  }
}

/// HTTP basic authentication (RFC 7617).
///
/// Passwords that were right are remembered for a time, so that not each request costs a slow hash. After failed logins, their network
/// has to wait before it tries that user again, longer each time. Others are checked on few threads (`LoginQueue`).
package final class BasicAuthenticator: Authenticator {
  private static let maximumHeaderBytes = 4_096
  private let realm: String
  private let checker: any PasswordChecker
  private let cache: CredentialCache
  private let throttle: LoginThrottle
  private let queue: LoginQueue

  /// `realm` is shown to people. `cacheSeconds` is how long a right password is remembered; 0 asks the checker each time. More than
  /// `pendingLogins` logins, or a quarter of that from one network, aren't checked at a time: the others get 503.
  package convenience init(
    realm: String = "Touchstone", checker: any PasswordChecker, cacheSeconds: Double = 60,
    pendingLogins: Int = 64
  ) throws {
    try self.init(
      realm: realm, checker: checker, cacheSeconds: cacheSeconds, pendingLogins: pendingLogins,
      throttle: LoginThrottle())
  }

  init(
    realm: String = "Touchstone", checker: any PasswordChecker, cacheSeconds: Double = 60,
    pendingLogins: Int = 64, throttle: LoginThrottle
  ) throws {
    self.throttle = throttle
    self.realm = realm.filter { $0 != "\"" && $0 != "\\" && $0 >= " " }
    self.checker = checker
    cache = try CredentialCache(seconds: cacheSeconds)
    queue = LoginQueue(maximum: pendingLogins)
  }

  package func verdictAtOnce(_ question: LoginQuestion) -> LoginVerdict? {
    guard let (user, password) = Self.credentials(question.authorization) else { return wrong }
    if cache.contains(user, password, checker.generation) { return .allowed(user: user.string) }
    return tooSoon(user, question.peer.network)
  }

  package func check(_ question: LoginQuestion, _ completion: @escaping @Sendable (LoginVerdict) -> Void) {
    guard let (user, password) = Self.credentials(question.authorization) else { return completion(wrong) }
    check(user, password, from: question.peer.network, completion)
  }

  /// Checks a name and a password that came in another way than the header.
  package func check(
    _ user: ByteString, _ password: [UInt8], from network: ByteString,
    _ completion: @escaping @Sendable (LoginVerdict) -> Void
  ) {
    let isQueued = queue.enqueue(network) { [self] done in
      // The same login may have failed, or succeeded, while this one waited.
      let generation = checker.generation
      let isKnown = cache.contains(user, password, generation)
      if let verdict = isKnown ? .allowed(user: user.string) : tooSoon(user, network) {
        done()
        return completion(verdict)
      }
      checker.check(user, password) { [self] isRight in
        done()
        if isRight {
          cache.insert(user, password, generation)
          throttle.succeeded(user, network)
          completion(.allowed(user: user.string))
        } else {
          throttle.failed(user, network)
          completion(wrong)
        }
      }
    }
    if !isQueued {
      completion(
        .refused(503, headers: [.init("Retry-After", "1")], "too many logins are being checked"))
    }
  }

  /// Changes when a password that was right may be wrong now.
  var generation: UInt64 { checker.generation }

  private func tooSoon(_ user: ByteString, _ network: ByteString) -> LoginVerdict? {
    throttle.secondsToWait(user, network).map {
      .refused(
        429, headers: [.init("Retry-After", String(max(1, Int($0.rounded(.up)))))],
        "too many failed logins; try again later")
    }
  }

  private var wrong: LoginVerdict {
    .refused(
      401, headers: [.init("WWW-Authenticate", "Basic realm=\"\(realm)\", charset=\"UTF-8\"")],
      "a name and a password are needed")
  }

  /// The name and the password of the header; nil if it has none.
  static func credentials(_ header: String?) -> (ByteString, [UInt8])? {
    guard let header, header.utf8.count <= maximumHeaderBytes, header.count > 6,
      header.prefix(6).lowercased() == "basic ",
      let bytes = Data(base64Encoded: header.dropFirst(6).trimmed).map({ [UInt8]($0) }),
      let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > 0, !bytes.contains(0)
    else { return nil }
    return (ByteString(bytes[..<colon]), Array(bytes[(colon + 1)...]))
  }
}
