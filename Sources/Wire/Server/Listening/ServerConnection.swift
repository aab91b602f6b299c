import CMicrohttpd
import Glibc
import Synchronization
import System

/// One connection: what it does, since when, and how to cut it off.
///
/// Without TLS the library serves the client's socket. With TLS, a `TLSConnection` owns that, and the library serves one
/// end of a pair. Then the connection has two parts that end one after the other.
final class ServerConnection: Sendable {
  /// What a connection does. It decides which time limit applies.
  enum Phase: UInt8, AtomicRepresentable {
    /// It waits for the headers of a request.
    case waiting
    /// The body of a request comes.
    case receiving
    /// The handler works.
    case working
    /// The answer goes out.
    case sending
    /// It speaks another protocol.
    case upgraded
    /// The library has closed it. With TLS, its last bytes are on their way.
    case closing
  }

  private struct State {
    /// Whether the library has `served`: from its notice of the start to that of the end.
    var isServed = false
    /// Whether a `TLSConnection` has the client's socket.
    var hasTLS: Bool
    var isCutOff = false
    var exchange: Exchange?
    var user: String?
    var shownCertificates: [[UInt8]] = []
    var certificate: ClientCertificate?
    var counts: (@Sendable () -> (bytesIn: UInt64, bytesOut: UInt64))?
    /// Whether the client may still send what nobody wants.
    var isLingering = false
    /// A copy of the client's socket for that, without TLS.
    var copy: Int32 = -1
  }

  /// What only the sweeper uses.
  struct Progress {
    var bytes: UInt64 = 0
    var since = 0.0
    var phase = Phase.waiting
    var slowSince: Double?
    var halfClosedSince: Double?
    /// Since when the connection waits for this side.
    var pausedSince: Double?
    var looksEnded = false
  }

  /// The client's socket.
  private let socket: Int32
  private let servedBits: Atomic<Int32>
  let peer: PeerAddress
  /// Whether there is TLS.
  let isSecure: Bool
  let since = MonotonicClock.now
  let phase = Atomic<Phase>(.waiting)
  /// When the phase began, as the bits of a double.
  private let phaseBits: Atomic<UInt64>
  let requests = Atomic<Int>(0)
  let bytesIn = Atomic<UInt64>(0)
  let bytesOut = Atomic<UInt64>(0)
  /// Bytes that were given to TLS, without its own.
  let encryptedBytes = Atomic<UInt64>(0)
  /// Whether the connection waits for this side.
  let isPaused = Atomic<Bool>(false)
  private let state: Lock<State>
  nonisolated(unsafe) var progress = Progress()
  /// Where the library serves it. Set once, before the library has it. Whoever resumes it in the library has to wake this loop.
  nonisolated(unsafe) var loop: DaemonLoop?

  init(socket: Int32, peer: PeerAddress, isSecure: Bool) {
    self.socket = socket
    self.peer = peer
    self.isSecure = isSecure
    servedBits = Atomic(isSecure ? -1 : socket)
    phaseBits = Atomic(since.bitPattern)
    state = Lock(State(hasTLS: isSecure))
  }

  deinit {
    let copy = state.withLock { $0.copy }
    if copy >= 0 { close(copy) }
  }

  var phaseSince: Double { Double(bitPattern: phaseBits.load(ordering: .relaxed)) }

  func enter(_ new: Phase) {
    phaseBits.store(MonotonicClock.now.bitPattern, ordering: .relaxed)
    phase.store(new, ordering: .relaxed)
  }

  // MARK: The two parts

  /// The descriptor that the library serves; -1 if it has none yet.
  var served: Int32 { servedBits.load(ordering: .relaxed) }

  /// The library is about to get this descriptor.
  func serve(_ descriptor: Int32) { servedBits.store(descriptor, ordering: .relaxed) }

  /// The library has begun.
  func opened() { state.withLock { $0.isServed = true } }

  /// The library is about to close its descriptor. Returns a socket that has to linger, or -1, and whether nothing is left
  /// of the connection.
  func closed() -> (lingering: Int32, isLast: Bool) {
    state.withLock { state in
      state.isServed = false
      state.exchange = nil
      state.counts = nil
      if state.hasTLS { enter(.closing) }
      defer { state.copy = -1 }
      return (state.copy, !state.hasTLS)
    }
  }

  /// TLS is about to close the client's socket. Returns whether that has to linger, and whether nothing is left of the
  /// connection.
  func closedTLS() -> (isLingering: Bool, isLast: Bool) {
    state.withLock { state in
      state.hasTLS = false
      return (state.isLingering, !state.isServed)
    }
  }

  /// Keeps the client's socket open, so that what the client still sends doesn't reset the connection before it has read
  /// its answer.
  func linger() {
    state.withLock { state in
      guard state.isServed, !state.isLingering else { return }
      state.isLingering = true
      if !isSecure { state.copy = fcntl(socket, F_DUPFD_CLOEXEC, 0) }
    }
  }

  // MARK: What is known of it

  var exchange: Exchange? { state.withLock { $0.exchange } }
  func set(_ exchange: Exchange?) { state.withLock { $0.exchange = exchange } }
  var user: String? { state.withLock { $0.user } }
  func set(user: String?) { state.withLock { $0.user = user } }
  /// What the client has shown, its own certificate first, as DER. Nothing is checked yet.
  var shownCertificates: [[UInt8]] { state.withLock { $0.shownCertificates } }
  func set(shownCertificates: [[UInt8]]) { state.withLock { $0.shownCertificates = shownCertificates } }
  var certificate: ClientCertificate? { state.withLock { $0.certificate } }
  func set(_ certificate: ClientCertificate?) { state.withLock { $0.certificate = certificate } }
  func set(counts: @escaping @Sendable () -> (bytesIn: UInt64, bytesOut: UInt64)) {
    state.withLock { $0.counts = counts }
  }
  /// Bytes of bodies, or of what it was upgraded to.
  var counts: (bytesIn: UInt64, bytesOut: UInt64) {
    let (bytesIn, bytesOut) = (bytesIn.load(ordering: .relaxed), bytesOut.load(ordering: .relaxed))
    guard let upgraded = state.withLock({ $0.counts })?() else { return (bytesIn, bytesOut) }
    return (bytesIn + upgraded.bytesIn, bytesOut + upgraded.bytesOut)
  }
  var isCutOff: Bool { state.withLock { $0.isCutOff } }

  // MARK: Its end

  /// Cuts the connection off. The library sees its end, and what works on its request is told. With `keepingSent`, what
  /// was sent still goes to the client.
  func cutOff(keepingSent: Bool = false) {
    let exchange = state.withLock { state in
      state.isCutOff = true
      if state.isServed { shutdown(served, Int32(SHUT_RDWR)) }
      if state.hasTLS, !(keepingSent && state.isServed) { shutdown(socket, Int32(SHUT_RDWR)) }
      return state.exchange
    }
    exchange?.abort()
  }

  /// What the system knows of the client: whether it is gone, or has closed its sending side.
  func peerState() -> (isGone: Bool, isHalfClosed: Bool) {
    state.withLock { state in
      guard state.isServed else { return (false, false) }
      var events = Self.events(of: served)
      // TLS hands an end on when all before it has been read.
      if state.hasTLS { events |= Self.events(of: socket) }
      return (events & (POLLERR | POLLHUP) != 0, events & Int32(cmicrohttpd_half_closed) != 0)
    }
  }

  private static func events(of descriptor: Int32) -> Int32 {
    var entry = pollfd(fd: descriptor, events: cmicrohttpd_half_closed, revents: 0)
    return poll(&entry, 1, 0) > 0 ? Int32(entry.revents) : 0
  }

  /// Whether the client sends nothing more, and all that it has sent was read.
  var isAtEnd: Bool {
    state.withLock { state in
      state.isServed && Self.events(of: served) & Int32(cmicrohttpd_half_closed) != 0
        && cmicrohttpd_unread(served) == 0
    }
  }

  /// Bytes that went to the client and were confirmed by it, about.
  var confirmedBytes: UInt64 {
    let written = isSecure ? encryptedBytes.load(ordering: .relaxed) : bytesOut.load(ordering: .relaxed)
    let waiting = state.withLock { state in
      (isSecure ? state.hasTLS : state.isServed) ? max(0, cmicrohttpd_unconfirmed(socket)) : 0
    }
    return written > UInt64(waiting) ? written - UInt64(waiting) : 0
  }
}

/// What a connection does now, for status pages.
package struct HTTPConnectionStatus: Sendable, Hashable {
  /// What a connection does.
  package enum Kind: String, Sendable {
    /// It waits for a request.
    case idle
    /// A request comes, is worked on, or is answered.
    case http
    /// It is a WebSocket.
    case webSocket
  }

  /// The client's address.
  package let peer: PeerAddress
  /// Who asked last; nil if nobody had to say so.
  package let user: String?
  /// How long it has been open.
  package let seconds: Double
  /// Bytes of bodies or of a WebSocket that came.
  package let bytesIn: UInt64
  /// Bytes of bodies or of a WebSocket that went.
  package let bytesOut: UInt64
  /// The number of requests so far.
  package let requests: Int
  /// What it does.
  package let kind: Kind

  init(_ connection: ServerConnection) {
    peer = connection.peer
    user = connection.user
    seconds = MonotonicClock.now - connection.since
    (bytesIn, bytesOut) = connection.counts
    requests = connection.requests.load(ordering: .relaxed)
    kind =
      switch connection.phase.load(ordering: .relaxed) {
      case .waiting: .idle
      case .receiving, .working, .sending, .closing: .http
      case .upgraded: .webSocket
      }
  }
}
