import HTTPAPI
import ReplicationHTTP
import Touchstone
import TouchstoneSync

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone sync --list`: shows the replications that a server runs.
struct JobsCommand: Subcommand {
  private static let server = Positional(
    "SERVER", "The URL of the server, http://host:port/ or https://…; or the directory that it serves")

  static let usage = Usage(
    "sync --list", "Lists the replications of a server, with their states",
    positionals: [server],
    options: [
      SyncCommand.user, SyncCommand.passwordFile, SyncCommand.bearer, SyncCommand.header, SyncCommand.pinned,
      SyncCommand.selfSigned, DatabaseArguments.json, Keys.file,
    ],
    examples: [
      "touchstone sync --list http://127.0.0.1:4984/",
      "touchstone sync --list https://me@example.com/ --password-file secret --json",
      "touchstone sync --list databases",
    ],
    notes: """
      A server, which may be CouchDB, tells what runs, waits, or has failed for now. A directory tells what the
      documents in its _replicator say: completed, failed, and unfinished for all else. With --json, each line is
      an object: document, id, state, source, target, docsRead, docsWritten, failures, error, errorCount, updated.
      The status is 1 if a replication has failed. The key opens an encrypted directory.
      """)

  private enum Server {
    case directory(String)
    case client(HTTPServerClient)
  }

  private let server: Server
  private let keys: Keys
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    let text = try arguments.required(Self.server)
    if let scheme = text.firstRange(of: "://") {
      guard ["http", "https"].contains(text[..<scheme.lowerBound].lowercased()) else {
        throw UsageError("SERVER is a directory, or a URL that begins with http:// or https://")
      }
      let base = text.hasSuffix("/") ? String(text.dropLast()) : text
      do {
        server = .client(
          try HTTPServerClient(base + "/_scheduler") { try SyncCommand.connection(arguments, $0) })
      } catch let error as ReplicationError { throw UsageError("SERVER: \(error.message)") }
    } else {
      server = .directory(text)
    }
    keys = try Keys(arguments)
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let listings: [ReplicationListing]
    switch server {
    case .directory(let path): listings = try documents(path)
    case .client(let client): listings = try Self.running(client)
    }
    var table = TextTable([
      ("DOCUMENT", .left), ("STATE", .left), ("SOURCE", .left), ("TARGET", .left), ("WRITTEN", .right),
      ("FAILED", .right), ("UPDATED", .left), ("ERROR", .left),
    ])
    for listing in listings {
      if asJSON {
        try output.line(Self.json(listing).jsonText)
      } else {
        table.add(
          (listing.document ?? "(request)").printable, listing.state.printable, listing.source.printable,
          listing.target.printable, listing.written.map { TextTable.grouped($0) } ?? "",
          listing.failures.map { TextTable.grouped($0) } ?? "", (listing.updated ?? "").printable,
          (listing.error ?? "").printable)
      }
    }
    if !asJSON, !listings.isEmpty { for line in table.lines { try output.line(line) } }
    let failed = listings.count { $0.error != nil }
    guard failed == 0 else {
      throw Refusal(failed == 1 ? "a replication has failed" : "\(failed) replications have failed")
    }
  }

  /// What a server says: the replications of documents, and those of requests.
  private static func running(_ client: HTTPServerClient) throws -> [ReplicationListing] {
    let documents = try client.json("docs")["docs"].array ?? []
    let jobs = try client.json("jobs")["jobs"].array ?? []
    return documents.compactMap { ReplicationListing($0) }
      + jobs.compactMap { ReplicationListing($0) }.filter { $0.document == nil }
  }

  /// What the documents of the directory say.
  private func documents(_ path: String) throws -> [ReplicationListing] {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, !Database.exists(path) else {
      throw UsageError("\(path) isn't a directory of databases")
    }
    let database = (path.hasSuffix("/") ? path : path + "/") + "_replicator"
    guard Database.exists(database) else { return [] }
    let opened = try keys.open(database, DatabaseOptions(creation: .openExisting, isReadOnly: true))
    defer { try? opened.close() }
    return try ReplicationListing.documents(of: opened)
  }

  private static func json(_ listing: ReplicationListing) -> JSONObjectText {
    [
      "document": listing.document, "id": listing.id, "state": listing.state, "source": listing.source,
      "target": listing.target, "docsRead": listing.read, "docsWritten": listing.written,
      "failures": listing.failures, "error": listing.error, "errorCount": listing.errorCount,
      "updated": listing.updated,
    ]
  }
}
