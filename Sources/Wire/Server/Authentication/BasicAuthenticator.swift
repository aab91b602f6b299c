import Bytes
import FoundationEssentials
import HTTP

/// Knows passwords.
package protocol PasswordChecker: Sendable {
  /// Changes when a password that was right may be wrong now.
  var generation: UInt64 { get }
  /// Whether there is a user of that name, as far as it can tell. It may wait.
  func knows(_ user: ByteString) -> Bool
  /// Whether the password is the user's. Called on a thread for logins; calls `completion` once, from any thread.
  func check(_ user: ByteString, _ password: [UInt8], _ completion: @escaping @Sendable (Bool) -> Void)
}

extension PasswordChecker {
  /// It can't tell: names are asked for that had a right password before.
  package func knows(_ user: ByteString) -> Bool { true }
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
  let users: any UserDirectory
  private let cache: CredentialCache
  private let throttle: LoginThrottle
  private let queue: LoginQueue

  /// `realm` is shown to people. `cacheSeconds` is how long a right password is remembered; 0 asks the checker each time. More than
  /// `pendingLogins` logins, or a quarter of that from one network, aren't checked at a time: the others get 503.
  package convenience init(
    realm: String = "Touchstone", users: any UserDirectory, cacheSeconds: Double = 60,
    pendingLogins: Int = 64
  ) throws {
    try self.init(
      realm: realm, users: users, cacheSeconds: cacheSeconds, pendingLogins: pendingLogins,
      throttle: LoginThrottle())
  }

  /// The same for the users of a checker, who are administrators.
  package convenience init(
    realm: String = "Touchstone", checker: any PasswordChecker, cacheSeconds: Double = 60,
    pendingLogins: Int = 64
  ) throws {
    try self.init(
      realm: realm, users: AdministratorDirectory(checker), cacheSeconds: cacheSeconds,
      pendingLogins: pendingLogins)
  }

  init(
    realm: String = "Touchstone", users: any UserDirectory, cacheSeconds: Double = 60,
    pendingLogins: Int = 64, throttle: LoginThrottle
  ) throws {
    self.throttle = throttle
    self.realm = realm.filter { $0 != "\"" && $0 != "\\" && $0 >= " " }
    self.users = users
    cache = try CredentialCache(seconds: cacheSeconds)
    queue = LoginQueue(maximum: pendingLogins)
  }

  package func verdictAtOnce(_ question: LoginQuestion) -> LoginVerdict? {
    guard let (user, password) = Self.credentials(question.authorization) else { return wrong }
    // Who isn't remembered is looked for, which may take time, and has perhaps logged in before.
    guard let known = users.recall(user) else { return nil }
    if cache.contains(user, password, known.mark) { return .allowed(known.context) }
    return tooSoon(user, question.peer.network)
  }

  package func check(_ question: LoginQuestion, _ completion: @escaping @Sendable (LoginVerdict) -> Void) {
    guard let (user, password) = Self.credentials(question.authorization) else { return completion(wrong) }
    check(user, password, from: question.peer.network) { completion($0.verdict) }
  }

  /// What comes of a login.
  enum Login: Sendable {
    case right(KnownUser)
    /// Always a refusal.
    case refused(LoginVerdict)

    var verdict: LoginVerdict {
      switch self {
      case .right(let user): .allowed(user.context)
      case .refused(let verdict): verdict
      }
    }
  }

  /// Checks a name and a password that came in another way than the header.
  func check(
    _ user: ByteString, _ password: [UInt8], from network: ByteString,
    _ completion: @escaping @Sendable (Login) -> Void
  ) {
    let isQueued = queue.enqueue(network) { [self] done in
      // The same login may have failed, or succeeded, while this one waited.
      if let known = users.find(user), cache.contains(user, password, known.mark) {
        done()
        return completion(.right(known))
      }
      if let verdict = tooSoon(user, network) {
        done()
        return completion(.refused(verdict))
      }
      users.check(user, password) { [self] found in
        done()
        if let found {
          cache.insert(user, password, found.mark)
          throttle.succeeded(user, network)
          completion(.right(found))
        } else {
          throttle.failed(user, network)
          completion(.refused(wrong))
        }
      }
    }
    if !isQueued {
      completion(
        .refused(
          .refused(503, headers: [.init("Retry-After", "1")], "too many logins are being checked")))
    }
  }

  /// Who a user is now; nil if there is none any more. It may wait.
  package func context(of user: String) -> UserContext? { users.find(ByteString(user))?.context }

  private func tooSoon(_ user: ByteString, _ network: ByteString) -> LoginVerdict? {
    throttle.secondsToWait(user, network).map {
      .refused(
        429, headers: [.init("Retry-After", String(max(1, Int($0.rounded(.up)))))],
        "too many failed logins; try again later")
    }
  }

  private var wrong: LoginVerdict {
    .refused(401, headers: [challenge], "a name and a password are needed")
  }

  /// The header that asks for a login.
  package var challenge: HTTPHeader {
    .init("WWW-Authenticate", "Basic realm=\"\(realm)\", charset=\"UTF-8\"")
  }

  /// Whether a header is one of basic authentication, well formed or not.
  static func isOfScheme(_ header: String) -> Bool {
    let scheme = header.utf8.prefix { $0 != UInt8(ascii: " ") }
    return scheme.map { $0 | 0x20 } == Array("basic".utf8)
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
