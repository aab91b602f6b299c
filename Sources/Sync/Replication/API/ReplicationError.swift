#if canImport(Glibc)
  import Glibc
#endif
import Documents
import Storage
import Touchstone

/// Why a replication stopped or waits, or why a document wasn't replicated.
public struct ReplicationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Where the code comes from.
  public enum Domain: String, Sendable, CaseIterable {
    /// A status of HTTP: 401, 404, 503.
    case http
    /// A close code of WebSocket: 1001, 1006.
    case webSocket
    /// An error of the operating system: ECONNREFUSED.
    case posix
    /// A failure of the network that isn't an error of the operating system (`NetworkCode`).
    case network
    /// An error of BLIP, the protocol of messages.
    case blip
    /// An error with a code of LiteCore, as peers send it.
    case liteCore
    /// An error of this library. The code is an `ErrorKind`.
    case touchstone
  }

  /// The codes of the domain `network`, with the numbers of LiteCore.
  public enum NetworkCode: Int, Sendable, CaseIterable {
    /// The name of the host couldn't be looked up.
    case dnsFailure = 1
    /// The host has no address.
    case unknownHost = 2
    /// A request took too long.
    case timeout = 3
    /// The URL isn't one of a database.
    case invalidURL = 4
    /// There were too many redirects.
    case tooManyRedirects = 5
    /// The TLS handshake failed.
    case tlsHandshakeFailed = 6
    /// The server's certificate has expired.
    case tlsCertificateExpired = 7
    /// The server's certificate isn't trusted.
    case tlsCertificateUntrusted = 8
    /// The server wants a certificate of this side.
    case tlsClientCertificateRequired = 9
    /// The server doesn't take the certificate of this side, or it can't be read.
    case tlsClientCertificateRejected = 10
    /// The server's certificate is self-signed, or comes from an authority that isn't known.
    case tlsCertificateUnknownRoot = 11
    /// A redirect leads to no database.
    case invalidRedirect = 12
    /// Another failure.
    case unknown = 13
    /// The server's certificate was revoked.
    case tlsCertificateRevoked = 14
    /// The server's certificate is for another host.
    case tlsCertificateNameMismatch = 15
    /// There is no such network interface.
    case unknownInterface = 27
  }

  /// Where the code comes from.
  public let domain: Domain
  /// The code.
  public let code: Int
  /// A message for people.
  public let message: String
  /// After so many seconds the other side wants to be asked again, if it says so.
  package var retryAfter: Double?
  /// Whether the other side isn't the database any more that earlier sessions, or this one, replicated with.
  package var isOfAnotherDatabase = false

  /// Creates an error.
  public init(_ domain: Domain, _ code: Int, _ message: String) {
    self.domain = domain
    self.code = code
    self.message = message
  }

  /// The domain, the code and the message.
  public var description: String { "\(message) (\(domain.rawValue) \(code))" }

  /// Creates the error of this library that `error` is, or keeps it if it is a `ReplicationError`.
  package init(_ error: any Error) {
    if let error = error as? ReplicationError {
      self = error
    } else if let error = error as? any TouchstoneError {
      self.init(.touchstone, error.kind.rawValue, error.description)
    } else {
      self.init(.touchstone, ErrorKind.ioError.rawValue, "\(error)")
    }
  }

  // MARK: Retrying

  /// Whether a connection that ended with this error is tried again: by a one-shot replication a few times, by a
  /// continuous one for ever.
  public var isTransient: Bool {
    switch domain {
    case .http: [408, 429, 500, 502, 503, 504].contains(code)
    // A close with 1000 that this side didn't begin counts as 1001, going away. 4001 is a recoverable failure of a
    // transport of the app's own.
    case .webSocket: [1000, 1001, 1006, 1011, 4001].contains(code)
    case .posix: Self.transientPOSIX.contains(Int32(truncatingIfNeeded: code))
    case .network: code == NetworkCode.dnsFailure.rawValue || code == NetworkCode.timeout.rawValue
    case .touchstone: code == ErrorKind.busy.rawValue || code == ErrorKind.timeout.rawValue
    case .blip, .liteCore: false
    }
  }

  /// Whether the error may go away with a change of the network. Continuous replications wait for that.
  public var dependsOnNetwork: Bool {
    switch domain {
    case .posix: Self.networkPOSIX.contains(Int32(truncatingIfNeeded: code))
    case .network: code == NetworkCode.dnsFailure.rawValue || code == NetworkCode.unknownHost.rawValue
    default: false
    }
  }

  /// Whether the side that should have stored a document says with this error that it won't take this document, so that another try
  /// changes nothing. Any other error is a failure of that side: its disk is full, or it may not write.
  package var isRefusal: Bool {
    switch domain {
    case .http: 400..<500 ~= code && ![408, 429].contains(code)
    // 501: it has no such request.
    case .blip: 400..<500 ~= code || code == 501
    case .touchstone: ErrorKind(rawValue: code).map(Self.refusals.contains) ?? false
    case .liteCore: !Self.failuresOfLiteCore.contains(code)
    case .webSocket, .posix, .network: false
    }
  }

  /// Whether it says that something isn't there. As the answer to a pushed revision that names blobs, it is about a blob that this side
  /// couldn't give, or that was removed on the other side before the revision was stored: nothing is wrong with the document.
  var isAbsence: Bool {
    domain == .http && code == 404 || domain == .touchstone && code == ErrorKind.notFound.rawValue
  }

  /// A validation function's refusal is an HTTP 403. `forbidden` and `unauthorized` are about the files.
  private static let refusals: Set<ErrorKind> = [
    .badRequest, .notFound, .conflict, .duplicate, .tooLarge,
  ]
  /// A closed or unopenable file, errors of the system, no memory, not writable, busy, an error of another side. LiteCore counts as
  /// such what its `C4ErrorCode` lists so.
  private static let failuresOfLiteCore: Set<Int> = [6, 10, 11, 12, 13, 14, 16, 26]

  private static let transientPOSIX: Set<Int32> = [
    ENETRESET, ECONNABORTED, ECONNRESET, ETIMEDOUT, ECONNREFUSED,
  ]
  private static let networkPOSIX: Set<Int32> = [
    ENETDOWN, ENETUNREACH, ENOTCONN, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH, EADDRNOTAVAIL, EPIPE,
  ]

  // MARK: Well-known errors

  /// The peer refuses: its side isn't open for this direction.
  static func forbidden(_ message: String) -> ReplicationError { ReplicationError(.http, 403, message) }
  static func conflict(_ message: String) -> ReplicationError { ReplicationError(.http, 409, message) }
  /// The peer wants a filter that isn't here.
  static func noFilter(_ message: String) -> ReplicationError { ReplicationError(.liteCore, 19, message) }
  /// The bytes of a blob don't have its digest. LiteCore's code for corrupt data: another try brings the same bytes.
  static func wrongBlob(_ message: String) -> ReplicationError { ReplicationError(.liteCore, 15, message) }
  static let conflictsHere = conflict("the revision conflicts with the current one")
  static let cancelled = ReplicationError(
    .touchstone, ErrorKind.cancelled.rawValue, "the replication was stopped")
  static func refused(_ error: any Error) -> ReplicationError {
    if let error = error as? DocumentError, error.code == .rejected {
      return .forbidden(error.description)
    }
    return ReplicationError(error)
  }
}
