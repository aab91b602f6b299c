import CMicrohttpd
import Glibc
import HTTP
import System

/// A connection that speaks another protocol than HTTP from now on.
///
/// Whoever takes it over owns `descriptor`, closes it, and then calls `ended`. The descriptor is nonblocking. With TLS, it
/// is one end of a pair whose other end a `TLSConnection` serves.
package final class UpgradedConnection: Sendable {
  private struct State {
    /// The library's handle, until `ended`.
    var handle: OpaquePointer?
    var whenStopping: (@Sendable () -> Void)?
    var isStopping = false
  }

  /// The client's address.
  package let peer: PeerAddress
  /// The socket. The receiver owns it.
  package let descriptor: Int32
  /// What the client had sent behind its request.
  package let extra: [UInt8]
  private let connection: ServerConnection
  private let core: ServerCore
  private let state: Lock<State>

  init?(_ exchange: Exchange, socket: Int32, extra: [UInt8], handle: OpaquePointer) {
    let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { return nil }
    _ = fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) | O_NONBLOCK)
    // The library has switched it off for the upgrade; small messages mustn't wait.
    var yes: Int32 = 1
    setsockopt(copy, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, 4)
    descriptor = copy
    peer = exchange.connection.peer
    self.extra = extra
    connection = exchange.connection
    core = exchange.core
    state = Lock(State(handle: handle))
  }

  deinit { ended() }

  /// Calls `body` when the server stops, which is the time to say goodbye. At once if it stops already.
  package func onStop(_ body: @escaping @Sendable () -> Void) {
    let isStopping = state.withLock { state in
      state.whenStopping = body
      return state.isStopping
    }
    if isStopping { body() }
  }

  /// Tells how many bytes have come and gone, for status pages.
  package func onCount(_ body: @escaping @Sendable () -> (bytesIn: UInt64, bytesOut: UInt64)) {
    connection.set(counts: body)
  }

  /// The connection isn't used any more. The receiver has closed `descriptor`. May be called more than once.
  package func ended() {
    let handle = state.withLock { $0.handle.take() }
    guard let handle else { return }
    core.upgraded.remove(self)
    // Not under a lock: the library takes its own.
    _ = cmicrohttpd_close_upgraded(handle)
    connection.loop?.wake()
  }

  func stop() {
    let body = state.withLock { state in
      state.isStopping = true
      return state.whenStopping
    }
    body?()
  }

  /// Cuts the connection off. The receiver sees its end.
  func cutOff() { connection.cutOff() }
}

/// The connection speaks another protocol from this answer on.
struct UpgradeBody: HTTPOtherBody {
  /// Called on a handler's thread.
  let takeOver: @Sendable (UpgradedConnection) -> Void
}

/// The upgraded connections of a server.
final class UpgradedConnections: Sendable {
  private struct Weak {
    weak var connection: UpgradedConnection?
  }
  private let state = Lock<[ObjectIdentifier: Weak]>([:])

  func add(_ connection: UpgradedConnection) {
    state.withLock { $0[ObjectIdentifier(connection)] = Weak(connection: connection) }
  }

  func remove(_ connection: UpgradedConnection) {
    state.withLock { $0[ObjectIdentifier(connection)] = nil }
  }

  var all: [UpgradedConnection] { state.withLock { $0.values.compactMap(\.connection) } }
}

extension Exchange {
  /// The upgrade that a handler has answered with.
  func queueUpgrade(
    _ answer: HTTPAnswer, _ upgrade: UpgradeBody, _ mhd: OpaquePointer
  ) -> MHD_Result {
    takeOver = upgrade.takeOver
    state.withLock { $0.output.isDone = true }
    // The library has no way to let go of this pointer, and may never call. The request holds the exchange until it ends,
    // and the call comes before.
    let response = MHD_create_response_for_upgrade(
      { context, _, _, extra, count, socket, handle in
        guard let context, let handle else { return }
        Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue().upgraded(
          socket: socket, extra: [UInt8](UnsafeRawBufferPointer(start: extra, count: count)), handle: handle)
      }, Unmanaged.passUnretained(self).toOpaque())
    guard let response else { return .NO }
    defer { MHD_destroy_response(response) }
    add(answer.headers, to: response)
    return MHD_queue_response(mhd, 101, response)
  }

  private func upgraded(socket: Int32, extra: [UInt8], handle: OpaquePointer) {
    connection.enter(.upgraded)
    let takeOver = self.takeOver.take()
    guard let takeOver, let upgraded = UpgradedConnection(self, socket: socket, extra: extra, handle: handle)
    else {
      _ = cmicrohttpd_close_upgraded(handle)
      connection.loop?.wake()
      return
    }
    core.upgraded.add(upgraded)
    if core.isStopping { upgraded.stop() }
    core.threads[.reading].enqueue { takeOver(upgraded) }
  }
}
