/// What isn't sent, what waits for parts of the server that aren't built, and where this server answers otherwise than CouchDB: with the
/// reasons. An entry of these tables that nothing needs any more fails the test.
enum TranscriptTables {
  /// What is done with an exchange.
  enum Fate {
    /// It is sent, and the answer is compared.
    case compared
    /// It is sent, and answered with this status.
    case answered(Int, String)
    /// It isn't sent.
    case left(String)
  }

  static func fate(
    of exchange: RecordedExchange, in session: String, _ replicator: TranscriptReplay.Replicator = .recorded
  ) -> Fate {
    if session.hasPrefix("replicator-") {
      let replicates = ["_replicate", "_replicator", "_scheduler", "_active_tasks"].contains(
        exchange.segments.first ?? "")
      switch replicator {
      case .recorded where replicates: return .left("another test lets the server replicate")
      case .own where ReplicationDecisions.left[session]?.contains(exchange.number) ?? false:
        return .left("what the recorder answered decides")
      case .own where exchange.client.hasPrefix("couchdb-replicator"):
        return .left("the server's own replicator does it")
      default: break
      }
    }
    if exchange.isAnsweredByProxy { return .left("the recorder answered") }
    if isRefusedByListener(exchange) { return .left("the listener refuses the login") }
    if case .recorded = replicator,
      let reason = unrecorded[session]?.first(where: { exchange.path.hasPrefix($0.key) })?.value
    {
      return .left(reason)
    }
    if exchange.segments.first == "_db_updates" {
      return .left("what happened to CouchDB's own databases; DatabaseUpdatesTests has the form")
    }
    if let (status, reason) = later(exchange) { return .answered(status, reason) }
    return .compared
  }

  /// Logins are checked before a request comes to the API (ServerTests).
  private static func isRefusedByListener(_ exchange: RecordedExchange) -> Bool {
    guard exchange.path != "/_session" else { return false }
    if exchange.status == 401, SessionStart.context(of: exchange) == nil { return true }
    return exchange.note == "malformed basic auth" || exchange.note.hasPrefix("lockout")
  }

  /// Databases whose writes weren't recorded, by the start of the path.
  private static let unrecorded: [String: [String: String]] = [
    "replicator-01-pull": ["/r_pull/": "its writes weren't recorded"],
    "replicator-02-pull-without-bulk-get": ["/r_pull/": "its writes weren't recorded"],
    "replicator-06-continuous": ["/r_d/": "its writes weren't recorded"],
  ]

  /// What isn't there yet, or never will be: docs/http.md lists it with the status.
  private static func later(_ exchange: RecordedExchange) -> (Int, String)? {
    let segments = exchange.segments
    guard segments.count > 1 else { return nil }
    switch segments[1] {
    case "_auto_purge": return (501, "of a cluster")
    case "_design"
    where segments.count > 3 && ["_show", "_list", "_update", "_rewrite"].contains(segments[3]):
      return (501, "for functions that make answers")
    default: return nil
    }
  }

  // MARK: Decisions

  /// A difference that is wanted.
  struct Decision: Sendable {
    /// The session, and the numbers of the exchanges; all of it if there are none. An empty name means every session.
    var session = ""
    var numbers: [Int] = []
    /// Exchanges of that path.
    var path: String?
    /// The start of the place.
    let place: String
    let reason: String
    /// It explains something in some runs only.
    var isRare = false

    func applies(to exchange: RecordedExchange, in session: String) -> Bool {
      (self.session.isEmpty || self.session == session)
        && (numbers.isEmpty || numbers.contains(exchange.number)) && (path == nil || path == exchange.path)
    }
  }

  private static let says = "This server says what is wrong where CouchDB fails."

  static let decisions: [Decision] = [
    .init(path: "/", place: "body.vendor", reason: "The server gives its own name."),
    .init(path: "/", place: "body.git_sha", reason: "The server gives its own name."),
    .init(path: "/", place: "body.features", reason: "It has other features."),
    .init(
      place: "body.engine", reason: "The server says which of its engines a database has.", isRare: true),
    .init(
      path: "/_dbs_info", place: "body[0].info.engine",
      reason: "The server says which of its engines a database has."),
    .init(
      path: "/_utils", place: "header Location",
      reason: "It is relative, so that it is right behind a proxy that adds a beginning."),
    .init(
      session: "api-01-server-and-database", numbers: [30], place: "status",
      reason: "All settings have values here."),
    .init(
      session: "api-01-server-and-database", numbers: [81], place: "body", reason: "There is one shard."),
    .init(
      session: "api-01-server-and-database", numbers: [25, 29], place: "body",
      reason: "The node has another name."),
    .init(
      session: "api-01-server-and-database", numbers: [60], place: "body.doc_count",
      reason: "CouchDB hasn't written the document with batch=ok yet."),
    .init(session: "api-01-server-and-database", numbers: [66, 75], place: "status", reason: says),
    .init(
      session: "api-01-server-and-database", numbers: [87], place: "status",
      reason: "OPTIONS without a login has the same answer for all paths."),
    .init(session: "api-12-errors-and-functions", numbers: [56, 67], place: "status", reason: says),
    .init(
      session: "api-12-errors-and-functions", numbers: [84], place: "body.derived_key",
      reason: "The salt is random, and the key follows from it."),
    .init(
      session: "api-02-documents", numbers: [161], place: "body.tiny",
      reason: "CouchDB reads denormal numbers as 0; they are kept here."),
    .init(
      session: "api-02-documents", numbers: [109], place: "status",
      reason: "IDs of documents have no control characters (docs/documents.md)."),
    .init(
      session: "api-02-documents", numbers: [170], place: "body.doc_count",
      reason: "As before: a document less."),
    .init(session: "api-03-bulk", numbers: [19, 44], place: "status", reason: says),
    .init(
      session: "api-03-bulk", numbers: [33], place: "body[3].reason", reason: "The text of a script's error."),
    .init(session: "api-05-attachments", numbers: [64, 96, 97], place: "status", reason: says),
    .init(
      session: "api-06-changes-normal", numbers: [26], place: "status",
      reason: "Sequences of this server are numbers."),
    .init(
      session: "api-07-changes-feeds", numbers: [22], place: "body",
      reason: "The feed ends properly; CouchDB sends the head of another answer into it."),
    .init(
      session: "api-09-views", numbers: [20, 45, 107, 108], place: "body.ref",
      reason: "A hash of CouchDB's stack."),
    .init(
      session: "api-09-views", numbers: [58], place: "body.rows[0].value",
      reason: "Doubles are added in another order."),
    .init(
      session: "api-10-views-changing", numbers: [40], place: "body.reason",
      reason: "The text of a script's error."),
    .init(
      session: "api-11-find", place: "body.bookmark",
      reason: "Bookmarks have another form (docs/http-find.md)."),
    .init(
      session: "api-11-find", numbers: [9], place: "status", reason: "The bookmark is one of CouchDB's."),
    .init(
      session: "api-11-find", numbers: [5], place: "body.execution_stats",
      reason: "The time differs, and CouchDB looks at one row more."),
    .init(
      session: "api-11-find", numbers: [36, 37], place: "body.id",
      reason: "Names of indexes are digests of something else."),
    .init(
      session: "api-11-find", numbers: [36, 37], place: "body.name",
      reason: "Names of indexes are digests of something else."),
    .init(
      session: "replicator-03-push", numbers: [55], place: "body.results.order",
      reason: "The database of CouchDB has two shards, and each its own sequences."),
    .init(
      session: "replicator-04-both-ends", numbers: [104, 106], place: "body.results[4].doc",
      reason: "Which of two new revisions wins follows from their IDs."),
    .init(
      session: "pouch9-05-remote-api", numbers: [43, 48], place: "body.offset",
      reason: "The IDs of new documents are random, and so is how many come before.", isRare: true),
    .init(
      session: "pouch9-07-cors", numbers: [26], place: "header",
      reason: "Attachments of revisions that were made elsewhere are stored as they come."),
    .init(
      session: "api-01-server-and-database", numbers: [32], place: "header", reason: "There are no web pages."
    ),
    .init(
      session: "api-01-server-and-database", numbers: [32], place: "body", reason: "There are no web pages."),
  ]

  /// The decisions about a way to replay.
  static func decisions(_ replicator: TranscriptReplay.Replicator) -> [Decision] {
    switch replicator {
    case .recorded: decisions
    case .own: ReplicationDecisions.all
    }
  }

  /// The index of the decision that explains a difference.
  static func decision(
    _ session: String, _ exchange: RecordedExchange, _ difference: AnswerDifference,
    _ replicator: TranscriptReplay.Replicator
  ) -> Int? {
    decisions(replicator).firstIndex {
      $0.applies(to: exchange, in: session) && difference.place.hasPrefix($0.place)
    }
  }
}
