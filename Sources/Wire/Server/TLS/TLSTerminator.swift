import Glibc
import Logs
import Synchronization
import System
import Transport
import WebSocket

/// Ends TLS between the thread that accepts connections and the daemon, which sees none of it.
///
/// Each connection belongs to one of a few lanes: a loop that all sockets share, and what may be used on its thread.
final class TLSTerminator: Sendable {
  /// A loop with a buffer for those whose turn it is.
  final class Lane: @unchecked Sendable {
    let loop: SocketLoop
    /// Only for the loop's thread, and only within one call.
    let buffer: UnsafeMutableRawBufferPointer

    init(_ loop: SocketLoop) {
      self.loop = loop
      buffer = .allocate(byteCount: TLSTerminator.pieceBytes, alignment: 16)
    }

    deinit { buffer.deallocate() }
  }

  /// The most that is moved at once, and the most that waits in memory for a slow side, in each direction.
  static let pieceBytes = 65_536

  let core: ServerCore
  private let daemon: Daemon
  private let lanes: [Lane]
  private let next = Atomic<Int>(0)
  private let context: Lock<TLSContext>

  init(_ core: ServerCore, _ daemon: Daemon, _ identity: TLSIdentity) throws {
    self.core = core
    self.daemon = daemon
    context = Lock(try TLSContext(identity, core.configuration.clientCertificates))
    do throws(TransportClose) {
      var lanes: [Lane] = []
      for _ in 0..<min(max(1, core.configuration.threads), 64) { lanes.append(Lane(try .shared())) }
      self.lanes = lanes
    } catch { throw HTTPServerError(.systemFailure, "can't start the HTTP server: \(error)") }
  }

  /// Whose certificate new connections get.
  var identity: TLSIdentity { context.withLock { $0.identity } }

  /// New connections get another certificate. Throws an `HTTPServerError`, and changes nothing then.
  func use(_ identity: TLSIdentity) throws {
    let new = try TLSContext(identity, core.configuration.clientCertificates)
    context.withLock { $0 = new }
  }

  /// Takes over a client's socket.
  func begin(_ connection: ServerConnection, _ socket: Int32, _ address: SocketAddress) {
    let lane = lanes[
      Int(UInt(bitPattern: next.wrappingAdd(1, ordering: .relaxed).oldValue) % UInt(lanes.count))]
    let context = context.withLock { $0 }
    guard let secured = TLSConnection(self, lane, context, connection, socket, address) else {
      Log.write(
        .error, .network, nil, "listener: no memory for TLS; closed a connection from \(connection.peer)")
      _ = connection.closedTLS()
      close(socket)
      return core.table.remove(connection)
    }
    secured.begin()
  }

  /// Lets the daemon serve one end of a pair. It closes the descriptor; if it can't serve, the other end hears of that.
  func serve(_ connection: ServerConnection, _ descriptor: Int32, _ address: SocketAddress) {
    connection.serve(descriptor)
    daemon.add(connection, address)
  }

  /// A connection has ended; the socket is closed here.
  func ended(_ connection: ServerConnection, _ socket: Int32, isLingering: Bool) {
    let (wantsToLinger, isLast) = connection.closedTLS()
    if wantsToLinger || isLingering { core.lingering.add(socket) } else { close(socket) }
    if isLast { core.table.remove(connection) }
  }
}
