import CCrypto
import CSSL
import Foundation
import RawHTTP
import TestTools
import Testing

/// A `RawClient` over TLS: libssl between memory and the socket. It trusts every server.
final class TLSClient: RawClient {
  struct Options {
    var versions = TLS1_2_VERSION...TLS1_3_VERSION
    /// The protocols that ALPN offers.
    var protocols: [String] = []
    /// Files of a certificate and its key.
    var certificate: (file: String, key: String)?
    /// A session to go on with.
    var session: OpaquePointer?
    var receiveBufferBytes: Int32?
    /// How many bytes may go over the socket, TLS's own included.
    var maximumBytes = Int.max
  }

  private let context: OpaquePointer
  private var bytesLeft: Int
  private(set) var session: OpaquePointer?
  private(set) var hasShakenHands = false
  /// Whether the server has said that it ends (close_notify).
  private(set) var hasGoodbye = false

  @available(*, unavailable) package override init(
    _ port: UInt16, from source: String? = nil, receiveBufferBytes: Int32? = nil
  ) throws { throw Failure(description: "a client over TLS has options") }

  init(_ port: UInt16, _ options: Options = Options()) throws {
    context = try #require(SSL_CTX_new(TLS_client_method()))
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(options.versions.lowerBound), nil)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(options.versions.upperBound), nil)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_CLIENT), nil)
    let names = options.protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
    if !names.isEmpty { SSL_CTX_set_alpn_protos(context, names, UInt32(names.count)) }
    if let (file, key) = options.certificate {
      expect(SSL_CTX_use_certificate_file(context, file, SSL_FILETYPE_PEM), equals: 1)
      expect(SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM), equals: 1)
    }
    session = SSL_new(context)
    if let old = options.session { SSL_set_session(session, old) }
    SSL_set_bio(session, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()))
    SSL_set_connect_state(session)
    bytesLeft = options.maximumBytes
    try super.init(port, receiveBufferBytes: options.receiveBufferBytes)
  }

  deinit {
    SSL_free(session)
    SSL_CTX_free(context)
  }

  /// What went wrong with the last call, as libssl says it.
  private var failure: Failure {
    defer { ERR_clear_error() }
    let number = ERR_peek_error()
    return Failure(description: ERR_reason_error_string(number).map { String(cString: $0) } ?? "the end came")
  }

  // MARK: Moving bytes

  /// Calls libssl until it has what it wants from the socket. Returns its result: below 1 at the end or at a failure.
  private func call(_ body: () -> Int32) -> Int32 {
    while true {
      ERR_clear_error()
      let result = body()
      guard flush() else { return -1 }
      if result > 0 { return result }
      guard SSL_get_error(session, result) == SSL_ERROR_WANT_READ else {
        // Otherwise something is wrong, which is an end as well.
        hasGoodbye = SSL_get_error(session, result) == SSL_ERROR_ZERO_RETURN
        return 0
      }
      var part = [UInt8](repeating: 0, count: 65_536)
      let count = part.withUnsafeMutableBytes { super.receive($0) }
      guard count > 0 else { return Int32(count) }
      BIO_write(SSL_get_rbio(session), part, Int32(count))
    }
  }

  /// Sends what libssl has written.
  private func flush() -> Bool {
    var part = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Int(BIO_read(SSL_get_wbio(session), &part, Int32(part.count)))
      guard count > 0 else { return true }
      let allowed = min(count, bytesLeft)
      var sent = 0
      while sent < allowed {
        let written = part.withUnsafeBytes {
          super.transmit(UnsafeRawBufferPointer(rebasing: $0[sent..<allowed]))
        }
        guard written > 0 else { return false }
        sent += written
      }
      bytesLeft -= allowed
      guard allowed == count else { return false }
    }
  }

  /// Shakes hands, which otherwise the first read or write does.
  func shakeHands() throws {
    if hasShakenHands { return }
    guard call({ SSL_do_handshake(session) }) == 1 else { throw failure }
    hasShakenHands = true
  }

  override func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard (try? shakeHands()) != nil else { return -1 }
    return Int(call { SSL_write(session, bytes.baseAddress, Int32(min(bytes.count, 1 << 20))) })
  }

  override func receive(_ target: UnsafeMutableRawBufferPointer) -> Int {
    guard (try? shakeHands()) != nil else { return 0 }
    return Int(call { SSL_read(session, target.baseAddress, Int32(clamping: target.count)) })
  }

  /// Says that nothing more is sent (close_notify).
  override func shutdownSending() {
    SSL_shutdown(session)
    _ = flush()
  }

  /// Sends bytes without TLS.
  func sendPlain(_ bytes: [UInt8]) { _ = bytes.withUnsafeBytes { super.transmit($0) } }

  /// Ends the sending side without saying so in TLS.
  func endSocket() { super.shutdownSending() }

  /// Ends the connection with a reset.
  func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
  }

  var version: String { SSL_get_version(session).map { String(cString: $0) } ?? "" }
  var isResumed: Bool { SSL_session_reused(session) == 1 }

  /// The protocol that ALPN has chosen.
  var chosenProtocol: String {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    SSL_get0_alpn_selected(session, &name, &count)
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
  }

  /// The SHA-256 of the server's certificate.
  var fingerprint: String {
    guard let certificate = SSL_get1_peer_certificate(session) else { return "" }
    defer { X509_free(certificate) }
    var digest = [UInt8](repeating: 0, count: 32)
    X509_digest(certificate, EVP_sha256(), &digest, nil)
    return digest.map { String(format: "%02x", $0) }.joined()
  }

  /// Asks for a new handshake, which only TLS 1.2 has.
  func renegotiate() -> Bool {
    SSL_renegotiate(session) == 1 && call { SSL_do_handshake(session) } == 1
  }
}
