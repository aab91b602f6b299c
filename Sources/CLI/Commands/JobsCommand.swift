import HTTPAPI
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone sync --list`: shows the replications that a server runs.
struct JobsCommand: Subcommand {
  private static let server = Positional(
    "DIR", "The directory that is served, with its database _replicator")

  static let usage = Usage(
    "sync --list", "Lists the replications of a server, with their states",
    positionals: [server], options: [DatabaseArguments.json, Keys.file],
    examples: ["touchstone sync --list databases", "touchstone sync --list databases --json"],
    notes: """
      The states are those of the documents in _replicator: completed, failed, and unfinished for what a server
      runs or is to run. With --json, each line is an object: document, id, state, source, target, docsRead,
      docsWritten, failures, error, errorCount, updated. The status is 1 if a replication has failed.
      """)

  private let path: String
  private let keys: Keys
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    path = try arguments.required(Self.server)
    keys = try Keys(arguments)
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let listings = try documents()
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

  /// What the documents of the directory say.
  private func documents() throws -> [ReplicationListing] {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, !Database.exists(path) else {
      throw UsageError("\(path) isn't a directory of databases")
    }
    let database = (path.hasSuffix("/") ? path : path + "/") + "_replicator"
    guard Database.exists(database) else { return [] }
    var options = DatabaseOptions(creation: .openExisting, isReadOnly: true)
    if try Database.isEncrypted(database) { options.key = try keys.required(for: database) }
    let opened = try Database.open(database, options: options)
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
