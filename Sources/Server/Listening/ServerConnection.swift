import CMicrohttpd
import Glibc
import Storage
import Synchronization

/// One connection: what it does, since when, and how to cut it off.
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
  }

  private struct State {
    /// Whether the descriptor is this connection's: from the library's notice of its start to that of its end.
    var isOpen = false
    var isCutOff = false
    var exchange: Exchange?
    var user: String?
    var certificate: ClientCertificate?
    var counts: (@Sendable () -> (bytesIn: UInt64, bytesOut: UInt64))?
    /// A copy of the descriptor, of a connection whose client may still send what nobody wants.
    var lingering: Int32 = -1
  }

  /// What only the sweeper uses.
  struct Progress {
    var bytes: UInt64 = 0
    var since = 0.0
    var phase = Phase.waiting
    var slowSince: Double?
    var halfClosedSince: Double?
    var looksEnded = false
  }

  let descriptor: Int32
  let peer: PeerAddress
  let since = MonotonicClock.now
  let phase = Atomic<Phase>(.waiting)
  /// When the phase began, as the bits of a double.
  private let phaseBits: Atomic<UInt64>
  let requests = Atomic<Int>(0)
  let bytesIn = Atomic<UInt64>(0)
  let bytesOut = Atomic<UInt64>(0)
  /// Whether the connection waits for this side.
  let isPaused = Atomic<Bool>(false)
  private let state = Lock(State())
  nonisolated(unsafe) var progress = Progress()

  init(descriptor: Int32, peer: PeerAddress) {
    self.descriptor = descriptor
    self.peer = peer
    phaseBits = Atomic(since.bitPattern)
  }

  deinit {
    let copy = state.withLock { $0.lingering }
    if copy >= 0 { close(copy) }
  }

  var phaseSince: Double { Double(bitPattern: phaseBits.load(ordering: .relaxed)) }

  func enter(_ new: Phase) {
    phaseBits.store(MonotonicClock.now.bitPattern, ordering: .relaxed)
    phase.store(new, ordering: .relaxed)
  }

  func opened() { state.withLock { $0.isOpen = true } }

  /// The library is about to close the descriptor. Returns a copy of it that has to linger, or -1.
  func closed() -> Int32 {
    state.withLock { state in
      state.isOpen = false
      state.exchange = nil
      state.counts = nil
      defer { state.lingering = -1 }
      return state.lingering
    }
  }

  /// Keeps a copy of the descriptor open, so that what the client still sends doesn't reset the connection before it
  /// has read its answer.
  func linger() {
    state.withLock { state in
      guard state.isOpen, state.lingering < 0 else { return }
      state.lingering = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    }
  }

  var exchange: Exchange? { state.withLock { $0.exchange } }
  func set(_ exchange: Exchange?) { state.withLock { $0.exchange = exchange } }
  var user: String? { state.withLock { $0.user } }
  func set(user: String?) { state.withLock { $0.user = user } }
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

  /// Cuts the connection off. The library sees its end, and what works on its request is told.
  func cutOff() {
    let exchange = state.withLock { state in
      state.isCutOff = true
      if state.isOpen { shutdown(descriptor, Int32(SHUT_RDWR)) }
      return state.exchange
    }
    exchange?.abort()
  }

  /// What the system knows of the client: whether it is gone, or has closed its sending side.
  func peerState() -> (isGone: Bool, isHalfClosed: Bool) {
    state.withLock { state in
      guard state.isOpen else { return (false, false) }
      var entry = pollfd(fd: descriptor, events: cmicrohttpd_half_closed, revents: 0)
      guard poll(&entry, 1, 0) > 0 else { return (false, false) }
      let events = Int32(entry.revents)
      return (events & (POLLERR | POLLHUP) != 0, events & Int32(cmicrohttpd_half_closed) != 0)
    }
  }

  /// Whether the client sends nothing more, and all that it has sent was read.
  var isAtEnd: Bool {
    guard peerState().isHalfClosed else { return false }
    return state.withLock { $0.isOpen && cmicrohttpd_unread(descriptor) == 0 }
  }

  /// Bytes that went to the client and were confirmed by it, about.
  var confirmedBytes: UInt64 {
    let written = bytesOut.load(ordering: .relaxed)
    let waiting = state.withLock { $0.isOpen ? max(0, cmicrohttpd_unconfirmed(descriptor)) : 0 }
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
      case .receiving, .working, .sending: .http
      case .upgraded: .webSocket
      }
  }
}
