import HTTP

/// What an authenticator is asked.
package struct LoginQuestion: Sendable {
  /// The client's address.
  package let peer: PeerAddress
  /// The header `Authorization`; nil if there is none.
  package let authorization: String?
  /// The client's certificate, which was checked; nil if there is none.
  package let certificate: ClientCertificate?
  let head: RequestHead

  /// The request's method.
  package var method: String { head.method }
  /// The request's target.
  package var target: HTTPTarget { head.target }

  /// The value of a cookie of that name; nil if there is none.
  package func cookie(_ name: String) -> String? { head.headers.cookie(name) }
}

/// Logins that come in headers of each request, beside names with passwords. They need no time.
package protocol HeaderLoginChecker: Sendable {
  /// The verdict on a header `Authorization`; nil if it is of another kind.
  func verdict(authorization: String) -> LoginVerdict?
  /// Whom other headers name; nil if they name nobody.
  func user(_ header: (String) -> String?) -> UserContext?
}

/// Whether a client may ask.
package enum LoginVerdict: Sendable {
  /// It may, as this user.
  case allowed(UserContext)
  /// It may not.
  case refused(Int, headers: [HTTPHeader], String)
}

/// Decides who may ask.
package protocol Authenticator: Sendable {
  /// The verdict, if it needs no time; nil otherwise, and `check` is called. It is called on a thread that serves many
  /// connections: it must not wait for anything.
  func verdictAtOnce(_ question: LoginQuestion) -> LoginVerdict?

  /// Decides, when `verdictAtOnce` can't. It is called on a thread that serves many connections, mustn't wait, and calls `completion`
  /// once, at once or later, from any thread.
  func check(_ question: LoginQuestion, _ completion: @escaping @Sendable (LoginVerdict) -> Void)
}

/// Lets everybody in, as administrators.
package struct NoAuthenticator: Authenticator {
  /// Makes one.
  package init() {}
  package func verdictAtOnce(_ question: LoginQuestion) -> LoginVerdict? { .allowed(.everybody) }
  package func check(_ question: LoginQuestion, _ completion: @escaping @Sendable (LoginVerdict) -> Void) {
    completion(.allowed(.everybody))
  }
}

/// Lets in, as an administrator, who shows a certificate that was checked (`HTTPServerConfiguration.clientCertificates`). The others are asked
/// by another authenticator, or refused.
package struct CertificateAuthenticator: Authenticator {
  private let user: @Sendable (ClientCertificate) -> String?
  private let other: (any Authenticator)?

  /// `user` names who shows a certificate; nil refuses it. The default is its common name.
  package init(
    user: @escaping @Sendable (ClientCertificate) -> String? = { $0.commonName },
    otherwise: (any Authenticator)? = nil
  ) {
    self.user = user
    other = otherwise
  }

  package func verdictAtOnce(_ question: LoginQuestion) -> LoginVerdict? {
    if let certificate = question.certificate, let user = user(certificate) { return .allowed(.admin(user)) }
    if let other { return other.verdictAtOnce(question) }
    return .refused(403, headers: [], "this server lets in clients with certain certificates")
  }

  package func check(_ question: LoginQuestion, _ completion: @escaping @Sendable (LoginVerdict) -> Void) {
    if let verdict = verdictAtOnce(question) { return completion(verdict) }
    other?.check(question, completion)
  }
}
