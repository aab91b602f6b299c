import Bytes
import Discovery
import HTTP
import HTTPAPI
import Replication
import Server
import Touchstone
import WebSocket

/// Where a listener listens, what it serves, and whom it lets in.
public struct SyncListenerConfiguration: Sendable {
  /// The certificate of the listener.
  public enum TLS: Sendable, Hashable {
    /// PEM files of the certificate, with those that lead to its authority, and of its key without a passphrase.
    case files(certificate: String, key: String)
    /// A certificate that the listener makes itself and keeps in a directory, with its key. Clients pin it.
    case selfSigned(directory: String)
  }

  /// Whom the listener lets in. Who is let in administers the listener and may do everything, but for users of a database `_users`.
  public enum Authenticator: Sendable {
    /// Everybody.
    case none
    /// Who has a name and a password that the closure accepts. It is called on a background thread and may take its time. Right
    /// ones are remembered for a minute.
    case basic(@Sendable (_ name: String, _ password: String) -> Bool)
    /// Who is in a file of users with salted hashes (docs/server.md). If a folder is served, the users of its database `_users` are let in
    /// too, to what its databases allow them (docs/http-users.md).
    case userFile(String)
    /// Who shows a certificate that an authority of this PEM file has issued. Needs TLS.
    case certificates(authorities: String)
    /// Who shows a certificate, in DER, that the closure accepts. It is called on a thread that serves many connections, and
    /// mustn't wait. Needs TLS.
    case certificatesAccepted(@Sendable (_ der: [UInt8]) -> Bool)
  }

  /// Web pages of which origins may use the HTTP API, and read its answers.
  public enum CrossOrigin: Sendable, Hashable {
    /// None but those of the listener itself.
    case none
    /// Pages of these origins, such as `https://app.example`, which may log in.
    case origins([String])
    /// All pages, without the cookies and passwords that a browser has for the listener.
    case all
  }

  /// The servers that replications of the HTTP API may reach.
  public enum ReplicationHosts: Sendable, Hashable {
    /// None. Databases of the listener replicate with each other.
    case none
    /// Those with these names or addresses, each perhaps with a port: `couch.example`, `10.0.0.5:5984`, `[fd00::1]`. Proxies that a
    /// request names have to be among them.
    case hosts([String])
    /// All that this machine reaches.
    case all
  }

  /// Decides whether a client that has asked for the filter gets a revision. It is called on a background thread, not in a
  /// transaction, and may take its time. What it throws ends the connection with WebSocket code 1011.
  public typealias Filter = @Sendable (FilteredRevision, _ parameters: [String: String]) throws -> Bool

  /// The databases by the names under which they are reached. Clients can neither make nor delete one.
  public var databases: [String: Database]
  /// A folder whose databases are served in place of `databases`. They are opened when a client asks for one. It must not be closed
  /// while the listener runs.
  public var folder: DatabaseFolder?
  /// Whether clients of the HTTP API make and delete databases in `folder`. Default: no.
  public var letsClientsMakeDatabases = false
  /// Whether databases of `folder` that aren't encrypted are served too where its options have a key. Default: no. A plain database in the
  /// place of an encrypted one is then an error.
  public var servesPlainDatabases = false
  /// Whether clients of CouchDB are answered too (docs/http.md): CouchDB's replicator, PouchDB, HTTP libraries. Default: no.
  public var servesHTTP = false
  /// Web pages of which origins may use the HTTP API. Default: none.
  public var crossOrigin = CrossOrigin.none
  /// The servers that replications may reach which clients ask for. Nil: all, if the listener is reached from this machine only, and none
  /// otherwise. Whoever may log in could reach the network of this machine through it.
  public var replicationHosts: ReplicationHosts?
  /// URLs under which clients reach the listener through proxies: `https://db.example` or `https://example/couch`. In replications of the
  /// HTTP API they name the listener's own databases. What requests say, such as `X-Forwarded-Host`, is never taken for one. Starting the
  /// listener throws `SyncListenerError` for what isn't a URL of HTTP. Default: none.
  public var publicURLs: [String] = []
  /// The numeric address to listen on, such as `127.0.0.1`, `::1` or `0.0.0.0`. Default: the loopback interface.
  public var address = "127.0.0.1"
  /// The network interface to listen on in place of `address`, such as `eth0`.
  public var networkInterface: String?
  /// The port. 0 takes any.
  public var port = 0
  /// How the listener announces itself in the local network. Nil: it doesn't. A listener on a loopback address can't.
  public var announcement: SyncListenerAnnouncement?
  /// The certificate. Nil: without TLS.
  public var tls: TLS?
  /// Whom it lets in. Default: everybody.
  public var authenticator = Authenticator.none
  /// A file with the keys of signed tokens (JWT), and with the secret of a proxy that names users, in the form of CouchDB's configuration
  /// (docs/http-users.md). Whom they name has the roles that come along. Nil: neither is taken. It needs `servesHTTP`, and an
  /// authenticator with passwords.
  public var loginFile: String?
  /// How long the cookie of a session is good for, in seconds.
  package var sessionSeconds = 600
  /// Whether administrators may change the security object of a folder's database `_users`, so that users read and change their own
  /// documents in it: their passwords. Default: no, as in CouchDB.
  public var usersSecurityIsEditable = false
  /// The iterations of the hashes of passwords of new users. Nil: the default, which is slow on purpose.
  package var passwordIterations: Int?
  /// Whether everybody may be let in from other machines. Without this, a listener with the authenticator `none` listens on
  /// loopback addresses only.
  public var allowsAnyoneFromOutside = false
  /// Whether clients only fetch changes.
  public var isReadOnly = false
  /// Whether revisions that conflict with the current one are refused, also from clients that would make branches.
  public var refusesConflicts = false
  /// The filters that clients over WebSockets may choose by their names, and give parameters to. Others are refused (LiteCore 19).
  /// They protect nothing: a client that names none gets all documents. Deletions reach a client only if its filter lets tombstones
  /// pass, which have empty bodies as a rule. `channels` of Couchbase Lite ask for `sync_gateway/bychannel`, with the parameter
  /// `channels`, `a,b`.
  public var filters: [String: Filter] = [:]
  /// The path of a results file of `touchstone bench`, which administrators see on the page `/_utils/` (docs/http-page.md). It is read each
  /// time, and may have 32 MiB. Nil: the page says how to make one.
  public var benchReport: String?
  /// The most connections at a time.
  public var maximumConnections = 10_000
  /// The memory that bodies of requests over HTTP may take together, and what is made of them, in bytes. A body takes at least twice its
  /// length after decompression, so the longest body has half of it. Attachments aren't counted: they are stored as they arrive. Default:
  /// 512 MiB.
  public var maximumBodyMemory = 512 << 20
  /// How long a request over HTTP may take until its answer begins, and a N1QL query until its last row, in seconds. Afterwards the client
  /// gets 503, or 408 for a query, and the work for it ends. A feed of changes may last longer, and so may a body that goes on. Default:
  /// 300.
  public var requestTimeLimit = RequestTimeLimit.defaultSeconds
  /// The memory that N1QL queries over HTTP may take together for rows that they sort, group and join, in bytes. One has at most half of
  /// it, and at most 256 MiB. Default: 512 MiB.
  public var maximumQueryMemory = 512 << 20
  /// The temporary files that N1QL queries over HTTP may have together for rows that the memory doesn't hold, in bytes. 0: none, so that such
  /// a query is refused. Default: 4 GiB.
  public var maximumQueryFiles = 4 << 30
  /// The memory that messages of replicators may take together, in bytes, from when they begin to arrive until they are answered, and
  /// half of it for one connection. While there is no more, clients wait. Those that hold most without going on lose their connections
  /// when nobody has gone on for ten seconds. Default: 256 MiB.
  public var maximumReplicationMemory = 256 << 20
  /// A connection from which nothing has come for this long is closed, in seconds. Nil: none. Answers to pings count, and a
  /// ping goes every 300 seconds: a longer time closes no peer that answers.
  public var idleTimeout: Double?

  /// Creates a configuration for the loopback interface and any port.
  public init(databases: [String: Database] = [:]) { self.databases = databases }

  /// Creates a configuration for the databases of a folder, the loopback interface and any port.
  public init(folder: DatabaseFolder) {
    databases = [:]
    self.folder = folder
  }

  var crossOriginRules: CrossOriginRules {
    switch crossOrigin {
    case .none: .none
    case .origins(let origins): .origins(origins)
    case .all: .all
    }
  }

  /// The databases as the handlers find them.
  func catalog() -> any DatabaseCatalog {
    folder.map {
      FolderDatabases($0, letsClientsMake: letsClientsMakeDatabases, opensPlain: servesPlainDatabases)
    } ?? NamedDatabases(databases)
  }

  private var isOpenToOthers: Bool {
    if networkInterface != nil { return networkInterface != "lo" }
    return !(address.hasPrefix("127.") || address == "::1")
  }

  /// The servers that replications may reach.
  var reachableHosts: ReplicationHosts { replicationHosts ?? (isOpenToOthers ? .none : .all) }

  /// The service that is announced; nil if none is. Throws if its description can't be.
  func service(port: UInt16) throws -> ServiceDescription? {
    guard let announcement else { return nil }
    var attributes = announcement.attributes
    attributes["tls"] = tls == nil ? "0" : "1"
    let service = ServiceDescription(
      name: announcement.name, type: announcement.type, port: port,
      version: networkInterface != nil || address == "::" ? .any : address.contains(":") ? .six : .four,
      attributes: attributes)
    if let problem = service.problem { throw SyncListenerError(.badRequest, problem) }
    return service
  }

  /// The settings of the server. `users` are those of the folder.
  func serverConfiguration(_ users: UsersDatabase) throws -> HTTPServerConfiguration {
    guard !databases.isEmpty || folder != nil else {
      throw SyncListenerError(.badRequest, "a listener needs a database or a folder")
    }
    guard databases.isEmpty || folder == nil else {
      throw SyncListenerError(.badRequest, "a listener serves databases or a folder, not both")
    }
    if let name = databases.keys.first(where: { $0.isEmpty || $0 == "." || $0 == ".." || $0.first == "_" }) {
      throw SyncListenerError(.badRequest, "a database can't be reached by the name “\(name)”")
    }
    guard (0...65_535).contains(port) else {
      throw SyncListenerError(.badRequest, "there is no port \(port); ports are from 0 to 65535")
    }
    if case .none = authenticator, isOpenToOthers, !allowsAnyoneFromOutside {
      throw SyncListenerError(
        .forbidden,
        "listening on \(networkInterface ?? address) would let everybody in; give the listener users or client certificates, listen on 127.0.0.1, or set allowsAnyoneFromOutside"
      )
    }
    if announcement != nil, !isOpenToOthers {
      throw SyncListenerError(
        .badRequest, "a listener on \(address) can't be announced: other machines don't reach it")
    }
    var settings = HTTPServerConfiguration()
    settings.listen = networkInterface.map { .interface($0) } ?? .address(address)
    settings.port = UInt16(port)
    settings.limits.connections = maximumConnections
    settings.limits.webSocket.idleTimeout = idleTimeout
    guard requestTimeLimit > 0 else {
      throw SyncListenerError(.badRequest, "requestTimeLimit is \(requestTimeLimit); it must be above 0")
    }
    // A query has time to say that its own is over.
    settings.limits.handlerSeconds = requestTimeLimit + min(5, requestTimeLimit)
    switch tls {
    case nil: break
    case .files(let certificate, let key):
      settings.tls = try TLSIdentity(certificateFile: certificate, keyFile: key)
    case .selfSigned(let directory): settings.tls = try TLSIdentity.selfMade(in: directory)
    }
    if loginFile != nil {
      guard servesHTTP else {
        throw SyncListenerError(.badRequest, "a file of logins needs servesHTTP: they are logins over HTTP")
      }
      switch authenticator {
      case .basic, .userFile: break
      case .none, .certificates, .certificatesAccepted:
        throw SyncListenerError(
          .badRequest,
          "a file of logins needs users with passwords: without them everybody is an administrator")
      }
    }
    switch authenticator {
    case .none: break
    case .basic(let check):
      let checker = ClosurePasswordChecker { name, password, done in
        done(check(name.string, String(decoding: password, as: UTF8.self)))
      }
      settings.authenticator = try authenticator(AdministratorDirectory(checker))
    case .userFile(let path):
      let admins = try UserFile(path)
      settings.authenticator = try authenticator(
        folder == nil ? AdministratorDirectory(admins) : ListenerUsers(admins: admins, users: users))
    case .certificates(let authorities):
      settings.clientCertificates = .required(try ClientCertificateCheck(authorities: authorities))
      settings.authenticator = CertificateAuthenticator()
    case .certificatesAccepted(let accepts):
      settings.clientCertificates = .required(ClientCertificateCheck { accepts($0.der) })
      settings.authenticator = CertificateAuthenticator(user: { $0.commonName ?? $0.fingerprint })
    }
    if servesHTTP {
      settings.errorAnswer = { status, reason in .error(status: status, reason: reason) }
    }
    return settings
  }

  private func authenticator(_ users: any UserDirectory) throws -> any Server.Authenticator {
    let basic = try BasicAuthenticator(users: users)
    // Who hasn't logged in has the rights of nobody, which the API knows.
    guard servesHTTP else { return basic }
    let headers: ListenerHeaderLogins?
    do {
      headers = try loginFile.map { ListenerHeaderLogins(logins: try HeaderLogins(file: $0)) }
    } catch let error as HeaderLogins.FileError { throw SyncListenerError(.badRequest, error.description) }
    return try SessionAuthenticator(basic, seconds: sessionSeconds, headers: headers) { _ in true }
  }

  /// Says who a user is now; nil if users aren't looked up, such as those with certificates.
  static func lookup(_ authenticator: any Server.Authenticator) -> StandingRights.Lookup? {
    switch authenticator {
    case let sessions as SessionAuthenticator: { sessions.context(of: $0) }
    case let basic as BasicAuthenticator: { basic.context(of: $0) }
    default: nil
    }
  }

  /// What answers the clients of CouchDB; nil if nothing does.
  func service(
    _ catalog: any DatabaseCatalog, _ users: UsersDatabase, _ rights: StandingRights,
    _ settings: HTTPServerConfiguration,
    _ targets: any ReplicationTargets
  ) -> DatabaseService? {
    guard servesHTTP else { return nil }
    var configuration = DatabaseServiceConfiguration()
    configuration.isReadOnly = isReadOnly
    configuration.crossOrigin = crossOriginRules
    configuration.replicationTargets = targets
    configuration.requestSeconds = min(requestTimeLimit, 1e9)
    configuration.queryMemoryBytes = maximumQueryMemory
    configuration.queryFileBytes = maximumQueryFiles
    configuration.bodyMemoryBytes = maximumBodyMemory
    configuration.maximumRequestBytes = maximumBodyMemory / 2
    configuration.maximumAttachmentBytes = settings.limits.bodyBytes
    if case .none = authenticator {} else { configuration.hasUsers = true }
    configuration.benchReport = benchReport
    configuration.users = users
    configuration.rights = rights
    configuration.usersSecurityIsEditable = usersSecurityIsEditable
    if let sessions = settings.authenticator as? SessionAuthenticator {
      configuration.logins = ListenerSessions(authenticator: sessions)
      configuration.loginChallenge = sessions.challenge
      configuration.headerLogins = (sessions.headers as? ListenerHeaderLogins)?.logins
    }
    return DatabaseService(catalog, configuration)
  }
}
