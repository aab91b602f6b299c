import Bytes
import Documents
import Touchstone

/// The push of a session: changes are read in order, proposed in lists, and sent in parts.
struct PushState {
  /// A change on its way.
  struct Item: Sendable {
    var change: PushChange
    let ticket: Int
    /// How often the peer refused it as a conflict.
    var attempts = 0
    /// Whether it was proposed without naming a revision of the peer.
    var hasTriedAlone = false
    /// The revision that it had named before.
    var refusedParent: String?
    /// Whether the peer has refused it with HTTP 403.
    var wasForbidden = false
  }

  /// The most changes of a list.
  static let listCount = 200
  /// The most lists without an answer.
  static let listsInFlight = 5
  /// The most bytes that are sent and not answered, and those of a part.
  static let bytesInFlight = 4 << 20
  static let bytesTogether = 1 << 20

  var progress: SequenceQueue<UInt64>
  /// The last sequence that was read.
  var scanned: UInt64
  /// The last sequence that a one-shot push reads. Nil: no limit.
  var end: UInt64?
  var lists = 0
  var proposed = 0
  var queued: [Item] = []
  var head = 0
  var sent = 0
  var sentBytes = 0
  var maximumHistory = 20
  /// The documents on their way, each with the newer change that waits for it. Where all leaves go, each has its own way.
  var active: [ByteString: Item?] = [:]
  /// Changes to propose before others: of documents whose earlier change has just been done, and of those of which the
  /// pull has found out what the peer has.
  var again: [Item] = []
  /// How often a change is proposed that the peer refuses as a conflict.
  static let attempts = 3
  /// The latest refused change of each document that the pull may settle (`Session+Refusals.swift`).
  var refused: [ByteString: Refused] = [:]
  /// Changes that were refused with HTTP 403 for the first time. They are `active`.
  var forbidden: [Item] = []

  /// A change that the peer refuses as a conflict.
  struct Refused {
    let item: Item
    let error: ReplicationError
    /// Whether the peer may have no such document, as far as it has said.
    let mayBeGone: Bool
    /// Whether it was marked as the peer's revision although the peer says otherwise: one of the two was restored from an older copy.
    let isMarked: Bool
    /// Whether the checkpoint names it, and so passes its sequence.
    let isRemembered: Bool
  }
  /// The most refused changes that are kept. No other changes are read meanwhile.
  static let maximumRefused = 1_000

  /// Documents that were pulled meanwhile (`Session+Crossings.swift`).
  var crossings = Crossings()
  /// Whether there may be changes after `scanned`.
  var mayHaveMore = true
  /// Whether revisions were sent.
  var hasSent = false
  /// Whether the end of the pull was noticed.
  var hasSeenPull = false
  var observer: ChangeObserver?

  init(after sequence: UInt64) {
    progress = SequenceQueue(reached: sequence)
    scanned = sequence
  }

  var isIdle: Bool { !mayHaveMore && active.isEmpty && lists == 0 && again.isEmpty }
  /// Whether it reads no more changes before some of the refused ones are settled, and nothing else is on its way.
  var isFull: Bool {
    refused.count >= Self.maximumRefused && active.count == forbidden.count && lists == 0 && again.isEmpty
  }
}
