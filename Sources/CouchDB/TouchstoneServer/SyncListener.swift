import BLIP
import Bytes
import Discovery
import HTTPAPI
import Logs
import Replication
import ReplicationBLIP
import Server
import Storage
import Touchstone
import Transport
import WebSocket

/// Lets other devices replicate with databases, over WebSockets: those of this library, and Couchbase Lite 2 and 3. If the configuration
/// says so, clients of CouchDB are answered too.
///
/// ```swift
/// var configuration = SyncListenerConfiguration(databases: ["notes": notes])
/// configuration.port = 4984
/// let listener = SyncListener(configuration)
/// try listener.start()
/// print(listener.urls)                    // ["ws://127.0.0.1:4984/notes"]
/// ```
///
/// All calls may come from any thread. It stops when the last reference to it goes. Databases must stay open while it runs; one
/// that is closed loses its connections.
public final class SyncListener: Sendable {
  /// How it listens. A copy: later changes of the original have no effect.
  public let configuration: SyncListenerConfiguration
  /// What runs: the server, and what answers clients of CouchDB, if anything does.
  private struct Running {
    let server: HTTPServer
    let service: DatabaseService?
    let rights: StandingRights
    let announcement: ServiceAnnouncement?
  }
  private let running = Lock<Running?>(nil)

  /// Creates a listener that doesn't run yet.
  public init(_ configuration: SyncListenerConfiguration) { self.configuration = configuration }

  deinit { stop(graceSeconds: 0) }

  /// Begins to listen. Throws `SyncListenerError` that says what is wrong, where, and what to do. A listener that was stopped may be
  /// started again.
  public func start() throws {
    try running.withLock { running in
      guard running == nil else {
        throw SyncListenerError(.badRequest, "the listener runs already")
      }
      do {
        let catalog = configuration.catalog()
        let users = UsersDatabase(catalog, iterations: configuration.passwordIterations)
        let settings = try configuration.serverConfiguration(users)
        _ = try configuration.service(port: 1)
        let targets = try ListenerTargets(
          configuration.reachableHosts, publicURLs: configuration.publicURLs)
        let rights = StandingRights(users, lookup: SyncListenerConfiguration.lookup(settings.authenticator))
        let service = configuration.service(catalog, users, rights, settings, targets)
        let handler = ListenerHandler(
          sync: SyncHandler(
            configuration, catalog, rights,
            challenge: (settings.authenticator as? SessionAuthenticator)?.challenge),
          service: service,
          crossOrigin: configuration.crossOriginRules)
        let server = HTTPServer(settings, handler: handler)
        try server.start()
        targets.listen(at: server.urls)
        let announcement = try configuration.service(port: server.port ?? 0).map {
          try ServiceAnnouncement($0)
        }
        running = Running(server: server, service: service, rights: rights, announcement: announcement)
        service?.start()
      } catch let error as HTTPServerError { throw SyncListenerError(error) }
    }
  }

  /// Stops: refuses new connections, says goodbye to those that are open with WebSocket code 1001, and returns when they
  /// have ended, or have been cut off after `graceSeconds`. Don't call it on a thread that a callback of the
  /// configuration was called on.
  public func stop(graceSeconds: Double = 10) {
    guard let stopped = running.withLock({ $0.take() }) else { return }
    stopped.announcement?.cancel()
    stopped.rights.stop()
    stopped.service?.stopUpdates()
    // Whoever waits for a replication gets an answer.
    stopped.service?.stopReplications(seconds: graceSeconds)
    stopped.server.stop(graceSeconds: graceSeconds)
  }

  private var server: HTTPServer? { running.withLock { $0?.server } }

  /// The port that it listens on; nil if it doesn't run.
  public var port: Int? { server?.port.map(Int.init) }

  /// The URL of the listener, without a database: `ws://127.0.0.1:4984/`; nil if it doesn't run.
  public var url: String? { server?.urls.first.map { "ws\($0.dropFirst(4))/" } }

  /// The URL for clients of CouchDB: `http://127.0.0.1:4984/`; nil if it doesn't run, or doesn't serve them.
  public var httpURL: String? {
    configuration.servesHTTP ? server?.urls.first.map { $0 + "/" } : nil
  }

  /// The URL of each database and address, in order of the names; none if it doesn't run.
  public var urls: [String] {
    let bases = server?.urls ?? []
    let names = (try? configuration.catalog().names()) ?? []
    return names.flatMap { name in
      bases.map { "ws\($0.dropFirst(4))/\(name.pathSegment)" }
    }
  }

  /// The name under which the listener is announced in the local network: that of the configuration, perhaps with a number. Nil if
  /// it isn't announced: not yet, or because Avahi's daemon isn't there.
  public var announcedName: String? { running.withLock { $0?.announcement?.announcedName } }

  /// The SHA-256 of the server's certificate as lower-case hexadecimal digits; nil without TLS or if it doesn't run. Show it
  /// to people who have to trust a certificate that the listener has made itself.
  public var certificateFingerprint: String? { server?.fingerprint }

  /// Reads the files of the certificate and its key again, for new connections; those that are open go on. If something is
  /// wrong with the files, the listener keeps what it has and writes a warning to the log, and this throws
  /// `SyncListenerError`, as it does without TLS or if the listener doesn't run.
  public func reloadCertificate() throws {
    guard let server else {
      throw SyncListenerError(.badRequest, "the listener doesn't run")
    }
    do { try server.reloadIdentity() } catch let error as HTTPServerError { throw SyncListenerError(error) }
  }

  /// The open connections.
  public var connections: [SyncListenerConnection] {
    (server?.connections ?? []).map { SyncListenerConnection($0) }
  }
}

/// An open connection of a listener.
public struct SyncListenerConnection: Sendable, Hashable {
  /// The address and port of the other side.
  public let peer: String
  /// Who the other side says to be; nil if nobody has to say that.
  public let user: String?
  /// How long it has been open, in seconds.
  public let seconds: Double
  /// The bytes that came.
  public let receivedBytes: UInt64
  /// The bytes that were sent.
  public let sentBytes: UInt64
  /// Whether it replicates. Otherwise it has only been opened.
  public let isReplicating: Bool

  init(_ status: HTTPConnectionStatus) {
    peer = "\(status.peer)"
    user = status.user
    seconds = status.seconds
    receivedBytes = status.bytesIn
    sentBytes = status.bytesOut
    isReplicating = status.kind == .webSocket
  }
}

/// Why a listener can't start.
public struct SyncListenerError: TouchstoneError {
  /// The kind of failure.
  public let kind: ErrorKind
  /// What was tried, where, what was found, and what to do.
  public let description: String
  /// Nil.
  public var subject: ErrorSubject? { nil }

  init(_ kind: ErrorKind, _ description: String) {
    self.kind = kind
    self.description = description
  }

  init(_ error: HTTPServerError) {
    kind =
      switch error.code {
      case .portInUse: .busy
      case .permissionDenied: .forbidden
      case .addressNotAvailable, .invalidAddress, .fileInvalid, .invalidConfiguration, .alreadyStarted:
        .badRequest
      case .fileUnreadable, .systemFailure: .ioError
      }
    description = error.message
  }
}
