import Bytes
import Documents
import Fleece
import Logs
import Replication
import Storage
import Touchstone
import Views

/// One run of a replication: a replicator between two sides, or a relay if neither is here, from its start to its end.
///
/// All calls may come from any thread.
final class ReplicationRun: Sendable {
  /// How a run ends.
  enum End: Sendable {
    /// All is replicated: the answer of `_replicate`. Of a continuous run: it was stopped.
    case finished(JSONValue)
    /// It has failed. A final failure isn't tried again.
    case failed(CouchDBError, isFinal: Bool)
    /// Who it ran for may not read or write any more.
    case revoked(CouchDBError)
  }

  /// Seconds from a change that a continuous run has replicated to the record of it.
  private static let recordDelay = 5.0

  private struct State {
    var read = 0
    var written = 0
    var failures = ReplicationFailures()
    /// What was done before. Of a relay it is known as soon as both servers have told it.
    var earlier: ReplicationRecord?
    /// Whether the servers of a relay have told it.
    var isAgreed = false
    /// What this run has recorded last.
    var record: ReplicationRecord?
    var recorded = ReplicationCounts()
    var isRecordScheduled = false
    var isStopping = false
    var tokens: [ReplicatorToken] = []
    var recordToken: TimerToken?
    var ended: (@Sendable (End) -> Void)?
    /// The rights that it needs, until it has ended.
    var grants: [StandingRights.Grant] = []
    /// Why it may not go on.
    var refusal: CouchDBError?
  }

  let request: ReplicationRequest
  let ends: ReplicationEnds
  /// The time of its start, in seconds since 1970.
  let began = ReplicationTime.now
  private let sessionID: String
  /// The name of the record.
  private let recordID: String
  private let replicator: any RunningReplication
  private let timer: any CallTimer
  private let state = Lock(State())

  /// Prepares a run. Throws a `CouchDBError` that says what is wrong with the description.
  init(
    _ request: ReplicationRequest, _ ends: ReplicationEnds, _ finder: ReplicationFinder,
    _ timer: any CallTimer
  ) throws {
    self.request = request
    self.ends = ends
    self.timer = timer
    sessionID = DocumentUUID.make()
    recordID = try request.recordID(ends)
    if var configuration = try RelayConfiguration(request, ends, recordID: recordID, finder) {
      configuration.timer = timer
      replicator = Relay(configuration)
    } else {
      var configuration = try ReplicatorConfiguration(request, ends, recordID: recordID, finder)
      configuration.timer = timer
      replicator = Replicator(configuration)
      if request.usesCheckpoints {
        let earlier = try ReplicationRecord.read(recordID, from: ends.databases)
        state.withLock { $0.earlier = earlier }
      }
    }
  }

  private var relay: Relay? { replicator as? Relay }
  private var earlier: ReplicationRecord? { state.withLock { $0.earlier } }

  /// Starts. `ended` is called once, on a thread that may wait.
  func start(_ ended: @escaping @Sendable (End) -> Void) {
    let tokens = [
      replicator.observeDocuments { [weak self] in self?.count($0) },
      replicator.observeStatus { [weak self] in self?.look(at: $0) },
    ]
    state.withLock { state in
      state.ended = ended
      state.tokens = tokens
    }
    relay?.recorder = self
    replicator.start()
    for local in self.ends.here {
      let grant = local.rights.grant(local.user, local.right, local.database) { [weak self] error in
        guard let self else { return }
        state.withLock { $0.refusal = $0.refusal ?? error }
        stop()
      }
      guard let grant else { continue }
      let isOver = state.withLock { state in
        if state.ended != nil { state.grants.append(grant) }
        return state.ended == nil
      }
      if isOver { local.rights.end(grant) }
    }
  }

  /// Ends it. What has begun to be stored is stored. `ended` is called when that is done.
  func stop() {
    state.withLock { $0.isStopping = true }
    replicator.stop()
  }

  // MARK: What it does

  private func count(_ documents: [ReplicatedDocument]) {
    state.withLock { state in
      state.read += documents.count
      state.written += documents.count { $0.error == nil }
      _ = state.failures.add(documents)
    }
  }

  /// What was done so far, by earlier runs too.
  var counts: ReplicationCounts {
    let checked = Int(clamping: replicator.status.progress.total)
    let (read, written, failures) = state.withLock { ($0.read, $0.written, $0.failures.count) }
    var counts = earlier?.counts ?? ReplicationCounts()
    counts.checked += max(checked, read)
    counts.missing += read
    counts.read += read
    counts.written += written
    counts.failures += failures
    return counts
  }

  /// Whether it has replicated anything. CouchDB tells no numbers of a run before that.
  var hasReplicated: Bool { replicator.status.progress.total > 0 || state.withLock { $0.read > 0 } }

  /// Whether it waits for changes.
  var isWaiting: Bool { replicator.status.activity == .idle }

  /// Why it has no connection at the moment.
  var offlineReason: String? {
    let status = replicator.status
    return status.activity == .offline ? status.error.map { "\($0)" } : nil
  }

  /// The sequence of the source that was saved last: a text; 0 if there is none.
  var savedSequence: JSONValue { (try? reachedSequence()) ?? earlier?.lastSequence ?? 0 }

  /// The last sequence of the source; null if nobody knows.
  var sourceSequence: JSONValue {
    guard let database = ends.source.database, let last = try? database.lastSequence else { return .null }
    return .string(database.couchDBSequences.text(last))
  }

  /// How many changes of the source aren't replicated yet, at most; nil if nobody knows.
  var pending: UInt64? {
    guard let database = ends.source.database, let last = try? database.lastSequence,
      let reached = savedSequence.string.flatMap({ database.couchDBSequences.number($0) })
    else { return nil }
    return last - min(last, reached)
  }

  // MARK: The end

  private func look(at status: ReplicatorStatus) {
    state.withLock { $0.failures.note(status) }
    switch status.activity {
    case .idle: scheduleRecord()
    case .stopped:
      let (ended, tokens, recordToken, grants) = state.withLock { state in
        defer {
          state.ended = nil
          state.tokens = []
          state.recordToken = nil
          state.grants = []
        }
        return (state.ended, state.tokens, state.recordToken, state.grants)
      }
      for grant in grants { self.ends.here.first?.rights.end(grant) }
      recordToken?.cancel()
      for token in tokens { token.cancel() }
      ended?(end(status.error))
    default: break
    }
  }

  private func end(_ error: ReplicationError?) -> End {
    if let refusal = state.withLock({ $0.refusal }) { return .revoked(refusal) }
    if let error {
      guard relay?.failure?.isOfCheckpoint ?? false else {
        return .failed(couchDBError(error), isFinal: false)
      }
      return .failed(Self.notRecorded(error), isFinal: false)
    }
    state.withLock { state in if !request.isContinuous, !state.isStopping { state.failures.settle() } }
    if let closed = [ends.source, ends.target].first(where: { $0.database?.isOpenForReplication == false }) {
      return .failed(CouchDBError(500, "db_not_found", "\(closed.shown) was closed"), isFinal: false)
    }
    do { return .finished(try record()) } catch {
      return .failed(Self.notRecorded(error), isFinal: false)
    }
  }

  private static func notRecorded(_ error: any Error) -> CouchDBError {
    CouchDBError(500, "checkpoint_commit_failure", "the checkpoint can't be saved: \(error)")
  }

  private func couchDBError(_ error: ReplicationError) -> CouchDBError {
    let elsewhere = [ends.source, ends.target].first { $0.database == nil } ?? ends.target
    let there = (relay?.failure?.side == .target ? ends.target : elsewhere).shown
    switch (error.domain, error.code) {
    case (.http, 401):
      return CouchDBError(401, "unauthorized", "unauthorized to access or create database \(there)")
    case (.http, 403): return CouchDBError(403, "forbidden", error.message)
    case (.http, 404): return CouchDBError(500, "db_not_found", "could not open \(there)")
    default: return CouchDBError(500, "error", error.description)
    }
  }

  // MARK: The record

  private func scheduleRecord() {
    // A relay does that itself.
    guard request.usesCheckpoints, relay == nil else { return }
    let counts = counts
    let isNew = state.withLock { state in
      guard !state.isRecordScheduled, state.ended != nil, state.recorded != counts else { return false }
      state.isRecordScheduled = true
      return true
    }
    guard isNew else { return }
    let token = timer.schedule(after: Self.recordDelay) { [weak self] in
      guard let self else { return }
      state.withLock { $0.isRecordScheduled = false }
      do { _ = try record() } catch {
        Log.write(
          .warning, .sync, ends.databases.first?.path, "a replication can't be recorded: \(LogText.of(error))"
        )
      }
    }
    state.withLock { $0.recordToken = token }
  }

  /// Records what was done, and returns the answer of `_replicate`.
  private func record() throws -> JSONValue {
    guard request.usesCheckpoints else { return ["ok": true, "use_checkpoints": false] }
    let record: ReplicationRecord?
    if relay != nil {
      // It has recorded all that is done before it ends.
      record = state.withLock { $0.record }
    } else {
      record = nextRecord(at: try reachedSequence())
      try record?.save(recordID, to: ends.databases)
    }
    guard let record else {
      return .object(JSONObject([("ok", true), ("no_changes", true)] + (earlier?.members ?? [])))
    }
    var members: [(String, JSONValue)] = [("ok", true)] + record.members.dropLast()
    if request.documentIDs != nil {
      let counts = record.counts
      members += [
        ("start_time", .string(ReplicationTime.http(began))),
        ("end_time", record.runs[0]["end_time"]),
        ("docs_read", JSONValue(counts.read)), ("docs_written", JSONValue(counts.written)),
        ("doc_write_failures", JSONValue(counts.failures)),
      ]
    }
    return .object(JSONObject(members + record.members.suffix(1)))
  }

  /// What is to be recorded when a sequence is reached; nil if nothing was done.
  private func nextRecord(at reached: JSONValue) -> ReplicationRecord? {
    let counts = counts
    let (earlier, last, recorded) = state.withLock { ($0.earlier, $0.record, $0.recorded) }
    let done = earlier?.counts ?? ReplicationCounts()
    let hasMoved =
      earlier.map { $0.lastSequence != reached } ?? (relay != nil && !Self.isBeginning(reached))
    guard counts != done || hasMoved else { return nil }
    if relay != nil, counts == recorded, last?.lastSequence == reached { return nil }
    let record = ReplicationRecord(
      sessionID: sessionID, began: began, ended: ReplicationTime.now,
      first: earlier?.lastSequence ?? firstSequence, last: reached, counts, after: earlier,
      before: relay == nil ? nil : last?.lastSequence)
    state.withLock { ($0.record, $0.recorded) = (record, counts) }
    return record
  }

  /// The sequence that the first run begins after.
  private var firstSequence: JSONValue { request.since ?? 0 }

  private func reachedSequence() throws -> JSONValue {
    if let relay { return Self.sequence(relay.savedSequence) }
    guard let checkpoint = try (replicator as? Replicator)?.savedCheckpoint() else { return 0 }
    if let database = ends.source.database {
      return .string(database.couchDBSequences.text(checkpoint.pushed))
    }
    return Self.sequence(checkpoint.pulled)
  }

  /// Whether a sequence of another server is that of an empty database.
  private static func isBeginning(_ sequence: JSONValue) -> Bool {
    sequence.string.map { $0 == "0" || $0.hasPrefix("0-") } ?? (sequence == 0)
  }

  /// A sequence of another server: a text; 0 if there is none.
  private static func sequence(_ sequence: RemoteSequence?) -> JSONValue {
    guard let sequence else { return 0 }
    guard let value = try? JSONValue(json: sequence.json), value.string != nil else {
      return .string(sequence.json)
    }
    return value
  }
}

// MARK: - The checkpoint of a relay

extension ReplicationRun: RelayRecorder {
  func agree(source: JSONObject?, target: JSONObject?) -> RemoteSequence? {
    let record =
      if let source, let target { ReplicationRecord(common: .object(source), .object(target)) } else {
        ReplicationRecord?.none
      }
    state.withLock { state in
      // A later connection of this run finds what the run itself has recorded: that is counted already.
      if !state.isAgreed { (state.isAgreed, state.earlier) = (true, record) }
      // Nobody knows what came of the last write.
      state.recorded = ReplicationCounts()
    }
    return record.flatMap { Self.remoteSequence($0.lastSequence) }
  }

  /// A recorded sequence. A plain number was recorded as a text.
  private static func remoteSequence(_ value: JSONValue) -> RemoteSequence? {
    if let text = value.string, UInt64(text) != nil { return text == "0" ? nil : RemoteSequence(json: text) }
    guard value != 0, let json = try? value.canonicalJSON() else { return nil }
    return RemoteSequence(json: json)
  }

  func record(at sequence: RemoteSequence?) -> JSONObject? {
    nextRecord(at: Self.sequence(sequence)).map { JSONObject($0.members) }
  }
}
