import Bytes
import Fleece
import HTTP
import Logs
import Storage
import Touchstone
import Views

extension DatabaseService {
  /// Makes the databases of the server, where clients may make databases, and begins to run the replications that the documents of
  /// `_replicator` describe.
  package func start() {
    makeSystemDatabases()
    startReplications()
  }

  private func makeSystemDatabases() {
    guard !configuration.isReadOnly, catalog.letsClientsMake else { return }
    for name in Self.systemNames {
      do { _ = try catalog.create(name) } catch {
        Log.write(
          LogText.level(of: error), .database, name, "the database can't be made: \(LogText.of(error))")
      }
    }
  }

  /// Begins to run the replications that the documents of `_replicator` describe.
  func startReplications() {
    guard !configuration.isReadOnly, let database = try? catalog.database(ReplicatorDocument.database) else {
      return
    }
    replicatorDatabase.attach(database)
  }

  /// Ends all replications, and waits until none runs any more, for so many seconds at most. None begins afterwards.
  package func stopReplications(seconds: Double) {
    replicatorDatabase.stop()
    rights.stop()
    updates.stop()
    replications.stop(seconds: seconds)
    replicatorDatabase.giveBackTurn()
  }

  /// How many replications run, those included that are about to end.
  package var runningReplications: Int { replications.runningCount }

  /// The database `_replicator` when a client asks for it by `method`. It is made when the first document comes.
  func replicatorDatabase(for method: String) throws -> Database? {
    var database = try catalog.database(ReplicatorDocument.database)
    if database == nil, method == "PUT" || method == "POST" {
      try checkWritable()
      do { _ = try catalog.create(ReplicatorDocument.database) } catch let error as CouchDBError
        where error.status == 403
      {
        throw CouchDBError(
          403, "forbidden",
          "replications that last are kept in a database _replicator, and there is none here: serve a directory with --create"
        )
      }
      database = try catalog.database(ReplicatorDocument.database)
    }
    if let database, !configuration.isReadOnly { replicatorDatabase.attach(database) }
    return database
  }

  // MARK: `_replicate`

  /// The answer to `_replicate`: a replication begins, or ends.
  func replicate(_ request: HTTPRequest) throws -> HTTPAnswer {
    guard request.method == "POST" else {
      let body = try request.bodyBytes(limit: configuration.maximumDocumentBytes)
      guard !body.isEmpty else { throw CouchDBError(400, "bad_request", "Missing request body") }
      throw MethodNotAllowed(["POST"])
    }
    let body = try request.jsonBody(limit: configuration.maximumDocumentBytes)
    try checkWritable()
    if body["cancel"].bool == true { return try cancel(body, request.context) }
    let description = try ReplicationRequest(body)
    let user = try replicationUser(request.context)
    try replications.finder.checkRights(description, for: user)
    guard !description.isContinuous else {
      switch replications.add(description, user: user, .request) {
      case .new(let job), .known(let job):
        return try .json(["ok": true, "_local_id": .string(job.id)], status: 202)
      case .other(let job): throw Self.conflict(job)
      case .refused: throw Self.tooMany
      }
    }
    return HTTPAnswer(later: { [self] respond in
      let added = replications.add(description, user: user, .request) { [self] result in
        do { respond(try .json(result.get())) } catch { respond(answer(to: error)) }
        replicatorDatabase.otherJobEnded()
      }
      switch added {
      case .new, .known: break
      case .other(let job): respond(.error(Self.conflict(job)))
      case .refused: respond(.error(Self.tooMany))
      }
    })
  }

  /// The user whose rights a replication has: nil for those of the server. Throws 403 for who came without a password: the user of that name
  /// may be somebody else.
  private func replicationUser(_ context: UserContext) throws -> String? {
    guard context.bringsRoles else { return context.ownName }
    if context.isServerAdmin { return nil }
    throw CouchDBError(403, "forbidden", "a replication needs a user that has logged in with a password")
  }

  private static func conflict(_ job: ReplicationJob) -> CouchDBError {
    CouchDBError(
      409, "conflict",
      "the same replication runs with another login, other headers or for another user; cancel \(job.id) first"
    )
  }

  private static let tooMany = CouchDBError(
    503, "service_unavailable", "there are too many replications, or the server is stopping")

  /// Ends a replication for its user, or for an administrator: the IDs of others are no secret.
  private func cancel(_ body: JSONValue, _ context: UserContext) throws -> HTTPAnswer {
    let given = ["replication_id", "_local_id", "id"].lazy.compactMap { body[$0].string }.first
    let id = try given ?? ReplicationRequest(body).id
    guard let job = replications.job(id) else { throw CouchDBError.missing }
    let isOwn = context.ownName.map { job.user?.hasSameBytes(as: $0) ?? false } ?? false
    guard context.isServerAdmin || isOwn else {
      throw CouchDBError(401, "unauthorized", "You are not a server admin.")
    }
    if let document = job.origin.documentID {
      throw CouchDBError(
        403, "forbidden", "the document \(document) of _replicator describes this replication: delete that")
    }
    let answer = try HTTPAnswer.json(["ok": true, "_local_id": .string(id)])
    return HTTPAnswer(later: { [self] respond in
      replications.remove(job) { respond(answer) }
      replicatorDatabase.otherJobEnded()
    })
  }

  // MARK: `_scheduler`, `_active_tasks`

  /// The answer to `_scheduler/jobs`.
  func schedulerJobs(_ query: APIQuery) throws -> HTTPAnswer {
    let page = try SchedulerPage(query)
    let jobs = replications.all
    let rows = jobs.dropFirst(page.skip).prefix(page.limit).map(\.jobRow)
    return try .json([
      "total_rows": JSONValue(jobs.count), "offset": JSONValue(page.skip), "jobs": .array(rows),
    ])
  }

  /// The answer to `_scheduler/jobs/{id}`. A plus in the path may come as it is, as in CouchDB: an ID has no blanks.
  func schedulerJob(_ id: String) throws -> HTTPAnswer {
    guard let job = replications.job(id.replacing(" ", with: "+")) else { throw CouchDBError.missing }
    return try .json(job.jobRow)
  }

  /// The answer to `_scheduler/docs`.
  func schedulerDocuments(_ query: APIQuery) throws -> HTTPAnswer {
    let page = try SchedulerPage(query)
    var rows: [JSONValue] = []
    var total = 0
    try replicatorDatabase.forEachRow { row in
      guard page.states?.contains(row["state"].string ?? "") ?? true else { return true }
      total += 1
      if total > page.skip, rows.count < page.limit { rows.append(row) }
      return true
    }
    return try .json([
      "total_rows": JSONValue(total), "offset": JSONValue(page.skip), "docs": .array(rows),
    ])
  }

  /// The answer to `_scheduler/docs/_replicator/{doc}`.
  func schedulerDocument(_ id: String) throws -> HTTPAnswer {
    guard let row = try replicatorDatabase.row(id) else { throw CouchDBError.missing }
    return try .json(row)
  }

  /// The rows of `_active_tasks`.
  var taskRows: [JSONValue] { tasks.json + replications.all.compactMap(\.taskRow) }
}

/// Which rows of a list of the scheduler a client wants.
private struct SchedulerPage {
  /// The most rows of an answer.
  private static let most = 10_000

  let skip: Int
  let limit: Int
  /// Nil: all.
  let states: Set<String>?

  init(_ query: APIQuery) throws {
    func count(_ name: StaticString) throws -> Int? {
      guard let text = query[name] else { return nil }
      guard let number = Int(text), number >= 0 else {
        throw CouchDBError(400, "query_parse_error", "Invalid value for integer: \"\(text)\"")
      }
      return number
    }
    skip = try count("skip") ?? 0
    limit = min(try count("limit") ?? Self.most, Self.most)
    states = query["states"].flatMap { text in
      let names = Set(text.split(separator: ",").map { String($0) })
      return names.isEmpty ? nil : names
    }
  }
}
