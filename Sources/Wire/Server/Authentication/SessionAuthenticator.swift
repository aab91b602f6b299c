import Bytes
import CCrypto
import FoundationEssentials
import Glibc
import HTTP
import System

// The cookie of a session. It is CouchDB's but for what is between the time and the hash:
//
//   cookie  := base64url( name ":" time "." session "." mark ":" mac )       without padding
//   time    := seconds since 1970, in upper-case hexadecimal digits
//   session := a random number of 64 bits in such digits. A cookie that takes the place of another has that of the other
//   mark    := the mark of the user (`KnownUser`) in such digits
//   mac     := HMAC-SHA256( key, what is before ":" mac )
//
// The key is random for each authenticator: sessions end when the server stops. They also end when the mark of their user changes,
// as with a new password. A log-out ends one session.

/// Basic authentication, and cookies of those who have logged in with it.
package final class SessionAuthenticator: Authenticator {
  /// The name of the cookie.
  package static let cookieName = "AuthSession"
  /// How long a cookie is good for, in seconds.
  package let seconds: Int

  /// Logins by other headers; nil: none.
  package let headers: (any HeaderLoginChecker)?
  private let basic: BasicAuthenticator
  private let key: [UInt8]
  private let isOpen: @Sendable (LoginQuestion) -> Bool
  /// Look for the users of cookies who aren't remembered. Logins, which are slow, don't delay them.
  private let lookups = Workers(maximum: 2)
  private let ended = Lock(EndedSessions())

  /// Makes one. Requests for which `isOpen` is true need no login; those that bring a name and a password must bring right ones. `seconds`
  /// is how long a cookie is good for.
  package init(
    _ basic: BasicAuthenticator, seconds: Int = 600, headers: (any HeaderLoginChecker)? = nil,
    isOpen: @escaping @Sendable (LoginQuestion) -> Bool
  ) throws {
    self.basic = basic
    self.headers = headers
    self.seconds = seconds
    self.isOpen = isOpen
    var key = [UInt8](repeating: 0, count: 32)
    guard RAND_bytes(&key, Int32(key.count)) == 1 else {
      throw HTTPServerError(.systemFailure, "the random generator of the system failed")
    }
    self.key = key
  }

  /// The header that asks for a login.
  package var challenge: HTTPHeader { basic.challenge }

  package func verdictAtOnce(_ question: LoginQuestion) -> LoginVerdict? {
    if let verdict = question.authorization.flatMap({ headers?.verdict(authorization: $0) }) {
      return verdict
    }
    if hasPassword(question) { return basic.verdictAtOnce(question).map { worded($0, question) } }
    if let session = session(of: question, at: time(nil)) {
      guard let known = basic.users.recall(session.user) else { return nil }
      if known.mark == session.mark { return .allowed(known.context) }
    }
    return withoutLogin(question)
  }

  package func check(_ question: LoginQuestion, _ completion: @escaping @Sendable (LoginVerdict) -> Void) {
    guard !hasPassword(question), let session = session(of: question, at: time(nil)) else {
      return basic.check(question) { [self] in completion(worded($0, question)) }
    }
    lookups.enqueue { [self] in
      if let known = basic.users.find(session.user), known.mark == session.mark {
        return completion(.allowed(known.context))
      }
      completion(withoutLogin(question))
    }
  }

  /// Whether the request brings a name and a password. Logins of kinds that nobody here knows are none, as in CouchDB: a proxy before
  /// this server may have asked for them.
  private func hasPassword(_ question: LoginQuestion) -> Bool {
    question.authorization.map { BasicAuthenticator.isOfScheme($0) } ?? false
  }

  private func withoutLogin(_ question: LoginQuestion) -> LoginVerdict {
    if let user = headers?.user({ question.head.headers.first($0) }) { return .allowed(user) }
    if isOpen(question) { return .allowed(.anonymous) }
    return worded(.refused(401, headers: [challenge], "a name and a password are needed"), question)
  }

  /// A refusal in CouchDB's words, with a challenge for clients that need one.
  private func worded(_ verdict: LoginVerdict, _ question: LoginQuestion) -> LoginVerdict {
    guard case .refused(401, var headers, let reason) = verdict else { return verdict }
    headers.removeAll { $0.name == "WWW-Authenticate" }
    if let told = HTTPHeader.loginChallenge(challenge, for: question.head.headers) { headers.append(told) }
    return .refused(
      401, headers: headers, hasPassword(question) ? "Name or password is incorrect." : reason)
  }

  /// What comes of a login in the body of a request.
  package enum Login: Sendable {
    /// The user, and a cookie from now on.
    case right(UserContext, cookie: String)
    /// The status, the headers and the reason of a refusal.
    case refused(Int, headers: [HTTPHeader], String)
  }

  /// Checks a name and a password that came in the body of a request. `completion` is called once, from any thread.
  package func check(
    _ user: String, _ password: String, from network: ByteString,
    _ completion: @escaping @Sendable (Login) -> Void
  ) {
    basic.check(ByteString(user), Array(password.utf8), from: network) { [self] login in
      switch login {
      case .right(let known): completion(.right(known.context, cookie: cookie(for: known)))
      case .refused(.refused(let status, let headers, let reason)):
        completion(.refused(status, headers: headers, reason))
      case .refused(.allowed): completion(.refused(401, headers: [], ""))
      }
    }
  }

  /// Who a user is now, if there is one. It may wait.
  package func context(of user: String) -> UserContext? { basic.context(of: user) }

  /// A cookie for a user, from now on.
  package func cookie(for user: KnownUser) -> String {
    cookie(for: user, at: time(nil), .random(in: 0...UInt64.max))
  }

  /// A cookie in the place of one of which more than a tenth of its time is over, so that who keeps asking stays logged in. Nil if
  /// the cookie isn't good, or is young.
  package func renewal(of cookie: String) -> String? { renewal(of: cookie, at: time(nil)) }

  func renewal(of cookie: String, at now: Int) -> String? {
    guard let session = session(of: cookie, at: now), now - session.began > seconds / 10 else { return nil }
    return self.cookie(at: now, session)
  }

  /// Ends the session of a cookie.
  package func end(_ cookie: String) { end(cookie, at: time(nil)) }

  func end(_ cookie: String, at now: Int) {
    guard let session = session(of: cookie, at: now) else { return }
    ended.withLock { $0.end(session.number, of: session.user, at: now, until: now + seconds + 60) }
  }

  func cookie(for user: KnownUser, at time: Int, _ number: UInt64 = 0) -> String {
    let name = ByteString(user.context.name ?? "")
    return cookie(at: time, Session(user: name, began: time, number: number, mark: user.mark))
  }

  private func cookie(at time: Int, _ session: Session) -> String {
    let numbers = [UInt64(clamping: time), session.number, session.mark].map {
      String($0, radix: 16, uppercase: true)
    }
    let text = session.user.bytes + [UInt8(ascii: ":")] + Array(numbers.joined(separator: ".").utf8)
    return Data(text + [UInt8(ascii: ":")] + mac(text)).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// What a cookie says.
  private struct Session {
    var user: ByteString
    /// When the cookie was made, in seconds since 1970.
    var began: Int
    var number: UInt64
    var mark: UInt64
  }

  /// Whose cookie it is; nil if it isn't one of ours, too old, or of a user with another mark.
  func user(of cookie: String, at now: Int) -> String? {
    guard let session = session(of: cookie, at: now), let known = basic.users.find(session.user),
      known.mark == session.mark
    else { return nil }
    return known.context.name
  }

  private func session(of question: LoginQuestion, at now: Int) -> Session? {
    question.cookie(Self.cookieName).flatMap { session(of: $0, at: now) }
  }

  /// What a cookie says that was made here, isn't too old, and whose session wasn't ended.
  private func session(of cookie: String, at now: Int) -> Session? {
    guard cookie.utf8.count <= 4_096 else { return nil }
    // Byte by byte: each request with a cookie comes here.
    var text = Data(
      cookie.utf8.map { byte in
        switch byte {
        case UInt8(ascii: "-"): UInt8(ascii: "+")
        case UInt8(ascii: "_"): UInt8(ascii: "/")
        default: byte
        }
      })
    while text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
    guard let bytes = Data(base64Encoded: text).map({ [UInt8]($0) }), bytes.count > 33,
      bytes[bytes.count - 33] == UInt8(ascii: ":")
    else { return nil }
    let (signed, mac) = (Array(bytes.dropLast(33)), Array(bytes.suffix(32)))
    guard CRYPTO_memcmp(mac, self.mac(signed), 32) == 0,
      let colon = signed.lastIndex(of: UInt8(ascii: ":"))
    else { return nil }
    let numbers = signed[(colon + 1)...].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      .map { UInt64(String(decoding: $0, as: UTF8.self), radix: 16) }
    guard numbers.count == 3, let time = numbers[0].flatMap({ Int(exactly: $0) }), let number = numbers[1],
      let mark = numbers[2], now >= time - 60, now < time + seconds
    else { return nil }
    let user = ByteString(signed[..<colon])
    guard !ended.withLock({ $0.contains(number, of: user, madeAt: time) }) else { return nil }
    return Session(user: user, began: time, number: number, mark: mark)
  }

  private func mac(_ text: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 32
    HMAC(EVP_sha256(), key, Int32(key.count), text, text.count, &digest, &count)
    return digest
  }
}
