import Bytes
import CCrypto
import FoundationEssentials
import Glibc
import HTTP
import System

// The cookie of a session. It is CouchDB's but for the hash:
//
//   cookie  := base64url( name ":" time "." session ":" mac )       without padding
//   time    := seconds since 1970, in upper-case hexadecimal digits
//   session := 16 random hexadecimal digits. A cookie that takes the place of another has those of that
//   mac     := HMAC-SHA256( key, name ":" time "." session ":" generation )
//
// The key is random for each authenticator, and the generation is that of the password checker: sessions end when the server
// stops, and when the passwords change. A log-out ends one session.

/// Basic authentication, and cookies of those who have logged in with it.
package final class SessionAuthenticator: Authenticator {
  /// The name of the cookie.
  package static let cookieName = "AuthSession"
  /// How long a cookie is good for, in seconds.
  package let seconds: Int

  private let basic: BasicAuthenticator
  private let key: [UInt8]
  private let isOpen: @Sendable (LoginQuestion) -> Bool
  /// The sessions that were ended, and until when cookies of them would have been good.
  private let ended = Lock<[UInt64: Int]>([:])
  /// The most sessions that are kept there. Each needs a login.
  private static let maximumEnded = 100_000

  /// Makes one. Requests for which `isOpen` is true need no login; those that bring one must bring a right one.
  package init(
    _ basic: BasicAuthenticator, seconds: Int = 600, isOpen: @escaping @Sendable (LoginQuestion) -> Bool
  ) throws {
    self.basic = basic
    self.seconds = seconds
    self.isOpen = isOpen
    var key = [UInt8](repeating: 0, count: 32)
    guard RAND_bytes(&key, Int32(key.count)) == 1 else {
      throw HTTPServerError(.systemFailure, "the random generator of the system failed")
    }
    self.key = key
  }

  package func verdictAtOnce(_ question: LoginQuestion) -> LoginVerdict? {
    if question.authorization != nil { return basic.verdictAtOnce(question).map { worded($0, question) } }
    if let cookie = question.cookie(Self.cookieName), let user = user(of: cookie, at: time(nil)) {
      return .allowed(user: user)
    }
    if isOpen(question) { return .allowed(user: nil) }
    return basic.verdictAtOnce(question).map { worded($0, question) }
  }

  package func check(_ question: LoginQuestion, _ completion: @escaping @Sendable (LoginVerdict) -> Void) {
    basic.check(question) { [self] in completion(worded($0, question)) }
  }

  /// A refusal in CouchDB's words. A page says in `X-CouchDB-WWW-Authenticate` what its browser is told, so that it shows no dialog of its
  /// own.
  private func worded(_ verdict: LoginVerdict, _ question: LoginQuestion) -> LoginVerdict {
    guard case .refused(401, var headers, let reason) = verdict else { return verdict }
    if let wanted = question.head.headers.first("x-couchdb-www-authenticate") {
      headers.removeAll { $0.name == "WWW-Authenticate" }
      headers.append(.init("WWW-Authenticate", wanted))
    }
    return .refused(
      401, headers: headers, question.authorization == nil ? reason : "Name or password is incorrect.")
  }

  /// Checks a name and a password that came in the body of a request.
  package func check(
    _ user: String, _ password: String, from network: ByteString,
    _ completion: @escaping @Sendable (LoginVerdict) -> Void
  ) {
    basic.check(ByteString(user), Array(password.utf8), from: network, completion)
  }

  /// A cookie for a user, from now on.
  package func cookie(for user: String) -> String {
    cookie(for: user, at: time(nil), .random(in: 0...UInt64.max))
  }

  /// A cookie in the place of one of which more than a tenth of its time is over, so that who keeps asking stays logged in. Nil if
  /// the cookie isn't good, or is young.
  package func renewal(of cookie: String) -> String? { renewal(of: cookie, at: time(nil)) }

  func renewal(of cookie: String, at now: Int) -> String? {
    guard let session = session(of: cookie, at: now), now - session.began > seconds / 10 else { return nil }
    return self.cookie(for: session.user, at: now, session.number)
  }

  /// Ends the session of a cookie.
  package func end(_ cookie: String) { end(cookie, at: time(nil)) }

  func end(_ cookie: String, at now: Int) {
    guard let session = session(of: cookie, at: now) else { return }
    ended.withLock { ended in
      if ended.count >= Self.maximumEnded { ended = ended.filter { $0.value > now } }
      if ended.count < Self.maximumEnded { ended[session.number] = now + seconds + 60 }
    }
  }

  func cookie(for user: String, at time: Int, _ session: UInt64 = 0) -> String {
    let text = Self.text(user, time, session)
    let bytes = text + [UInt8(ascii: ":")] + mac(text)
    return Data(bytes).base64EncodedString()
      .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// Whose cookie it is; nil if it isn't one of ours, or too old.
  func user(of cookie: String, at now: Int) -> String? { session(of: cookie, at: now)?.user }

  private func session(of cookie: String, at now: Int) -> (user: String, began: Int, number: UInt64)? {
    guard cookie.utf8.count <= 4_096 else { return nil }
    var text = cookie.replacing("-", with: "+").replacing("_", with: "/")
    while text.utf8.count % 4 != 0 { text += "=" }
    guard let bytes = Data(base64Encoded: text).map({ [UInt8]($0) }), bytes.count > 33,
      bytes[bytes.count - 33] == UInt8(ascii: ":")
    else { return nil }
    let (signed, mac) = (Array(bytes.dropLast(33)), Array(bytes.suffix(32)))
    guard CRYPTO_memcmp(mac, self.mac(signed), 32) == 0,
      let colon = signed.lastIndex(of: UInt8(ascii: ":")),
      let point = signed[colon...].firstIndex(of: UInt8(ascii: ".")),
      let time = Int(String(decoding: signed[(colon + 1)..<point], as: UTF8.self), radix: 16),
      let number = UInt64(String(decoding: signed[(point + 1)...], as: UTF8.self), radix: 16),
      now >= time - 60, now < time + seconds, ended.withLock({ $0[number] }) == nil
    else { return nil }
    return String(validating: signed[..<colon], as: UTF8.self).map { ($0, time, number) }
  }

  private static func text(_ user: String, _ time: Int, _ session: UInt64) -> [UInt8] {
    Array(
      "\(user):\(String(time, radix: 16, uppercase: true)).\(String(session, radix: 16, uppercase: true))"
        .utf8)
  }

  private func mac(_ text: [UInt8]) -> [UInt8] {
    let message = text + Array(":\(basic.generation)".utf8)
    var digest = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 32
    HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, &digest, &count)
    return digest
  }
}
