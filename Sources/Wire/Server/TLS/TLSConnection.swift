import CCrypto
import CMicrohttpd
import CSSL
import Glibc
import Logs
import Transport
import WebSocket

/// One connection with TLS. It moves bytes between the client's socket and a pair of sockets whose other end the library
/// serves, or what took it over after an upgrade.
///
///     client ── socket ── TLS ── pair ── libmicrohttpd
///
/// All happens on the thread of a loop, in `proceed`, which does what can be done until both sides block. In each
/// direction, one piece at most waits here for a slow side, and nothing more is read meanwhile. An end is handed on when all
/// before it has been: the client's with SHUT_WR on the pair, the library's with TLS's close_notify.
final class TLSConnection: @unchecked Sendable {
  enum Phase {
    /// Nothing has come yet.
    case new
    case handshake
    case open
    case ended
  }

  /// Pieces that one connection moves before the loop's others have their turn.
  private static let piecesInTurn = 4

  let terminator: TLSTerminator
  let lane: TLSTerminator.Lane
  let connection: ServerConnection
  private let address: SocketAddress
  let socket: TLSSocket
  let session: OpaquePointer
  /// This end of the pair; -1 before the handshake has ended.
  var pair: Int32 = -1
  private var socketRegistration: SocketLoop.Registration?
  private var pairRegistration: SocketLoop.Registration?
  var phase = Phase.new
  private var isPosted = false

  // From the client to the library.
  var mayRead = true
  var mayFill = true
  var received = WaitingBytes()
  /// Whether the client has ended its side, and whether the library was told.
  var (clientHasEnded, hasHandedOnEnd) = (false, false)

  // From the library to the client.
  var mayDrain = true
  var mayWrite = true
  var sent = WaitingBytes()
  /// Whether all has to be read up to the end.
  var libraryIsEnding = false
  /// Whether the library has ended its side, and whether the client was told.
  var (libraryHasEnded, hasSaidGoodbye) = (false, false)
  /// Whether the library doesn't take anything any more.
  var libraryHasClosed = false

  init?(
    _ terminator: TLSTerminator, _ lane: TLSTerminator.Lane, _ context: TLSContext,
    _ connection: ServerConnection,
    _ descriptor: Int32, _ address: SocketAddress
  ) {
    ERR_clear_error()
    guard let session = context.makeSession() else { return nil }
    self.terminator = terminator
    self.lane = lane
    self.connection = connection
    self.address = address
    self.session = session
    socket = TLSSocket(descriptor)
    guard socket.attach(to: session) else { return nil }
    SSL_set_accept_state(session)
  }

  deinit { SSL_free(session) }

  /// Registers with the loop, whose thread has it from now on.
  func begin() {
    lane.loop.post { [self] in
      do throws(TransportClose) {
        socketRegistration = try lane.loop.add(socket.descriptor) { [self] in socketHas($0) }
      } catch { end("\(error)") }
    }
  }

  // MARK: Events

  private func socketHas(_ events: SocketEvents) {
    // The client has reset the connection; nothing reaches it any more.
    if events.contains(.failed) { return end() }
    if events.contains(.ended) { socket.isEnding = true }
    socket.isReadBlocked = false
    socket.isWriteBlocked = false
    mayRead = true
    mayWrite = true
    proceed()
  }

  private func pairHas(_ events: SocketEvents) {
    if events.contains(.hungUp) { libraryHasClosed = true }
    if !events.isDisjoint(with: [.ended, .hungUp, .failed]) { libraryIsEnding = true }
    mayDrain = true
    mayFill = true
    proceed()
  }

  /// Goes on after the loop's others had their turn.
  private func post() {
    if isPosted { return }
    isPosted = true
    lane.loop.post { [self] in
      isPosted = false
      proceed()
    }
  }

  private func proceed() {
    lane.loop.assertCurrent()
    if phase == .new { lookAtFirstByte() }
    if phase == .handshake { shakeHands() }
    guard phase == .open else { return }
    for _ in 0..<Self.piecesInTurn {
      let hasReceived = receive()
      let hasSent = send()
      guard phase == .open else { return }
      if hasSaidGoodbye, libraryHasClosed || hasHandedOnEnd { return end() }
      if !hasReceived, !hasSent { return }
    }
    post()
  }

  // MARK: The beginning

  /// HTTP without TLS gets an answer that says so.
  private func lookAtFirstByte() {
    var byte: UInt8 = 0
    let count = recv(socket.descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
    if count < 0, errno == EAGAIN || errno == EINTR { return }
    guard count > 0 else { return end("it closed") }
    // A record of a handshake begins with 22, a method with a letter.
    guard (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) else { return phase = .handshake }
    let bytes = terminator.core.errorAnswer(400, "this port speaks TLS: its URL begins with https or wss")
      .whole(reason: "Bad Request")
    Glibc.send(socket.descriptor, bytes, bytes.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
    end("it spoke HTTP without TLS", isLingering: true)
  }

  private func shakeHands() {
    ERR_clear_error()
    let result = SSL_do_handshake(session)
    if result == 1 { return open() }
    switch SSL_get_error(session, result) {
    case SSL_ERROR_WANT_READ:
      if !socket.isReadBlocked { post() }
    case SSL_ERROR_WANT_WRITE:
      if !socket.isWriteBlocked { post() }
    case SSL_ERROR_SSL: end(OpenSSLError.take(), isLingering: true)
    default: end("the connection broke")
    }
  }

  /// The handshake has ended; now the library serves the connection.
  private func open() {
    connection.set(shownCertificates: shownCertificates)
    var ends: [Int32] = [-1, -1]
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
      let reason = ListeningSocket.text(errno)
      Log.write(.warning, .network, nil, "listener: can't serve a connection with TLS: \(reason)")
      return end()
    }
    pair = ends[0]
    phase = .open
    do throws(TransportClose) {
      pairRegistration = try lane.loop.add(pair) { [self] in pairHas($0) }
    } catch {
      close(ends[1])
      return end("\(error)")
    }
    terminator.serve(connection, ends[1], address)
  }

  /// The client's certificates, its own first, as DER.
  private var shownCertificates: [[UInt8]] {
    guard let own = SSL_get1_peer_certificate(session) else { return [] }
    var chain = [Certificate(own).der]
    let others = SSL_get_peer_cert_chain(session)
    for index in 0..<min(15, max(0, OPENSSL_sk_num(others))) {
      guard let other = OPENSSL_sk_value(others, index) else { continue }
      X509_up_ref(OpaquePointer(other))
      chain.append(Certificate(OpaquePointer(other)).der)
    }
    return chain
  }

  // MARK: The end

  /// Closes both sides at once.
  func end(_ reason: String? = nil, isLingering: Bool = false) {
    lane.loop.assertCurrent()
    guard phase != .ended else { return }
    phase = .ended
    if let reason {
      Log.write(.info, .network, nil, "listener: no TLS with \(connection.peer): \(reason)")
    }
    for registration in [socketRegistration, pairRegistration] {
      if let registration { lane.loop.remove(registration) }
    }
    if pair >= 0 { close(pair) }
    terminator.ended(connection, socket.descriptor, isLingering: isLingering)
  }
}

/// Bytes that wait for a slow side.
struct WaitingBytes {
  private var bytes: [UInt8] = []
  private var offset = 0

  var isEmpty: Bool { bytes.isEmpty }

  /// Keeps what is left of a piece.
  mutating func keep(_ rest: UnsafeRawBufferPointer) {
    precondition(isEmpty)
    bytes = [UInt8](rest)
  }

  /// Offers what is left to `body`, which takes some of it.
  mutating func offer(_ body: (UnsafeRawBufferPointer) -> Int) {
    offset += bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
    if offset == bytes.count { (bytes, offset) = ([], 0) }
  }
}
