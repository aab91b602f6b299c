import CMicrohttpd
import Glibc
import Logs
import Synchronization

/// What serves connections: as many daemons of libmicrohttpd as there are threads to serve with. They have no listening socket and no
/// TLS; connections are given to them.
///
/// What the library calls back finds its objects through three pointers:
///  - the daemons', to the `ServerCore`: retained in `init`, released in `stop`;
///  - a connection's, to the `ServerConnection`: retained when it starts, released when it ends;
///  - a request's, to the `Exchange`: retained when its line has come, released when it ends.
final class Daemon: @unchecked Sendable {
  private let setup: UnsafeMutablePointer<cmicrohttpd_setup>
  private let context: Unmanaged<ServerCore>
  private let loops: [DaemonLoop]
  private let next = Atomic<Int>(0)

  init(_ core: ServerCore) throws {
    setup = .allocate(capacity: 1)
    setup.initialize(to: cmicrohttpd_setup())
    context = Unmanaged.passRetained(core)
    setup.pointee.flags =
      MHD_USE_EPOLL.rawValue | MHD_USE_NO_LISTEN_SOCKET.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue
      | MHD_ALLOW_UPGRADE.rawValue | MHD_USE_ERROR_LOG.rawValue
    // Connections are counted before they come here.
    setup.pointee.connections = UInt32(clamping: max(1, core.limits.connections) + 1)
    // Room for the headers, what is noted of each, and the header of the answer. The library wipes it for each request.
    setup.pointee.connection_memory = max(16_384, core.limits.headerBytes) * 2
    setup.pointee.context = context.toOpaque()
    setup.pointee.on_target = Self.onTarget
    setup.pointee.on_request = Self.onRequest
    setup.pointee.on_completed = Self.onCompleted
    setup.pointee.on_connection = Self.onConnection
    setup.pointee.on_log = { _, line in
      guard let line else { return }
      Log.write(.verbose, .network, nil, "listener: libmicrohttpd: \(String(cString: line))")
    }
    var loops: [DaemonLoop] = []
    do {
      for _ in 0..<min(max(1, core.configuration.threads), 64) { loops.append(try DaemonLoop(core, setup)) }
    } catch {
      for loop in loops { loop.stop() }
      context.release()
      setup.deallocate()
      throw error
    }
    self.loops = loops
  }

  /// Serves a connection, on one of the threads in their turn. Its descriptor is closed when it ends, and also if it can't be served.
  func add(_ connection: ServerConnection, _ address: SocketAddress) {
    let turn = UInt(bitPattern: next.wrappingAdd(1, ordering: .relaxed).oldValue)
    loops[Int(turn % UInt(loops.count))].add(connection, address)
  }

  /// Ends the threads. All requests have been aborted and all upgraded connections ended.
  func stop() {
    for loop in loops { loop.stop() }
    context.release()
    setup.deallocate()
  }

  // MARK: What the library calls

  private static func core(_ context: UnsafeMutableRawPointer?) -> ServerCore? {
    context.map { Unmanaged<ServerCore>.fromOpaque($0).takeUnretainedValue() }
  }

  private static let onConnection: MHD_NotifyConnectionCallback = { context, mhd, slot, code in
    guard let core = Daemon.core(context), let mhd, let slot else { return }
    if code == .CONNECTION_NOTIFY_STARTED {
      let descriptor = cmicrohttpd_descriptor(mhd)
      guard let connection = core.table.connection(descriptor) else { return }
      connection.opened()
      slot.pointee = Unmanaged.passRetained(connection).toOpaque()
    } else if let pointer = slot.pointee {
      slot.pointee = nil
      // The only place where a connection lets go.
      let connection = Unmanaged<ServerConnection>.fromOpaque(pointer).takeRetainedValue()
      core.table.stopServing(connection)
      let (copy, isLast) = connection.closed()
      if copy >= 0 { core.lingering.add(copy) }
      if isLast { core.table.remove(connection) }
    }
  }

  private static let onTarget:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, OpaquePointer?) ->
      UnsafeMutableRawPointer? = {
        context, target, mhd in
        guard let core = Daemon.core(context), let mhd, let pointer = cmicrohttpd_context(mhd) else {
          return nil
        }
        let connection = Unmanaged<ServerConnection>.fromOpaque(pointer).takeUnretainedValue()
        let exchange = Exchange(core, connection, mhd: mhd, target: target)
        connection.set(exchange)
        return Unmanaged.passRetained(exchange).toOpaque()
      }

  private static let onRequest: MHD_AccessHandlerCallback = {
    _, mhd, _, method, version, upload, size, slot in
    guard let mhd, let method, let version, let size, let pointer = slot?.pointee else { return .NO }
    return Unmanaged<Exchange>.fromOpaque(pointer).takeUnretainedValue()
      .handle(mhd, method, version, UnsafeRawPointer(upload), size)
  }

  private static let onCompleted: MHD_RequestCompletedCallback = { _, _, slot, _ in
    guard let slot, let pointer = slot.pointee else { return }
    slot.pointee = nil
    // The only place where a request lets go.
    Unmanaged<Exchange>.fromOpaque(pointer).takeRetainedValue().ended()
  }
}
