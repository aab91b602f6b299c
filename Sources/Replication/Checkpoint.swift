import Fleece
import Storage

/// How far a replication has come, as both sides store it: `{"local":N,"remote":X}`.
struct Checkpoint: Sendable, Equatable {
  /// All local changes up to this sequence are pushed, or needn't be.
  var pushed: UInt64 = 0
  /// All remote changes up to this one are stored here, or aren't wanted. Nil: none.
  var pulled: RemoteSequence?
  /// Where earlier sessions were, the latest first. Peers of the CouchDB family keep them, so that a side that was restored
  /// from a backup finds the last place that both know.
  var pushes: [SavedPlace] = []
  var pulls: [SavedPlace] = []

  init(pushed: UInt64 = 0, pulled: RemoteSequence? = nil) {
    self.pushed = pushed
    self.pulled = pulled
  }

  /// Reads a stored checkpoint. What can't be read counts as missing.
  init(json: [UInt8]) {
    guard let value = try? json.withUnsafeBytes({ try JSONValue(json: $0) }), let object = value.object else {
      return
    }
    if let local = object["local"]?.int, local > 0 { pushed = UInt64(local) }
    if let remote = object["remote"], remote != .null, let text = try? remote.canonicalJSON(), text != "0" {
      pulled = RemoteSequence(json: text)
    }
    pushes = SavedPlace.all(object["pushes"])
    pulls = SavedPlace.all(object["pulls"])
  }

  /// Whether both say the same of how far the replication has come.
  func isAt(_ other: Checkpoint) -> Bool { pushed == other.pushed && pulled == other.pulled }

  /// The JSON of the checkpoint. What is zero or missing is left out.
  func json(time: Int?) -> [UInt8] {
    var members: [String] = []
    if let time { members.append("\"time\":\(time)") }
    if pushed > 0 { members.append("\"local\":\(pushed)") }
    if let pulled { members.append("\"remote\":\(pulled.json)") }
    if !pushes.isEmpty { members.append("\"pushes\":\(SavedPlace.json(pushes))") }
    if !pulls.isEmpty { members.append("\"pulls\":\(SavedPlace.json(pulls))") }
    return Array("{\(members.joined(separator: ","))}".utf8)
  }
}

/// The checkpoint of a session, and how far it is saved.
struct Checkpointer {
  /// The ID under which it is saved.
  let id: String
  /// The ID under which it is looked for: that of the database of which this one is a copy, if it has no own one.
  let askedID: String
  /// What is reached now.
  var pushed: UInt64 = 0
  var pulled: RemoteSequence?
  /// What is saved on both sides.
  var saved = Checkpoint()
  /// The revision on the other side, empty if there is none.
  var revision = ""
  /// Whether the other side has told its revision.
  var canSave = false
  var isSaving: Bool = false
  var isScheduled = false
  var token: TimerToken?
  /// How often in sequence the other side had another revision.
  var conflicts = 0
  /// Whether an earlier session of the same start began from zero already.
  var wasReset = false
  /// Names this session among the saved places.
  let session = SavedPlace.newSession()
  /// The saved places of earlier sessions, which both sides know.
  var pushes: [SavedPlace] = []
  var pulls: [SavedPlace] = []

  init(id: String, askedID: String) {
    self.id = id
    self.askedID = askedID
  }

  var current: Checkpoint { Checkpoint(pushed: pushed, pulled: pulled) }
  var isDirty: Bool { !isSaving && !current.isAt(saved) }

  /// What is saved next.
  func next(keepsPlaces: Bool) -> Checkpoint {
    var checkpoint = current
    guard keepsPlaces else { return checkpoint }
    if pushed > 0 { checkpoint.pushes = SavedPlace.adding(session, "\(pushed)", to: pushes) }
    if let pulled { checkpoint.pulls = SavedPlace.adding(session, pulled.json, to: pulls) }
    return checkpoint
  }

  /// Compares the stored checkpoints of both sides. A field that differs begins again. Returns whether they are equal.
  mutating func agree(local: Checkpoint?, remote: StoredCheckpoint?) -> Bool {
    canSave = true
    if id == askedID { revision = remote?.revision ?? "" }
    guard let local else { return false }
    let there = remote.map { Checkpoint(json: $0.json) } ?? Checkpoint()
    (pushes, pulls) = (local.pushes, local.pulls)
    if local.pushed == there.pushed {
      pushed = local.pushed
    } else {
      let common = SavedPlace.common(local.pushes, there.pushes)
      pushed = common.flatMap { UInt64($0.sequence) } ?? 0
    }
    if local.pulled == there.pulled {
      pulled = local.pulled
    } else {
      pulled = SavedPlace.common(local.pulls, there.pulls).map { RemoteSequence(json: $0.sequence) }
    }
    if local.isAt(there), id == askedID { saved = local }
    return local.isAt(there)
  }
}
