import Documents
import Fleece
import Storage

/// How far a replication has come, as both sides store it: `{"local":N,"remote":X}`.
struct Checkpoint: Sendable, Equatable {
  /// All local changes up to this sequence are pushed, or needn't be.
  var pushed: UInt64 = 0
  /// All remote changes up to this one are stored here, or aren't wanted. Nil: none.
  var pulled: RemoteSequence?
  /// Where this and earlier sessions were, the latest first. A side that was restored from an older copy, or that has lost the
  /// answer to the last save, finds the last place that both know. Those of Couchbase Lite have none.
  var pushes: [SavedPlace] = []
  var pulls: [SavedPlace] = []
  /// What is marked of changes up to this local sequence may not be there: the sides had disagreed, or there was no checkpoint, and
  /// not all these changes were proposed since. Zero: all marks are right.
  var unproven: UInt64 = 0
  /// Changes that this one passes although the other side has refused them. Only what is stored here names them.
  var conflicts = OpenConflicts()

  init(pushed: UInt64 = 0, pulled: RemoteSequence? = nil) {
    self.pushed = pushed
    self.pulled = pulled
  }

  /// Reads a stored checkpoint. What can't be read counts as missing: then no mark is trusted.
  init(json: [UInt8]) {
    guard let value = try? json.withUnsafeBytes({ try JSONValue(json: $0) }), let object = value.object else {
      unproven = .max
      return
    }
    if let local = object["local"]?.int, local > 0 { pushed = UInt64(local) }
    if let remote = object["remote"], remote != .null, let text = try? remote.canonicalJSON(), text != "0" {
      pulled = RemoteSequence(json: text)
    }
    pushes = SavedPlace.all(object["pushes"])
    pulls = SavedPlace.all(object["pulls"])
    unproven = Self.unproven(object["unproven"] ?? .null)
    conflicts = OpenConflicts(object["conflicts"])
  }

  /// Reads the last sequence whose mark isn't trusted. `true` says that no mark is, and so does what can't be a sequence: nothing is
  /// believed by mistake.
  private static func unproven(_ value: JSONValue) -> UInt64 {
    if value.isNull || value.bool == false || value.double == 0 { return 0 }
    return value.uint ?? .max
  }

  /// Whether both say the same of how far the replication has come.
  func isAt(_ other: Checkpoint) -> Bool { pushed == other.pushed && pulled == other.pulled }

  /// The JSON of the checkpoint. What is zero or missing is left out. The other side isn't told of conflicts.
  func json(time: Int?, forPeer: Bool = false) -> [UInt8] {
    var members: [String] = []
    if let time { members.append("\"time\":\(time)") }
    if pushed > 0 { members.append("\"local\":\(pushed)") }
    if let pulled { members.append("\"remote\":\(pulled.json)") }
    if unproven > 0 { members.append("\"unproven\":\(unproven == .max ? "true" : "\(unproven)")") }
    if !pushes.isEmpty { members.append("\"pushes\":\(SavedPlace.json(pushes))") }
    if !pulls.isEmpty { members.append("\"pulls\":\(SavedPlace.json(pulls))") }
    if !forPeer, !conflicts.isEmpty { members.append("\"conflicts\":\(conflicts.json)") }
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
  /// What is stored here, and under which ID; nil if there is nothing.
  var stored: (id: String, checkpoint: Checkpoint)?
  /// Whether something was marked since what is saved, or is being saved, was decided. The other side may be restored to that place.
  var hasMarked = false
  /// The last local sequence whose mark isn't trusted, in this session or the next one. Only equal checkpoints make it lower.
  var unproven = UInt64.max
  /// The conflicts that the next checkpoint names.
  var openConflicts = OpenConflicts()
  /// Those that this start of the replicator has told.
  var told = ToldConflicts()
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
  /// Names this session in what it saves.
  let session = SavedPlace.newSession()
  /// The saved places of earlier sessions, which both sides know.
  var pushes: [SavedPlace] = []
  var pulls: [SavedPlace] = []

  init(id: String, askedID: String) {
    self.id = id
    self.askedID = askedID
  }

  /// Reads what is stored here: the own checkpoint, or else that of the database of which this one is a copy.
  func readStored(_ store: DocumentStore) throws -> (id: String, checkpoint: Checkpoint)? {
    for id in [id, askedID] {
      if let json = try store.syncCheckpoint(id) { return (id, Checkpoint(json: json)) }
    }
    return nil
  }

  var current: Checkpoint { Checkpoint(pushed: pushed, pulled: pulled) }
  var isDirty: Bool {
    !isSaving
      && (!current.isAt(saved) || unproven != saved.unproven || hasMarked || openConflicts != saved.conflicts)
  }

  /// What is saved next, with at most so many places.
  func next(places: Int) -> Checkpoint {
    var checkpoint = current
    checkpoint.unproven = unproven
    checkpoint.conflicts = openConflicts
    if pushed > 0 { checkpoint.pushes = SavedPlace.adding(session, "\(pushed)", to: pushes, maximum: places) }
    if let pulled { checkpoint.pulls = SavedPlace.adding(session, pulled.json, to: pulls, maximum: places) }
    return checkpoint
  }

  /// Compares the stored checkpoints of both sides. A field that differs begins again, and then no mark is trusted.
  ///
  /// Equal numbers that different sessions have saved are a coincidence: a side that was restored from an older copy counts its
  /// sequences once more.
  mutating func agree(local: Checkpoint?, remote: StoredCheckpoint?) {
    canSave = true
    if id == askedID { revision = remote?.revision ?? "" }
    guard let local else { return }
    let there = remote.map { Checkpoint(json: $0.json) } ?? Checkpoint()
    // Places that the other side doesn't know are forgotten: what is saved next there mustn't name them.
    func common(_ here: [SavedPlace], _ there: [SavedPlace], isEqual: Bool, _ sequence: String?)
      -> (sequence: String?, places: [SavedPlace])
    {
      if isEqual, here.isEmpty || there.isEmpty { return (sequence, here) }
      let places = SavedPlace.common(here, there)
      return (places.first?.sequence, places)
    }
    let (pushed, pushes) = common(
      local.pushes, there.pushes, isEqual: local.pushed == there.pushed, "\(local.pushed)")
    let (pulled, pulls) = common(
      local.pulls, there.pulls, isEqual: local.pulled == there.pulled, local.pulled?.json)
    self.pushed = pushed.flatMap { UInt64($0) } ?? 0
    self.pulled = pulled.map { RemoteSequence(json: $0) }
    (self.pushes, self.pulls) = (pushes, pulls)
    let isAgreed = current.isAt(local) && local.isAt(there)
    guard isAgreed else { return }
    unproven = local.unproven
    if id == askedID { saved = local }
  }
}
