import Fleece
import ReplicationHTTP
import Storage
import Touchstone
import TouchstoneSync

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone sync`: replicates a database with another one.
struct SyncCommand: Subcommand {
  private static let target = Positional(
    "TARGET",
    "The other database: the path of a NAME.touchstone directory, a location such as postgres://host/db#name, or a URL: ws://host:port/name for a listener, "
      + "http://host:port/name for the CouchDB family; wss:// and https:// with TLS"
  )
  private static let push = Flag("push", "Only sends changes of DB")
  private static let pull = Flag("pull", "Only fetches changes of TARGET")
  private static let continuous = Flag("continuous", "Goes on until Ctrl-C")
  static let user = Option(
    "user", "NAME", "Says who the user is, as NAME@ in an http:// URL does. Needs --password-file")
  static let bearer = Option(
    "bearer-file", "FILE", "A file with a token in one line, which goes in place of a name")
  private static let filter = Option(
    "filter", "NAME",
    "Only documents that this filter of TARGET lets through; its name is DESIGN/NAME in the CouchDB family")
  private static let parameter = Option(
    "param", "NAME=VALUE", "A parameter of the filter; may be repeated"
  ) { text in
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty else { throw UsageError("'\(text)' isn't NAME=VALUE") }
    return (name: String(parts[0]), value: String(parts[1]))
  }
  private static let selector = Option(
    "selector", "JSON", "Only documents of TARGET that match, in the language of _find (http://)")
  private static let createTarget = Flag(
    "create-target", "Makes TARGET if it doesn't exist (a path, or http://). At a path, with the engine of DB"
  )
  static let passwordFile = Option(
    "password-file", "FILE", "A file with the user's password in one line")
  static let header = Option(
    "header", "NAME: VALUE", "A header of the request that connects; may be repeated"
  ) {
    text in
    let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty else { throw UsageError("'\(text)' isn't NAME: VALUE") }
    return (name: String(parts[0]), value: String(parts[1].drop { $0 == " " }))
  }
  private static let channels = Option(
    "channels", "A,B…", "Only documents of these channels, from a server that has channels")
  private static let ids = Option("ids", "ID,ID…", "Only these documents")
  private static let reset = Flag("reset", "Compares all documents, whatever earlier runs did")
  static let pinned = Option(
    "pinned-cert", "FILE",
    "The server's certificate, or that of its authority: DER or PEM. No other is trusted")
  static let selfSigned = Flag(
    "trust-self-signed", "Trusts any certificate that has signed itself; the server may be anybody")

  static let usage = Usage(
    "sync", "Replicates DB with another database, in both directions",
    positionals: [DatabaseArguments.database, target],
    options: [
      push, pull, continuous, user, passwordFile, bearer, header, channels, ids, filter, parameter, selector,
      NewDatabase.engine, createTarget, reset, pinned, selfSigned,
      DatabaseArguments.json, Keys.file, Keys.newFile,
    ],
    examples: [
      "touchstone sync travel backup --create-target", "touchstone sync travel other --pull --json",
      "touchstone sync copy ws://127.0.0.1:4984/travel --engine lmdb",
      "touchstone sync travel wss://example.com:4984/travel --user me --password-file secret --continuous",
      "touchstone sync travel https://me@example.com/travel --password-file secret --create-target",
    ],
    notes: """
      With --engine, DB is made if it doesn't exist. The other side of ws:// is 'touchstone serve', Couchbase Lite 2 or 3, or Sync Gateway; that of http://
      CouchDB, PouchDB, Couchbase Lite 1, Sync Gateway, or 'touchstone serve'. Conflicts are resolved in DB by
      the rules of Couchbase Lite, and the results are sent to TARGET; over http:// they stay, and all branches
      go both ways. A filter and a selector choose what is fetched, so they need --pull. A second run begins
      where the first one stopped. The key opens each encrypted database. Documents that couldn't be replicated
      are lines on standard error, and the status is then 1. What another try within the run has mended isn't
      among them. The status is 3 if TARGET can't be reached, refuses, or answers with what can't be read.
      'touchstone sync --list SERVER' lists the replications that a server runs.
      """)

  private enum Target {
    case path(DatabaseArguments)
    case url(ReplicatorTarget)
  }

  private let database: DatabaseArguments
  private let target: Target
  private let direction: ReplicatorConfiguration.Direction
  private let isContinuous: Bool
  private let channels: [String]?
  private let ids: [String]?
  private let resets: Bool
  private let connection: ConnectionOptions
  private let filter: String?
  private let parameters: [(name: String, value: String)]
  private let selector: JSONValue?
  private let createsTarget: Bool
  private let engine: EngineName?
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    let text = try arguments.required(Self.target)
    if try Self.isURL(text) {
      do { target = .url(try .url(text)) } catch let error as ReplicationError {
        throw UsageError("TARGET: \(error.message)")
      }
    } else {
      target = .path(try DatabaseArguments(arguments, Self.target))
    }
    let (pushes, pulls) = (arguments[Self.push], arguments[Self.pull])
    direction = pushes == pulls ? .pushAndPull : pushes ? .push : .pull
    isContinuous = arguments[Self.continuous]
    channels = try arguments.value(Self.channels).map { $0.split(separator: ",").map(String.init) }
    ids = try arguments.value(Self.ids).map { $0.split(separator: ",").map(String.init) }
    resets = arguments[Self.reset]
    var connector: HTTPConnector?
    if case .url(let target) = target { connector = target.connector as? HTTPConnector }
    connection = try Self.connection(arguments, connector)
    filter = try arguments.value(Self.filter)
    parameters = try arguments.allValues(Self.parameter)
    selector = try arguments.value(Self.selector).map { text in
      guard let value = try? JSONValue(json: text), value.object != nil else {
        throw UsageError("--selector isn't a JSON object")
      }
      return value
    }
    guard parameters.isEmpty || filter != nil else { throw UsageError("--param belongs to --filter") }
    if filter != nil || selector != nil {
      guard connector != nil || selector == nil else {
        throw UsageError("--selector needs a TARGET of http:// or https://")
      }
      guard case .url = target else { throw UsageError("--filter needs a TARGET that is a URL") }
      guard filter == nil || selector == nil else {
        throw UsageError("--filter and --selector exclude each other")
      }
      guard direction == .pull else {
        throw UsageError("--filter and --selector choose what is fetched: add --pull")
      }
    }
    createsTarget = arguments[Self.createTarget]
    engine = try arguments.value(NewDatabase.engine)
    if case .url = target, connector == nil, createsTarget {
      throw UsageError("--create-target needs a TARGET that is a path, http:// or https://")
    }
    asJSON = arguments[DatabaseArguments.json]
  }

  /// Whether TARGET is the URL of a peer, and not the path or location of a database.
  private static func isURL(_ text: String) throws -> Bool {
    guard let scheme = text.firstRange(of: "://") else { return false }
    if ["ws", "wss", "http", "https"].contains(text[..<scheme.lowerBound].lowercased()) { return true }
    guard DatabaseLocation.isOnServer(text) else { throw UsageError(targets) }
    do { _ = try DatabaseLocation(text).engine } catch let error as DatabaseError
      where error.code == .invalidLocation
    {
      throw UsageError("\(targets) (\(error.message))")
    }
    return false
  }

  private static let targets =
    "TARGET is a path, or a URL that begins with ws://, wss://, http:// or https://, or a location such as postgres://host/db#name"

  /// How a connection is made, as the options say that commands share which connect.
  static func connection(_ arguments: Arguments, _ connector: HTTPConnector?) throws
    -> ConnectionOptions
  {
    var options = ConnectionOptions()
    options.createsDatabase = arguments[createTarget]
    options.headers = try arguments.allValues(header)
    if let name = try arguments.value(user) ?? connector?.userName {
      let path = try arguments.value(passwordFile)
      if path == nil, connector?.hasPassword != true {
        throw UsageError("--user needs --password-file: a password is never an argument")
      }
      if let path {
        let password = try PasswordFile.read(path)
        options.authenticator =
          connector == nil ? .basic(name: name, password: password) : .login(name: name, password: password)
      }
    }
    if let path = try arguments.value(bearer) {
      guard options.authenticator == nil else { throw UsageError("--bearer-file goes in place of a name") }
      options.authenticator = .bearer(token: try PasswordFile.read(path))
    }
    if let path = try arguments.value(pinned) {
      options.serverTrust = .pinned(try PasswordFile.bytes(path))
    } else if arguments[selfSigned] {
      options.serverTrust = .selfSigned
    }
    return options
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let local = try Self.existing(database, "DB") {
      try database.open(makingWith: engine, watchesOtherProcesses: isContinuous).database
    }
    var opened = [local]
    defer { for database in opened { try? database.close() } }
    let replicatorTarget: ReplicatorTarget
    switch target {
    case .url(let target): replicatorTarget = target
    case .path(let arguments):
      let other = try Self.existing(arguments, "TARGET") {
        if createsTarget, !Database.exists(arguments.path) { try create(arguments, like: local) }
        return try arguments.open(watchesOtherProcesses: isContinuous)
      }
      opened.append(other)
      replicatorTarget = .database(other)
    }
    var configuration = ReplicatorConfiguration(local, replicatorTarget)
    configuration.direction = direction
    configuration.isContinuous = isContinuous
    configuration.channels = channels
    configuration.documentIDs = ids
    configuration.filter = filter
    for (name, value) in parameters { configuration.filterParameters[name] = .string(value) }
    configuration.selector = selector
    configuration.resetsCheckpoint = resets
    configuration.connection = connection
    let replicator = Replicator(configuration)
    let counts = Lock(Counts())
    let changed = CountingSemaphore()
    let tokens = [
      replicator.observeDocuments { documents in
        counts.withLock { $0.add(documents) }
      },
      replicator.observeStatus { status in
        counts.withLock { $0.failures.note(status) }
        if status.activity == .stopped { changed.signal() }
      },
    ]
    let start = ContinuousClock.now
    replicator.start()
    var progress = Progress("sync", unit: "documents")
    var isStopping = false
    var shownError: ReplicationError?
    while !changed.wait(seconds: 0.1) {
      let status = replicator.status
      progress.update(Int(status.progress.completed))
      for line in counts.withLock({ $0.takeLines() }) { StandardError.line(line) }
      if status.activity == .offline, let error = status.error, error != shownError {
        shownError = error
        StandardError.line("offline: \(error.description); it will be tried again")
      }
      if Interrupt.isRequested, !isStopping {
        isStopping = true
        replicator.stop()
      }
    }
    progress.end()
    for token in tokens { token.cancel() }
    let elapsed = (ContinuousClock.now - start).components
    let milliseconds = elapsed.seconds * 1_000 + elapsed.attoseconds / 1_000_000_000_000_000
    let status = replicator.status
    let result = counts.withLock { counts in
      if status.error == nil, !isStopping, !isContinuous { counts.failures.settle() }
      return counts
    }
    for line in result.lines + result.failures.undone.map(Counts.line) { StandardError.line(line) }
    if let error = status.error { throw error }
    try print(result, replicator.transferredBytes, milliseconds, output)
    if Interrupt.isRequested, !isContinuous { throw Interrupted("what was replicated is kept") }
    let failed = result.failures.count
    guard failed == 0 else { throw Refusal("\(failed) documents couldn't be replicated") }
  }

  /// Opens a database by `open`. If there is none, the error says how it is made.
  private static func existing(
    _ arguments: DatabaseArguments, _ name: String, _ open: () throws -> Database
  ) throws -> Database {
    do { return try open() } catch let error as DatabaseError where error.code == .notFound {
      throw UsageError(
        "\(name): \(error); make it with 'touchstone create \(arguments.shownPath)'"
          + ", or add " + (name == "TARGET" ? "--create-target" : "--engine ENGINE"))
    }
  }

  /// Makes the database of TARGET, with the engine and the key of DB.
  private func create(_ arguments: DatabaseArguments, like local: Database) throws {
    let key = local.isEncrypted ? try database.key() : nil
    // Between a directory and a server the engine isn't the same.
    let isOfServer = local.engineName == .postgres
    let engine: EngineName? =
      DatabaseLocation.isOnServer(arguments.path) ? nil : isOfServer ? .sqlite : local.engineName
    try Database.open(
      arguments.path, options: .init(engine: engine, creation: .createNew, key: key)
    ).close()
  }

  private func print(
    _ result: Counts, _ bytes: (sent: UInt64, received: UInt64), _ milliseconds: Int64,
    _ output: StandardOutput
  ) throws {
    if asJSON {
      let object: JSONObjectText = [
        "pushed": result.pushed, "pulled": result.pulled, "conflicts": result.conflicts,
        "errors": result.failures.count,
        "bytesSent": bytes.sent, "bytesReceived": bytes.received, "seconds": Double(milliseconds) / 1_000,
      ]
      return try output.line(object.jsonText)
    }
    var line = "\(TextTable.grouped(result.pushed)) pushed, \(TextTable.grouped(result.pulled)) pulled"
    if result.conflicts > 0 { line += ", \(TextTable.grouped(result.conflicts)) conflicts resolved" }
    if result.failures.count > 0 { line += ", \(TextTable.grouped(result.failures.count)) failed" }
    if bytes.sent + bytes.received > 0 {
      line +=
        ", \(TextTable.grouped(Int(bytes.sent))) bytes sent, \(TextTable.grouped(Int(bytes.received))) received"
    }
    try output.line(line + ", in \(milliseconds) ms")
  }

  private struct Counts: Sendable {
    var pushed = 0
    var pulled = 0
    var conflicts = 0
    var failures = ReplicationFailures()
    /// Those of documents that have failed for good, until they are shown.
    var lines: [String] = []

    mutating func add(_ documents: [ReplicatedDocument]) {
      lines += failures.add(documents).map(Self.line)
      for document in documents where document.error == nil {
        if document.isPush {
          pushed += 1
        } else {
          pulled += 1
          if document.hadConflict { conflicts += 1 }
        }
      }
    }

    static func line(_ document: ReplicatedDocument) -> String {
      "\(document.id) \(document.revisionID): \(document.error.map { "\($0)" } ?? "")"
    }

    mutating func takeLines() -> [String] {
      defer { lines = [] }
      return lines
    }
  }
}
