import Storage
import Touchstone
import TouchstoneServer

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone serve`: lets others replicate with databases, and ask them over HTTP.
struct ServeCommand: Subcommand {
  private static let databases = Positional(
    "DB",
    "The databases: NAME.touchstone directories or locations on servers. Or a directory of databases, or a location without a name, for all that are there",
    count: .any)
  private static let listen = Option(
    "listen", "ADDRESS:PORT", "Where to listen. Default: 127.0.0.1:4984. Port 0 takes any"
  ) {
    text in
    guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
      (0...65_535).contains(port)
    else { throw UsageError("'\(text)' isn't ADDRESS:PORT") }
    var address = String(text[..<colon])
    if address.hasPrefix("["), address.hasSuffix("]") { address = String(address.dropFirst().dropLast()) }
    return (address: address, port: port)
  }
  private static let userFile = Option(
    "user-file", "FILE",
    "The administrators, as 'touchstone user' writes them. Default of a directory: its file server-admins")
  private static let loginFile = Option(
    "login-file", "FILE",
    "Keys of signed tokens (JWT), and the secret of a proxy, in the form of CouchDB's configuration")
  private static let usersEditable = Flag(
    "edit-users-security", "Lets administrators change _users/_security, so that users change their passwords"
  )
  private static let anyone = Flag("anyone", "Lets everybody in, also from other machines")
  private static let certificate = Option("tls-cert", "FILE", "The certificate of this server, in PEM format")
  private static let key = Option("tls-key", "FILE", "The key of the certificate, in PEM format")
  private static let tls = Option(
    "tls", "self-signed", "Makes a certificate, and keeps it beside the first database"
  ) { text in
    guard text == "self-signed" else { throw UsageError("'\(text)' isn't self-signed") }
    return text
  }
  private static let announce = Option(
    "announce", "NAME", "Announces the server in the local network under this name, where Avahi is installed")
  private static let cors = Option(
    "cors", "ORIGIN",
    "Lets web pages of this origin ask over HTTP, with logins. May be repeated. * lets all, without logins"
  )
  private static let create = Flag(
    "create",
    "Makes databases that don't exist, and lets clients do so; needs --engine")
  private static let engine = DatabaseArguments.engine("The engine of databases that are made")

  private static let durability = Option<Durability>(
    "durability", "LEVEL", "What survives a crash: full, normal or none (normal)",
    refusal: "isn't full, normal or none")

  private static let bodyMemory = Option<Int>(
    "body-memory", "MIB", in: 1...1_048_576,
    "The memory for bodies of requests over HTTP, of all together, in MiB (512)")

  private static let replicateTo = Option(
    "replicate-to", "HOSTS",
    "The servers that replications may reach: HOST or HOST:PORT with commas between, all, or none. Default: all if "
      + "the server is reached from this machine only, and none otherwise"
  ) { text -> SyncListenerConfiguration.ReplicationHosts in
    switch text {
    case "none": return .none
    case "all": return .all
    default:
      let hosts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
      guard hosts.allSatisfy({ !$0.isEmpty && !$0.contains("/") && !$0.contains("@") }) else {
        throw UsageError("'\(text)' isn't a list of HOST or HOST:PORT, all or none")
      }
      return .hosts(hosts)
    }
  }

  private static let publicURL = Option(
    "public-url", "URLS",
    "URLs under which proxies let this server be reached, with commas between; in replications they name its databases"
  ) { text in text.split(separator: ",").map(String.init) }

  private static let queryMemory = Option<Int>(
    "query-memory", "MIB", in: 1...1_048_576,
    "The memory for N1QL queries over HTTP, of all together, in MiB (512)")

  private static let queryDisk = Option<Int>(
    "query-disk", "MIB", in: 0...1_048_576,
    "The temporary files for such queries, of all together, in MiB (4096)")

  private static let requestTime = Option<Int>(
    "request-time", "SECONDS", in: 1...1_000_000,
    "How long a request over HTTP may take until its answer begins, and a query until it ends (300)")

  private static let benchReport = Option(
    "bench-report", "FILE", "A results file of 'touchstone bench', which the page /_utils/ shows")

  static let usage = Usage(
    "serve", "Lets others replicate with databases, and ask them over HTTP",
    positionals: [databases],
    options: [
      listen, userFile, loginFile, usersEditable, anyone, certificate, key, tls, announce, cors,
      DatabaseArguments.readOnly, create,
      engine,
      durability, replicateTo, publicURL, requestTime, bodyMemory, queryMemory, queryDisk,
      benchReport, Keys.file,
    ],
    examples: [
      "touchstone serve travel",
      "touchstone serve travel hotels --listen 0.0.0.0:4984 --user-file users --tls self-signed",
      "touchstone serve databases --create --engine lmdb --cors https://app.example",
    ],
    notes: """
      The first line on standard output is the server's URL, and a line for each database follows. Clients are
      'touchstone sync', Couchbase Lite 2 and 3, and those of CouchDB: HTTP, PouchDB, CouchDB's replicator. A web
      browser finds a page for people at /_utils/. It stops on Ctrl-C and SIGTERM. With --tls-cert, SIGHUP reads the certificate and its key again. Without
      administrators everybody is one, and it listens on this machine only, unless --anyone is given. With them,
      the users of a directory may log in too ('touchstone users').
      """)

  private let paths: [String]
  private let keys: Keys
  private let listen: (address: String, port: Int)
  private let authenticator: SyncListenerConfiguration.Authenticator
  private let allowsAnyone: Bool
  private let loginFile: String?
  private let usersSecurityIsEditable: Bool
  private let files: SyncListenerConfiguration.TLS?
  private let isSelfSigned: Bool
  private let crossOrigin: SyncListenerConfiguration.CrossOrigin
  private let announcedName: String?
  private let isReadOnly: Bool
  private let engine: EngineName?
  private let durability: Durability
  private let bodyMemory: Int
  private let queryMemory: Int
  private let queryDisk: Int
  private let requestTime: Int
  private let benchReport: String?
  private let replicateTo: SyncListenerConfiguration.ReplicationHosts?
  private let publicURLs: [String]

  init(_ arguments: Arguments) throws {
    paths = arguments.all(Self.databases)
    guard !paths.isEmpty else { throw UsageError("DB is missing") }
    keys = try Keys(arguments)
    listen = try arguments.value(Self.listen) ?? ("127.0.0.1", 4984)
    authenticator = try arguments.value(Self.userFile).map { .userFile($0) } ?? .none
    loginFile = try arguments.value(Self.loginFile)
    allowsAnyone = arguments[Self.anyone]
    usersSecurityIsEditable = arguments[Self.usersEditable]
    let certificate = try arguments.value(Self.certificate)
    let key = try arguments.value(Self.key)
    switch (certificate, key) {
    case (nil, nil): files = nil
    case (let certificate?, let key?): files = .files(certificate: certificate, key: key)
    default: throw UsageError("--tls-cert and --tls-key go together")
    }
    isSelfSigned = try arguments.value(Self.tls) != nil
    guard files == nil || !isSelfSigned else { throw UsageError("--tls-cert and --tls exclude each other") }
    let origins = try arguments.allValues(Self.cors)
    guard origins.count == 1 || !origins.contains("*") else {
      throw UsageError("--cors '*' and other origins exclude each other")
    }
    crossOrigin = origins.isEmpty ? .none : origins.contains("*") ? .all : .origins(origins)
    announcedName = try arguments.value(Self.announce)
    isReadOnly = arguments[DatabaseArguments.readOnly]
    engine = try arguments.value(Self.engine)
    durability = try arguments.value(Self.durability) ?? .normal
    bodyMemory = try arguments.value(Self.bodyMemory) ?? 512
    queryMemory = try arguments.value(Self.queryMemory) ?? 512
    queryDisk = try arguments.value(Self.queryDisk) ?? 4_096
    benchReport = try arguments.value(Self.benchReport)
    replicateTo = try arguments.value(Self.replicateTo)
    publicURLs = try arguments.value(Self.publicURL) ?? []
    requestTime = try arguments.value(Self.requestTime) ?? 300
    guard arguments[Self.create] == (engine != nil) else {
      throw UsageError("--create and --engine go together")
    }
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    if let folder = try folder() {
      defer { try? folder.close() }
      var configuration = SyncListenerConfiguration(folder: folder)
      // As everywhere, the key opens what is encrypted.
      configuration.servesPlainDatabases = true
      let directory = DatabaseLocation.isOnServer(folder.path) ? nil : folder.path
      let administrators = directory.map { $0 + "/" + UserFileChange.administrators }
      if case .none = authenticator, let administrators, access(administrators, F_OK) == 0 {
        configuration.authenticator = .userFile(administrators)
      } else {
        configuration.authenticator = authenticator
      }
      return try serve(configuration, selfSignedIn: directory ?? ".", output)
    }
    var databases: [(name: String, database: Database)] = []
    defer { for (_, database) in databases { try? database.close() } }
    for path in paths {
      let database = try open(path)
      let name = database.name
      databases.append((name, database))
      guard databases.count(where: { $0.name.utf8.elementsEqual(name.utf8) }) == 1 else {
        throw UsageError("two databases have the name '\(name)'")
      }
    }
    var configuration = SyncListenerConfiguration(
      databases: Dictionary(uniqueKeysWithValues: databases.map { ($0.name, $0.database) }))
    configuration.authenticator = authenticator
    try serve(configuration, selfSignedIn: Self.directory(databases[0].database.path), output)
  }

  /// The directory with databases, if one is to be served.
  private func folder() throws -> DatabaseFolder? {
    if paths.count == 1, DatabaseLocation.isOnServer(paths[0]), !paths[0].contains("#") {
      var options = DatabaseOptions(isReadOnly: isReadOnly, durability: durability)
      options.engine = engine
      options.watchesOtherProcesses = true
      return try DatabaseFolder(paths[0], options: options)
    }
    guard paths.count == 1, !paths[0].hasSuffix(".touchstone"), !Database.exists(paths[0]) else { return nil }
    var status = stat()
    guard stat(paths[0], &status) == 0, status.st_mode & S_IFMT == S_IFDIR else { return nil }
    var options = DatabaseOptions(isReadOnly: isReadOnly, durability: durability)
    if let engine { options.engine = engine }
    options.key = try keys.new() ?? keys.given()
    options.watchesOtherProcesses = true
    return try DatabaseFolder(paths[0], options: options)
  }

  private func serve(
    _ configuration: SyncListenerConfiguration, selfSignedIn directory: String, _ output: StandardOutput
  ) throws {
    var configuration = configuration
    configuration.letsClientsMakeDatabases = engine != nil && !isReadOnly
    configuration.address = listen.address
    configuration.port = listen.port
    configuration.allowsAnyoneFromOutside = allowsAnyone
    configuration.loginFile = loginFile
    configuration.usersSecurityIsEditable = usersSecurityIsEditable
    configuration.isReadOnly = isReadOnly
    configuration.servesHTTP = true
    configuration.announcement = announcedName.map { SyncListenerAnnouncement(name: $0) }
    configuration.crossOrigin = crossOrigin
    configuration.maximumBodyMemory = bodyMemory << 20
    configuration.maximumQueryMemory = queryMemory << 20
    configuration.maximumQueryFiles = queryDisk << 20
    configuration.replicationHosts = replicateTo
    configuration.publicURLs = publicURLs
    configuration.benchReport = benchReport
    configuration.requestTimeLimit = Double(requestTime)
    configuration.tls = try isSelfSigned ? selfSigned(in: directory) : files
    let listener = SyncListener(configuration)
    do { try listener.start() } catch let error as SyncListenerError where error.kind == .forbidden {
      throw UsageError(
        "\(listen.address) is reached from other machines; give --user-file FILE, or --anyone to let everybody in"
      )
    }
    try output.line(listener.httpURL ?? "")
    for url in listener.urls { try output.line(url) }
    if let fingerprint = listener.certificateFingerprint {
      try output.line("certificate SHA-256: \(fingerprint)")
    }
    try output.flush()
    if files != nil { HangUp.listen() }
    while !Interrupt.isRequested {
      usleep(100_000)
      if HangUp.isRequested() { try reloadCertificate(of: listener, output) }
    }
    listener.stop(graceSeconds: 5)
  }

  /// The certificate that this command makes, or has made if nothing is to be written.
  private func selfSigned(in directory: String) throws -> SyncListenerConfiguration.TLS {
    guard isReadOnly else { return .selfSigned(directory: directory) }
    let (certificate, key) = (directory + "/server-cert.pem", directory + "/server-key.pem")
    guard access(certificate, R_OK) == 0, access(key, R_OK) == 0 else {
      throw UsageError(
        "--read-only writes no certificate, and there is none in \(directory); start once without --read-only, "
          + "or give --tls-cert and --tls-key")
    }
    return .files(certificate: certificate, key: key)
  }

  /// Connections get the certificate that the files have now. What is wrong with them is in the log.
  private func reloadCertificate(of listener: SyncListener, _ output: StandardOutput) throws {
    guard (try? listener.reloadCertificate()) != nil, let fingerprint = listener.certificateFingerprint else {
      return
    }
    try output.line("certificate SHA-256: \(fingerprint)")
    try output.flush()
  }

  private func open(_ path: String) throws -> Database {
    var options = DatabaseOptions(
      creation: .openExisting, isReadOnly: isReadOnly, durability: durability)
    let isMade = engine != nil && !Database.exists(path)
    if let engine, isMade {
      options = DatabaseOptions(engine: engine, creation: .createNew, durability: durability)
      options.key = try keys.new() ?? keys.given()
    }
    // Clients that wait for changes get those of other processes too.
    options.watchesOtherProcesses = true
    let database = try isMade ? Database.open(path, options: options) : keys.open(path, options)
    // As many as those have that clients make in a directory.
    if isMade { try database.setMaximumTreeDepth(1_000) }
    return database
  }

  /// The directory of a certificate that the command makes: beside the database, or the current one if that is on a server.
  private static func directory(_ path: String) -> String {
    DatabaseLocation.isOnServer(path) ? "." : path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
  }
}
