import Bytes
import Documents
import Fleece
import Touchstone

/// What a replication has done so far. A local document of each side that is here keeps it, with CouchDB's
/// members: the document's name is the ID of the replication. If neither side is here, both keep it, and it
/// is the checkpoint too.
struct ReplicationRecord: Sendable, Equatable {
  /// The most runs that are kept, as in CouchDB.
  static let mostRuns = 50
  /// The version of the IDs, as CouchDB numbers its own.
  static let version = 4

  let sessionID: String
  /// The sequence of the source that was reached.
  let lastSequence: JSONValue
  /// The runs, the newest first.
  let runs: [JSONValue]

  /// Makes the record of a run that follows those of another record.
  /// `before` is the sequence that the run has recorded last; nil if it hasn't recorded any.
  init(
    sessionID: String, began: Int, ended: Int, first: JSONValue, last: JSONValue, _ counts: ReplicationCounts,
    after earlier: ReplicationRecord?, before: JSONValue? = nil
  ) {
    self.sessionID = sessionID
    lastSequence = last
    var run = JSONObject(
      [
        ("session_id", .string(sessionID)), ("start_time", .string(ReplicationTime.http(began))),
        ("end_time", .string(ReplicationTime.http(ended))), ("start_last_seq", first),
        ("end_last_seq", last), ("recorded_seq", last),
      ] + counts.entry)
    if let before { run[Self.recordedBefore] = before }
    // A continuous run is recorded again and again.
    let others = (earlier?.runs ?? []).drop { $0["session_id"].string?.hasSameBytes(as: sessionID) ?? false }
    runs = [.object(run)] + others.prefix(Self.mostRuns - 1)
  }

  /// Reads a local document; nil if it isn't a record.
  init?(_ body: JSONValue) {
    guard let session = body["session_id"].string, let runs = body["history"].array,
      body["source_last_seq"].string != nil || body["source_last_seq"].int != nil
    else { return nil }
    sessionID = session
    lastSequence = body["source_last_seq"]
    self.runs = Array(runs.prefix(Self.mostRuns))
  }

  /// The members of the local document.
  var members: [(String, JSONValue)] {
    [
      ("session_id", .string(sessionID)), ("source_last_seq", lastSequence),
      ("replication_id_version", JSONValue(Self.version)), ("history", .array(runs)),
    ]
  }

  /// What was done until the last run ended.
  var counts: ReplicationCounts { runs.first.map { ReplicationCounts($0) } ?? ReplicationCounts() }

  // MARK: Two sides elsewhere

  /// The member of a run that has the sequence it had recorded before the last one. CouchDB doesn't know it.
  private static let recordedBefore = "recorded_seq_before"

  /// A place that a run has recorded.
  private struct Place: Hashable {
    let session: String
    let sequence: String
  }

  /// The places of a run, the latest first.
  private static func places(_ run: JSONValue) -> [Place] {
    guard let session = run["session_id"].string else { return [] }
    return ["recorded_seq", recordedBefore].compactMap { name in
      guard !run[name].isNull, let sequence = try? run[name].canonicalJSON() else { return nil }
      return Place(session: session, sequence: sequence)
    }
  }

  /// What both sides say, as far back as they say the same: one of them may be a new database, or restored
  /// from an older copy, or a server was killed before both were written. Nil if that is nothing. Unlike in
  /// CouchDB, a run counts as known to both only with the same sequence.
  init?(common source: JSONValue, _ target: JSONValue) {
    guard let source = ReplicationRecord(source), let target = ReplicationRecord(target) else { return nil }
    let known = Set(target.runs.flatMap(Self.places))
    for (index, run) in source.runs.enumerated() {
      guard let place = Self.places(run).first(where: known.contains),
        let sequence = try? JSONValue(json: place.sequence)
      else { continue }
      sessionID = place.session
      lastSequence = sequence
      runs = Array(source.runs[index...])
      return
    }
    return nil
  }

  // MARK: Where it is kept

  /// The record that all sides which are here agree on; nil if they don't: one of them is a new database
  /// then.
  static func read(_ id: String, from databases: [Database]) throws -> ReplicationRecord? {
    let records = try databases.map { try $0.localDocument(id).flatMap { ReplicationRecord($0.body) } }
    guard let first = records.first ?? nil, records.allSatisfy({ $0 == first }) else { return nil }
    return first
  }

  /// Stores the record.
  func save(_ id: String, to databases: [Database]) throws {
    let body = JSONValue.object(JSONObject(members))
    for database in databases { try database.saveLocalDocument(id, body, onConflict: .lastWriteWins) }
  }
}
