import BLIP
import Bytes
import HTTP
import HTTPAPI
import Replication
import ReplicationBLIP
import Server
import Storage
import Touchstone
import Transport
import Views
import WebSocket

/// Answers the requests of replicators: `GET /NAME/_blipsync` becomes a WebSocket.
final class SyncHandler: HTTPHandler {
  private let catalog: any DatabaseCatalog
  private let options: PassiveResponder.Options
  /// Connections take turns on these threads: frames on some, databases and files on the others.
  private let workers = Workers(maximum: 4)
  private let pool = Workers(maximum: 32)
  private let memory: BLIPMemory
  /// Whether users log in. Documents of `_replicator` have passwords of others then.
  private let hasLogins: Bool
  /// Ends WebSockets of who may not read any more.
  private let rights: StandingRights
  /// The header of an answer to who has to log in.
  private let challenge: HTTPHeader?

  init(
    _ configuration: SyncListenerConfiguration, _ catalog: any DatabaseCatalog, _ rights: StandingRights,
    challenge: HTTPHeader? = nil
  ) {
    self.catalog = catalog
    self.rights = rights
    self.challenge = challenge
    var options = PassiveResponder.Options()
    options.acceptsRevisions = !configuration.isReadOnly
    options.refusesConflicts = configuration.refusesConflicts
    options.filters = configuration.filters
    self.options = options
    if case .none = configuration.authenticator { hasLogins = false } else { hasLogins = true }
    memory = BLIPMemory(bytes: configuration.maximumReplicationMemory)
  }

  /// Whether a request is that of a replicator over BLIP.
  static func isReplication(_ request: HTTPRequest) -> Bool {
    guard let segments = request.target.segments, segments.last == lastSegment else { return false }
    return segments.drop { $0 == ByteString("") }.count == 2
  }

  private static let lastSegment = ByteString("_blipsync")

  func handle(_ request: HTTPRequest, _ responder: HTTPResponder) { responder.answer(answer(request)) }

  private func answer(_ request: HTTPRequest) -> HTTPAnswer {
    guard let segments = request.target.segments else {
      return HTTPAnswer(status: 400, text: "the path isn't percent-encoded properly\n")
    }
    // A client that puts a path behind a URL with a slash at its end asks for `//NAME/_blipsync`.
    let path = segments.drop { $0 == ByteString("") }
    guard path.count == 2, path.last == Self.lastSegment, let name = path.first else {
      return HTTPAnswer(status: 404, text: "there is no such database here\n")
    }
    let database: Database
    do {
      guard let found = try self.database(name.string, for: request.context) else {
        return HTTPAnswer(status: 404, text: "there is no such database here\n")
      }
      database = found
    } catch {
      var headers: [HTTPHeader] = []
      if error.status == 401, let challenge,
        let told = HTTPHeader.loginChallenge(challenge, for: request.headers)
      {
        headers.append(told)
      }
      return HTTPAnswer(
        status: error.status, headers: headers, body: .bytes(Array("\(error.reason)\n".utf8)))
    }
    guard request.isWebSocketUpgrade else {
      return HTTPAnswer(
        status: 426, headers: [.init("Upgrade", "websocket"), .init("Connection", "Upgrade")],
        body: .bytes(Array("databases are replicated over a WebSocket\n".utf8)))
    }
    guard let version = ReplicationProtocol.choose(from: request.webSocketProtocols) else {
      return HTTPAnswer(
        status: 400,
        text: "the client offers no protocol of \(ReplicationProtocol.offered.joined(separator: ", "))\n")
    }
    let peer = request.peer.map { "\($0)" } ?? "a client"
    var options = options
    options.checks =
      ReplicationValidation(database, name: name.string, user: request.context, rights).check
    let user = request.context
    return .webSocket(request, subprotocol: version) { [options, workers, pool, memory, rights] transport in
      let connection = BLIPConnection(transport, name: peer, workers: workers, memory: memory)
      let responder = BLIPResponder(connection, database, options, on: pool)
      responder.start()
      let grant = rights.grant(user, .member, database) { [weak responder] error in
        // A policy that is violated: clients don't try again.
        responder?.close(.webSocket(1008, error.reason))
      }
      if let grant { connection.onClose { _ in rights.end(grant) } }
    }
  }

  /// The database of a name, if the user may replicate with it; nil if there is none. Throws the error of who may not. Of the databases of
  /// the server only `_replicator` is replicated, and only where everybody is an administrator.
  private func database(_ name: String, for user: UserContext) throws(CouchDBError) -> Database? {
    let isShown = !DatabaseService.isSystemName(name) || !hasLogins && name != UserDocument.database
    do {
      guard isShown, let database = try? catalog.database(name) else {
        // Who hasn't logged in doesn't get to know which databases there are.
        if user.isAnonymous { try Authorization.check(.member, of: user, .standard) }
        return nil
      }
      try Authorization.check(.member, of: user, database.security())
      return database
    } catch let error as CouchDBError {
      throw error
    } catch { throw CouchDBError(500, "internal_server_error", "the database can't be read") }
  }
}
