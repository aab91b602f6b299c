import Fleece
import Storage
import Views

/// A replication that the server runs: its description, and what has become of it.
///
/// `ReplicationJobs` changes its state. All reads may come from any thread.
final class ReplicationJob: Sendable {
  /// The states, as CouchDB's scheduler names them.
  enum Phase: String, Sendable {
    /// It waits for its turn.
    case pending
    case running
    /// The last run has failed. It is tried again later.
    case crashing
    case completed
    case failed
  }

  /// What happened, for the list of jobs.
  struct Event: Sendable {
    enum Kind: String, Sendable { case added, started, stopped, crashed }
    let kind: Kind
    let time: Int
    let reason: String?
  }

  struct State {
    var phase = Phase.pending
    /// The failures in sequence.
    var errorCount = 0
    var error: CouchDBError?
    /// The newest first.
    var events: [Event] = []
    var run: ReplicationRun?
    var retry: TimerToken?
    /// Those who wait for the end of a run.
    var waiters: [@Sendable (Result<JSONValue, CouchDBError>) -> Void] = []
    /// Those who wait until nothing runs any more.
    var endWaiters: [@Sendable () -> Void] = []
    /// Whether nothing starts any more.
    var isRemoved = false
    /// Whether the run ends to let another job have its turn.
    var givesWay = false
    var updated = ReplicationTime.now
  }

  /// The most events that are kept.
  fileprivate static let mostEvents = 20

  /// Where a job comes from.
  enum Origin: Sendable, Equatable {
    /// A request to `_replicate`. The job is forgotten when the server ends.
    case request
    /// A document of `_replicator`.
    case document(String)

    var documentID: String? { if case .document(let id) = self { id } else { nil } }
  }

  /// The place of the job in the order of their beginnings, from 1.
  let number: Int
  let request: ReplicationRequest
  let id: String
  let user: String?
  let origin: Origin
  let added = ReplicationTime.now
  let state = Lock(State())

  init(_ number: Int, _ request: ReplicationRequest, user: String?, _ origin: Origin) {
    self.number = number
    self.request = request
    id = request.id
    self.user = user
    self.origin = origin
    state.withLock { $0.note(.added) }
  }

  /// Whether it does the same, with the same login and headers, for the same user.
  func does(_ request: ReplicationRequest, for user: String?) -> Bool {
    self.request == request && self.user == user
  }

  /// Whether it has failed, and waits for its next try.
  var isCrashing: Bool { state.withLock { $0.phase == .crashing && !$0.isRemoved } }

  /// Sees to it that nothing of it starts any more. `ended` is called at the end of what runs, if something does. Returns what runs, and
  /// those who waited for its end.
  func markRemoved(
    _ ended: (@Sendable () -> Void)? = nil
  ) -> (run: ReplicationRun?, waiters: [@Sendable (Result<JSONValue, CouchDBError>) -> Void]) {
    let (run, retry, waiters) = state.withLock { state in
      state.isRemoved = true
      if let ended, state.run != nil { state.endWaiters.append(ended) }
      state.note(.stopped)
      defer {
        state.waiters = []
        state.retry = nil
      }
      return (state.run, state.retry, state.waiters)
    }
    retry?.cancel()
    return (run, waiters)
  }

  /// Returns true if it waited for its next try, and now waits for its turn.
  func wake() -> Bool {
    let (wakes, retry) = state.withLock { state -> (Bool, TimerToken?) in
      guard state.phase == .crashing, !state.isRemoved else { return (false, nil) }
      state.phase = .pending
      defer { state.retry = nil }
      return (true, state.retry)
    }
    retry?.cancel()
    return wakes
  }

  // MARK: What is shown

  private static let database = "_replicator"
  private var process: JSONValue { .string("<0.\(number).0>") }
  private var node: JSONValue { .string(DatabaseService.node) }
  private var databaseName: JSONValue { origin.documentID == nil ? .null : .string(Self.database) }
  private var documentID: JSONValue { origin.documentID.map { .string($0) } ?? .null }

  /// The source and the target, as far as they are found, without secrets.
  private func ends(_ run: ReplicationRun?) -> [(String, JSONValue)] {
    [
      ("source", .string(run?.ends.source.shown ?? request.source.shown)),
      ("target", .string(run?.ends.target.shown ?? request.target.shown)),
    ]
  }

  /// The numbers of a state; null if it hasn't run.
  private func numbers(_ state: State) -> JSONValue {
    if let error = state.error { return ["error": .string("\(error.error): \(error.reason)")] }
    guard let run = state.run, run.hasReplicated else { return .null }
    let saved = run.savedSequence
    return .object(
      JSONObject(
        run.counts.state + [
          ("changes_pending", pending(run)), ("checkpointed_source_seq", saved), ("through_seq", saved),
          ("source_seq", run.sourceSequence),
        ]))
  }

  /// How many changes of the source aren't replicated yet, at most; null if nobody knows.
  private func pending(_ run: ReplicationRun) -> JSONValue {
    run.pending.map { JSONValue($0) } ?? .null
  }

  private func started(_ state: State) -> JSONValue {
    .string(
      ReplicationTime.iso(state.run?.began ?? state.events.first { $0.kind == .started }?.time ?? added))
  }

  /// The row of `_scheduler/jobs`.
  var jobRow: JSONValue {
    let state = state.withLock { $0 }
    let events = state.events.map { event in
      var members: [(String, JSONValue)] = [
        ("timestamp", .string(ReplicationTime.iso(event.time))), ("type", .string(event.kind.rawValue)),
      ]
      if let reason = event.reason { members.append(("reason", .string(reason))) }
      return JSONValue.object(JSONObject(members))
    }
    return .object(
      JSONObject(
        [("database", databaseName), ("id", .string(id)), ("pid", state.phase == .running ? process : .null)]
          + ends(state.run) + [
            ("user", user.map { .string($0) } ?? .null), ("doc_id", documentID), ("info", numbers(state)),
            ("history", .array(events)), ("node", node), ("start_time", .string(ReplicationTime.iso(added))),
          ]))
  }

  /// The row of `_scheduler/docs` of a job that a document describes.
  var documentRow: JSONValue {
    let state = state.withLock { $0 }
    let hasEnded = state.phase == .completed || state.phase == .failed
    return .object(
      JSONObject(
        [
          ("database", databaseName), ("doc_id", documentID), ("id", .string(id)), ("node", node),
        ] + ends(state.run) + [
          // It has ended when its document says so.
          ("state", .string(hasEnded ? Phase.running.rawValue : state.phase.rawValue)),
          ("info", numbers(state)),
          ("error_count", JSONValue(state.errorCount)),
          ("last_updated", .string(ReplicationTime.iso(state.updated))), ("start_time", started(state)),
          ("source_proxy", .null), ("target_proxy", .null),
        ]))
  }

  /// The row of `_active_tasks`; nil if it doesn't run.
  var taskRow: JSONValue? {
    let state = state.withLock { $0 }
    guard state.phase == .running, let run = state.run else { return nil }
    let saved = run.savedSequence
    var members: [(String, JSONValue)] = [
      ("node", node), ("pid", process), ("process_status", .string(run.isWaiting ? "waiting" : "running")),
      ("type", "replication"), ("replication_id", .string(id)), ("database", databaseName),
      ("doc_id", documentID), ("user", user.map { .string($0) } ?? .null),
      ("continuous", .bool(request.isContinuous)),
    ]
    members += ends(run) + run.counts.state
    members += [
      ("source_seq", run.sourceSequence), ("checkpointed_source_seq", saved),
      ("checkpoint_interval", JSONValue(Int((request.checkpointInterval ?? 5) * 1_000))),
      ("started_on", JSONValue(run.began)), ("updated_on", JSONValue(ReplicationTime.now)),
    ]
    if run.hasReplicated { members += [("through_seq", saved), ("changes_pending", pending(run))] }
    if let reason = run.offlineReason { members.append(("offline", .string(reason))) }
    return .object(JSONObject(members))
  }

  /// What a document says of a completed job.
  var statistics: JSONValue {
    let state = state.withLock { $0 }
    guard let run = state.run else { return [:] }
    return .object(
      JSONObject(
        run.counts.state + [
          ("checkpointed_source_seq", run.savedSequence),
          ("start_time", .string(ReplicationTime.iso(run.began))),
        ]))
  }
}

extension ReplicationJob.State {
  /// Notes what happened now.
  mutating func note(_ kind: ReplicationJob.Event.Kind, _ reason: String? = nil) {
    updated = ReplicationTime.now
    events.insert(ReplicationJob.Event(kind: kind, time: updated, reason: reason), at: 0)
    // The beginning stays.
    if events.count > ReplicationJob.mostEvents { events.remove(at: events.count - 2) }
  }
}
