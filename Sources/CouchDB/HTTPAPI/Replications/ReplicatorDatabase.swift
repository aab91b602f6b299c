import Bytes
import Documents
import Fleece
import Logs
import Storage
import Touchstone
import Views

/// Runs the replications that the documents of `_replicator` describe: it follows the changes of the database, and writes into
/// a document how its replication has ended. Of all processes and services with the database one at a time does that; the others only
/// show what it shares.
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
    /// Has or waits for the turn to run the replications. It is there a moment after the database.
    var keeper: TurnKeeper?
    /// Of how many databases that were closed replications still run, so that their turn is held.
    var endings = 0
    var entries: [ByteString: Entry] = [:]
    var isStopped = false
  }

  /// The most changes that are read at a time.
  private static let changesTogether = 500

  /// The purpose of the turn.
  private static let purpose = "replicator"

  private let jobs: ReplicationJobs
  private let turnSeconds: Double
  private let lane = Workers()
  private let state = Lock(State())
  // Used on the lane only.
  private let reached = Lock<UInt64>(0)
  /// What was shared last; nil if nobody knows. Used on the lane only.
  private let shared = Lock<SharedStates?>(nil)

  /// - Parameter turnSeconds: how often is asked for the turn to run the replications, and whether it is still held.
  init(_ jobs: ReplicationJobs, turnSeconds: Double) {
    self.jobs = jobs
    self.turnSeconds = turnSeconds
    jobs.whenJobEnds { [weak self] job, result in
      self?.lane.enqueue { [weak self] in self?.ended(job, result) }
    }
  }

  /// Follows a database from now on, as soon as no other process does, unless it is followed already.
  func attach(_ database: Database) {
    // The one before may have been closed without that being told yet.
    if let before = state.withLock({ $0.database }), before !== database { detach(before) }
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
    lane.enqueue { [weak self] in self?.keepTurn(database) }
  }

  /// Asks for the turn from now on.
  private func keepTurn(_ database: Database) {
    let keeper = TurnKeeper(
      database, for: Self.purpose, jobs.timer, seconds: turnSeconds, lane,
      TurnKeeper.Work(
        begin: { [weak self, weak database] in
          if let self, let database { try begin(database) }
        },
        goOn: { [weak self, weak database] in
          if let self, let database { share(database) }
        },
        end: { [weak self, weak database] ended in
          guard let self, let database else { return ended() }
          endWork(database, ended)
        }))
    let isWanted = state.withLock { state in
      // When the replications of the one before have ended, this is called again.
      guard state.database === database, state.keeper == nil, state.endings == 0 else { return false }
      state.keeper = keeper
      return true
    }
    if isWanted { keeper.start() }
  }

  /// Ends: what runs goes on, or is ended by whoever owns the jobs. Afterwards the turn is to be given back.
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

  /// Lets other processes run the replications. Call it when nothing runs any more, after `stop()`.
  func giveBackTurn() {
    let keeper = state.withLock { state in
      defer { state.keeper = nil }
      return state.keeper
    }
    keeper?.end()
  }

  /// The database was closed or deleted: nothing says any more what is to run.
  private func detach(_ database: Database) {
    let (running, keeper) = state.withLock { state -> ([ReplicationJob], TurnKeeper?) in
      guard state.database === database else { return ([], nil) }
      (state.database, state.observer, state.closeHandler) = (nil, nil, nil)
      let running = state.entries.values.compactMap(\.job)
      if !running.isEmpty { state.endings += 1 }
      defer { (state.entries, state.keeper) = ([:], nil) }
      return (running, state.keeper)
    }
    guard !running.isEmpty else {
      keeper?.end()
      return
    }
    remove(running) { [weak self] in
      keeper?.end()
      guard let self else { return }
      let next = state.withLock { state in
        state.endings -= 1
        return state.endings == 0 ? state.database : nil
      }
      if let next { lane.enqueue { [weak self] in self?.keepTurn(next) } }
    }
  }

  /// Another process may have the turn: nothing goes on here.
  private func endWork(_ database: Database, _ ended: @escaping @Sendable () -> Void) {
    let (running, observer) = state.withLock { state -> ([ReplicationJob], ChangeObserver?) in
      guard state.database === database else { return ([], nil) }
      let running = state.entries.values.compactMap(\.job)
      defer { (state.entries, state.observer) = ([:], nil) }
      return (running, state.observer)
    }
    observer?.cancel()
    remove(running, ended)
  }

  /// Removes jobs. `ended` is called when nothing of them runs any more.
  private func remove(_ running: [ReplicationJob], _ ended: @escaping @Sendable () -> Void) {
    guard !running.isEmpty else { return ended() }
    let left = Lock(running.count)
    for job in running {
      jobs.remove(job) {
        let isLast = left.withLock { left in
          left -= 1
          return left == 0
        }
        if isLast { ended() }
      }
    }
  }

  private func begin(_ database: Database) throws {
    reached.withLock { $0 = 0 }
    shared.withLock { $0 = try? SharedStates(of: database) }
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
    follow(database)
  }

  /// Whether this process runs the replications of a database.
  private func runs(_ database: Database) -> Bool {
    state.withLock { $0.database === database ? $0.keeper : nil }?.isHeld ?? false
  }

  private func complain(_ error: any Error) {
    Log.write(
      LogText.level(of: error), .sync, ReplicatorDocument.database,
      "replications can't be read or written: \(LogText.of(error))")
  }

  // MARK: Following

  private func follow(_ database: Database) {
    do {
      while runs(database) {
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
    let isKept = state.withLock { state in
      guard state.database != nil else { return false }
      state.entries[ByteString(id)] = entry
      return true
    }
    // The database was closed in the meantime.
    if !isKept, let job = entry.job { jobs.remove(job) }
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

  /// Lets the other processes know what has become of the replications, if that has changed.
  private func share(_ database: Database) {
    let entries = state.withLock { $0.database === database ? $0.entries : nil }
    guard let entries else { return }
    let rows = entries.sorted { $0.key < $1.key }.lazy.map { id, entry in
      (id: id.string, row: entry.job?.documentRow ?? Self.waitingRow(JSONObject(), entry))
    }
    let states = SharedStates(rows)
    do {
      guard shared.withLock({ $0 != states }) else { return }
      try states.save(to: database)
      shared.withLock { $0 = states }
    } catch { complain(error) }
  }

  /// Calls `body` with a row of `_scheduler/docs` for each document, in the order of their IDs, until it returns false.
  func forEachRow(_ body: (JSONValue) throws -> Bool) throws {
    guard let database = state.withLock({ $0.database }) else { return }
    let others = try statesElsewhere(database)
    try database.read { snapshot in
      let sharedKeys = try snapshot.sharedKeys
      try snapshot.forEachDocument(order: .ascending) { document in
        guard !IncomingID.isDesign(document.id), let root = document.body else { return true }
        return try body(row(document.id, root.jsonValue(sharedKeys: sharedKeys), others))
      }
    }
  }

  /// The row of one document; nil if there is none.
  func row(_ id: String) throws -> JSONValue? {
    guard let database = state.withLock({ $0.database }), !IncomingID.isDesign(id) else { return nil }
    let others = try statesElsewhere(database)
    do { return try database.document(id).map { row(id, try $0.value(), others) } } catch let error
      as DocumentError where error.code == .invalidDocumentID
    { return nil }
  }

  /// The states that another process shares; nil if this one runs the replications.
  private func statesElsewhere(_ database: Database) throws -> SharedStates? {
    runs(database) ? nil : try SharedStates(of: database)
  }

  private func row(_ id: String, _ body: JSONValue, _ others: SharedStates?) -> JSONValue {
    if ReplicatorDocument.hasEnded(body) { return ReplicatorDocument.row(id, body) }
    let entry = state.withLock { $0.entries[ByteString(id)] }
    if let job = entry?.job { return job.documentRow }
    guard case .object(var row) = ReplicatorDocument.row(id, body) else { return .null }
    guard let members = others?[id] else { return Self.waitingRow(row, entry) }
    for (name, value) in members { row[name] = value }
    return .object(row)
  }

  /// The row of a document that is about to be read, or whose replication another job does.
  private static func waitingRow(_ row: JSONObject, _ entry: Entry?) -> JSONValue {
    var row = row
    row["state"] = entry?.problem == nil ? "initializing" : "error"
    row["info"] = entry?.problem.map { ["error": .string($0)] } ?? .null
    row["error_count"] = entry?.problem == nil ? 0 : 1
    let time = JSONValue.string(ReplicationTime.iso(entry?.since ?? ReplicationTime.now))
    row["start_time"] = time
    row["last_updated"] = time
    return .object(row)
  }
}
