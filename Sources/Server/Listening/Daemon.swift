import CMicrohttpd
import Glibc
import Logs

/// A daemon of libmicrohttpd: threads that serve connections. It has no listening socket; connections are given to it.
///
/// What the library calls back finds its objects through three pointers:
///  - the daemon's, to the `ServerCore`: retained in `init`, released in `stop`;
///  - a connection's, to the `ServerConnection`: retained when it starts, released when it ends;
///  - a request's, to the `Exchange`: retained when its line has come, released when it ends.
final class Daemon: @unchecked Sendable {
  private let setup: UnsafeMutablePointer<cmicrohttpd_setup>
  private let context: Unmanaged<ServerCore>
  private let daemon: OpaquePointer
  private let pem: [UnsafeMutablePointer<CChar>]

  init(_ core: ServerCore, tls: TLSIdentity?) throws {
    let configuration = core.configuration
    setup = .allocate(capacity: 1)
    setup.initialize(to: cmicrohttpd_setup())
    context = Unmanaged.passRetained(core)
    let threads = min(max(1, configuration.threads), 64)
    var flags =
      MHD_USE_EPOLL.rawValue | MHD_USE_INTERNAL_POLLING_THREAD.rawValue | MHD_USE_NO_LISTEN_SOCKET.rawValue
      | MHD_ALLOW_SUSPEND_RESUME.rawValue | MHD_ALLOW_UPGRADE.rawValue | MHD_USE_ERROR_LOG.rawValue
    var pem: [UnsafeMutablePointer<CChar>] = []
    if let tls {
      flags |= MHD_USE_TLS.rawValue
      pem = [tls.certificatePEM, tls.keyPEM].compactMap { (text: String) in strdup(text) }
      if pem.count == 2 {
        setup.pointee.certificate = UnsafePointer(pem[0])
        setup.pointee.key = UnsafePointer(pem[1])
      }
    }
    self.pem = pem
    setup.pointee.flags = flags
    setup.pointee.threads = UInt32(threads)
    // Connections are counted before they come here. The library divides its limit among its threads.
    setup.pointee.connections = UInt32(clamping: max(1, core.limits.connections) * threads + threads)
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
    guard pem.count == (tls == nil ? 0 : 2), let daemon = cmicrohttpd_start(setup) else {
      context.release()
      for text in pem { free(text) }
      setup.deallocate()
      throw HTTPServerError(
        tls == nil ? .systemFailure : .fileInvalid,
        "can't start the HTTP server: libmicrohttpd refused"
          + (tls.map { "; does the key of \($0.source) fit its certificate?" }
            ?? ": \(ListeningSocket.text(errno))"))
    }
    self.daemon = daemon
  }

  /// Serves a connection. The library closes the descriptor, also when this returns false.
  func add(_ connection: ServerConnection, _ address: inout sockaddr_storage, _ size: socklen_t) -> Bool {
    withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        MHD_add_connection(daemon, connection.descriptor, $0, size) == .YES
      }
    }
  }

  /// Ends the threads. All requests have been aborted and all upgraded connections ended.
  func stop() {
    MHD_stop_daemon(daemon)
    context.release()
    // What the library was given may be the key.
    for text in pem {
      explicit_bzero(text, strlen(text))
      free(text)
    }
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
      switch core.configuration.clientCertificates {
      case .none: break
      case .requested: cmicrohttpd_request_certificate(mhd, 0)
      case .required: cmicrohttpd_request_certificate(mhd, 1)
      }
      slot.pointee = Unmanaged.passRetained(connection).toOpaque()
    } else if let pointer = slot.pointee {
      slot.pointee = nil
      // The only place where a connection lets go.
      let connection = Unmanaged<ServerConnection>.fromOpaque(pointer).takeRetainedValue()
      let copy = connection.closed()
      if copy >= 0 { core.lingering.add(copy) }
      core.table.remove(connection)
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
