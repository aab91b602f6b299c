import Bytes
import Documents
import Fleece
import Logs
import Storage
import Touchstone
import Views

/// Runs the replications that the documents of `_replicator` describe: it follows the changes of the database, and writes into
/// a document how its replication has ended.
///
/// All calls may come from any thread. What they lead to happens on one thread, in order.
final class ReplicatorDatabase: Sendable {
  /// A document whose replication hasn't ended.
  private struct Entry {
    let request: ReplicationRequest
    let user: String?
    /// Nil if another job does the same.
    var job: ReplicationJob?
    var problem: String?
    let since = ReplicationTime.now
  }

  private struct State {
    var database: Database?
    var observer: ChangeObserver?
    var closeHandler: Int?
    var entries: [ByteString: Entry] = [:]
    var isStopped = false
  }

  /// The most changes that are read at a time.
  private static let changesTogether = 500

  private let jobs: ReplicationJobs
  private let lane = Workers()
  private let state = Lock(State())
  // Used on the lane only.
  private let reached = Lock<UInt64>(0)

  init(_ jobs: ReplicationJobs) {
    self.jobs = jobs
    jobs.whenJobEnds { [weak self] job, result in
      self?.lane.enqueue { [weak self] in self?.ended(job, result) }
    }
  }

  /// Follows a database from now on, unless it is followed already.
  func attach(_ database: Database) {
    let isNew = state.withLock { state in
      guard !state.isStopped, state.database !== database else { return false }
      state.database = database
      return true
    }
    guard isNew else { return }
    let handler = database.addCloseHandler { [weak self, weak database] in
      guard let self, let database else { return }
      detach(database)
    }
    state.withLock { $0.closeHandler = handler }
    // It may have been closed before the handler was there.
    guard database.isOpenForReplication else { return detach(database) }
    lane.enqueue { [weak self] in self?.begin(database) }
  }

  /// Ends: what runs goes on, or is ended by whoever owns the jobs.
  func stop() {
    let (database, observer, handler) = state.withLock { state in
      state.isStopped = true
      state.entries = [:]
      defer { (state.database, state.observer, state.closeHandler) = (nil, nil, nil) }
      return (state.database, state.observer, state.closeHandler)
    }
    observer?.cancel()
    if let database, let handler { database.removeCloseHandler(handler) }
  }

  /// The database was closed or deleted: nothing says any more what is to run.
  private func detach(_ database: Database) {
    let entries = state.withLock { state -> [Entry] in
      guard state.database === database else { return [] }
      (state.database, state.observer, state.closeHandler) = (nil, nil, nil)
      defer { state.entries = [:] }
      return Array(state.entries.values)
    }
    for job in entries.compactMap(\.job) { jobs.remove(job) }
  }

  private func begin(_ database: Database) {
    reached.withLock { $0 = 0 }
    do {
      let observer = try database.observeForReplication { [weak self, weak database] in
        guard let self, let database else { return }
        lane.enqueue { [weak self] in self?.follow(database) }
      }
      let isWanted = state.withLock { state in
        guard state.database === database else { return false }
        state.observer = observer
        return true
      }
      guard isWanted else { return observer.cancel() }
    } catch { return complain(error) }
    follow(database)
  }

  private func complain(_ error: any Error) {
    Log.write(
      LogText.level(of: error), .sync, ReplicatorDocument.database,
      "replications can't be read or written: \(LogText.of(error))")
  }

  // MARK: Following

  private func follow(_ database: Database) {
    do {
      while state.withLock({ $0.database === database }) {
        let since = reached.withLock { $0 }
        let changes = try database.changes(since: since, limit: Self.changesTogether)
        for change in changes { try take(change, database) }
        guard let last = changes.last else { return }
        reached.withLock { $0 = last.sequence }
      }
    } catch { complain(error) }
  }

  private func take(_ change: Change, _ database: Database) throws {
    let id = change.documentID
    guard !IncomingID.isDesign(id) else { return }
    guard !change.isDeleted, let document = try database.document(id) else { return forget(id) }
    let body = try document.value()
    guard !ReplicatorDocument.hasEnded(body) else { return forget(id) }
    do {
      let request = try ReplicationRequest(body)
      let known = state.withLock { $0.entries[ByteString(id)] }
      // It was changed in what doesn't matter.
      if let known, known.request == request, known.job != nil { return }
      forget(id)
      add(id, Entry(request: request, user: ReplicatorDocument.user(body)))
    } catch let error as CouchDBError {
      forget(id)
      write(.failure(error), to: id, database) { $0 == document.revisionID }
    }
  }

  private func add(_ id: String, _ entry: Entry, isAskedAnew: Bool = true) {
    var entry = entry
    let other: ReplicationJob?
    switch jobs.add(entry.request, user: entry.user, .document(id), isAskedAnew: isAskedAnew) {
    case .new(let job):
      entry.job = job
      other = nil
    case .known(let job), .other(let job):
      if job.origin == .document(id) { entry.job = job }
      other = job
    case .refused: other = nil
    }
    if entry.job == nil { entry.problem = Self.problem(of: entry.request, begunBy: other) }
    state.withLock { state in if state.database != nil { state.entries[ByteString(id)] = entry } }
  }

  private static func problem(of request: ReplicationRequest, begunBy other: ReplicationJob?) -> String {
    let other = other?.origin.documentID.map { "the document \($0)" } ?? "a request"
    return "the replication \(request.id) was already begun by \(other)"
  }

  private func forget(_ id: String) {
    let entry = state.withLock { $0.entries.removeValue(forKey: ByteString(id)) }
    guard let job = entry?.job else { return }
    jobs.remove(job)
    addWaiting()
  }

  /// Adds those whose replication another job did until now.
  private func addWaiting() {
    let waiting = state.withLock { state in state.entries.filter { $0.value.job == nil } }
    for (id, entry) in waiting {
      add(id.string, Entry(request: entry.request, user: entry.user), isAskedAnew: false)
    }
  }

  /// A job that is no document's has ended: documents may have waited for that.
  func otherJobEnded() {
    guard state.withLock({ $0.entries.values.contains { $0.job == nil } }) else { return }
    lane.enqueue { [weak self] in self?.addWaiting() }
  }

  // MARK: Ends

  /// A job has ended; with nil another job has taken its place, for which the document waits now.
  private func ended(_ job: ReplicationJob, _ result: Result<JSONValue, CouchDBError>?) {
    guard let id = job.origin.documentID else { return }
    let database = state.withLock { state -> Database? in
      guard state.entries[ByteString(id)]?.job === job else { return nil }
      if result == nil {
        state.entries[ByteString(id)]?.job = nil
        state.entries[ByteString(id)]?.problem = Self.problem(of: job.request, begunBy: jobs.job(job.id))
      }
      return state.database
    }
    guard let database else { return }
    guard let result else {
      // The other one may have ended meanwhile.
      if jobs.job(job.id) == nil { addWaiting() }
      return
    }
    write(result.map { _ in job.statistics }, to: id, database) { _ in true }
    state.withLock { state in
      if state.entries[ByteString(id)]?.job === job { state.entries[ByteString(id)] = nil }
    }
    addWaiting()
  }

  /// Writes how a replication has ended, unless the document was changed in what it describes.
  private func write(
    _ result: Result<JSONValue, CouchDBError>, to id: String, _ database: Database,
    if isCurrent: (RevisionID) -> Bool
  ) {
    do {
      guard let document = try database.document(id), isCurrent(document.revisionID) else { return }
      let body = try document.value()
      if let entry = state.withLock({ $0.entries[ByteString(id)] }) {
        guard try ReplicationRequest(body) == entry.request else { return }
      }
      try database.save(
        id, .value(ReplicatorDocument.body(body, ended: result)), basedOn: document.revisionID,
        onConflict: .fail)
    } catch let error as DocumentError where error.code == .conflict {
      // The change is taken next.
    } catch is CouchDBError {
    } catch { complain(error) }
  }

  // MARK: What is shown

  /// Calls `body` with a row of `_scheduler/docs` for each document, in the order of their IDs, until it returns false.
  func forEachRow(_ body: (JSONValue) throws -> Bool) throws {
    guard let database = state.withLock({ $0.database }) else { return }
    try database.read { snapshot in
      let sharedKeys = try snapshot.sharedKeys
      try snapshot.forEachDocument(order: .ascending) { document in
        guard !IncomingID.isDesign(document.id), let root = document.body else { return true }
        return try body(row(document.id, root.jsonValue(sharedKeys: sharedKeys)))
      }
    }
  }

  /// The row of one document; nil if there is none.
  func row(_ id: String) throws -> JSONValue? {
    guard let database = state.withLock({ $0.database }), !IncomingID.isDesign(id) else { return nil }
    do { return try database.document(id).map { row(id, try $0.value()) } } catch let error as DocumentError
      where error.code == .invalidDocumentID
    { return nil }
  }

  private func row(_ id: String, _ body: JSONValue) -> JSONValue {
    if ReplicatorDocument.hasEnded(body) { return ReplicatorDocument.row(id, body) }
    let entry = state.withLock { $0.entries[ByteString(id)] }
    if let job = entry?.job { return job.documentRow }
    // It is about to be read, or another job does the same.
    var waiting = ReplicatorDocument.row(id, body)
    waiting["state"] = entry?.problem == nil ? "initializing" : "error"
    waiting["info"] = entry?.problem.map { ["error": .string($0)] } ?? .null
    waiting["error_count"] = entry?.problem == nil ? 0 : 1
    let time = JSONValue.string(ReplicationTime.iso(entry?.since ?? ReplicationTime.now))
    waiting["start_time"] = time
    waiting["last_updated"] = time
    return waiting
  }
}
