import Bytes
import Storage

// The notes that a transaction takes of its changes for observers. They are bytes, so that a writer allocates
// no objects.
//
//   notes := note*
//   note  := flags:u8  sequence:varint  length:varint  document ID  [generation:varint  length:varint  suffix]
//   flags := 1 deleted | 2 conflicted | 4 from sync | 0x10 purged | 0x20 expired
//
// The revision (in the format of RevisionID.swift) is the current one. A note of a purged document has no
// revision, and its sequence is 0. Notes exist only in memory.

/// A note in place.
struct ChangeNote {
  static let purged: UInt8 = 0x10
  static let expired: UInt8 = 0x20

  let flags: UInt8
  let sequence: UInt64
  let id: UnsafeRawBufferPointer
  let revision: StoredRevisionID?

  /// Whether the document was purged. The change isn't among the stored ones.
  var isPurge: Bool { flags & ChangeNote.purged != 0 }

  init?(_ reader: inout ByteReader) {
    guard let flags = reader.byte(), let sequence = reader.varint(), let length = reader.varint(),
      length <= UInt64(DocumentID.maximumStoredBytes), let id = reader.bytes(Int(length))
    else { return nil }
    self.flags = flags
    self.sequence = sequence
    // Valid as long as the notes, inside the closure that reads them.
    self.id = id.withUnsafeBytes { $0 }
    if flags & ChangeNote.purged != 0 {
      revision = nil
    } else {
      guard let revision = StoredRevisionID(&reader) else { return nil }
      self.revision = revision
    }
  }

  var change: DocumentChange {
    let recordFlags = DocumentRecord.Flags(rawValue: flags)
    return DocumentChange(
      kind: flags & ChangeNote.expired != 0 ? .expired : isPurge ? .purged : .saved,
      documentID: String(decoding: id, as: UTF8.self),
      revisionID: revision.map { RevisionID(generation: $0.generation, suffix: $0.suffix.text) },
      sequence: sequence, isDeleted: recordFlags.contains(.deleted),
      isConflicted: recordFlags.contains(.conflicted), isFromSync: recordFlags.contains(.fromSync))
  }

  /// Calls `body` with each note and its bytes.
  static func forEach(
    _ notes: [UInt8], _ body: (ChangeNote, UnsafeRawBufferPointer) throws -> Void
  ) rethrows {
    try notes.withUnsafeBytes { bytes in
      var reader = ByteReader(bytes.bytes)
      var start = 0
      while reader.rest.byteCount > 0 {
        guard let note = ChangeNote(&reader) else { return }
        let end = bytes.count - reader.rest.byteCount
        try body(note, UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
        start = end
      }
    }
  }

  /// Returns the last change of each document in several lists of notes. Leaves out saves up to `sequence`.
  static func changes(of lists: [[UInt8]], after sequence: UInt64) -> [DocumentChange] {
    var changes: [DocumentChange] = []
    for notes in lists {
      forEach(notes) { note, _ in
        if note.isPurge || note.sequence > sequence { changes.append(note.change) }
      }
    }
    guard changes.count > 1 else { return changes }
    var seen: Set<ByteString> = []
    seen.reserveCapacity(changes.count)
    var latest: [DocumentChange] = []
    latest.reserveCapacity(changes.count)
    for change in changes.reversed() where seen.insert(ByteString(change.documentID)).inserted {
      latest.append(change)
    }
    latest.reverse()
    return latest
  }
}

/// The notes of a writer's current transaction.
struct ChangeNotes: ~Copyable {
  /// The maximum size of the notes in bytes. Beyond it, observers read the saves from the stored changes.
  static let maximumBytes = 1 << 20

  /// Whether there are observers. Otherwise only purges of documents are noted, because they aren't stored.
  private(set) var isCollecting = false
  private var all = ByteBuffer(capacity: 64)
  private var unstored = ByteBuffer(capacity: 64)
  private var isOverflown = false

  var hasUnstored: Bool { unstored.count > 0 }

  mutating func begin(isCollecting: Bool) {
    self.isCollecting = isCollecting
    isOverflown = false
    all.removeAll()
    unstored.removeAll()
  }

  /// Notes a change of a document whose current revision is `revision`.
  mutating func add(
    _ id: UnsafeRawBufferPointer, flags: DocumentRecord.Flags, _ sequence: UInt64,
    _ revision: StoredRevisionID
  ) {
    guard !isOverflown else { return }
    guard all.count < ChangeNotes.maximumBytes else {
      isOverflown = true
      return
    }
    ChangeNotes.append(id, flags.rawValue, sequence, revision, to: &all)
  }

  @inline(__always)
  static func append(
    _ id: UnsafeRawBufferPointer, _ flags: UInt8, _ sequence: UInt64, _ revision: StoredRevisionID,
    to notes: inout ByteBuffer
  ) {
    notes.append(flags)
    notes.append(varint: sequence)
    notes.append(varint: UInt64(id.count))
    notes.append(id)
    revision.append(to: &notes)
  }

  mutating func addPurge(_ id: UnsafeRawBufferPointer, isExpired: Bool) {
    ChangeNotes.appendPurge(of: id, isExpired: isExpired, to: &unstored)
    if isCollecting, !isOverflown { ChangeNotes.appendPurge(of: id, isExpired: isExpired, to: &all) }
  }

  static func appendPurge(of id: UnsafeRawBufferPointer, isExpired: Bool, to notes: inout ByteBuffer) {
    notes.append(ChangeNote.purged | (isExpired ? ChangeNote.expired : 0))
    notes.append(0)
    notes.append(varint: UInt64(id.count))
    notes.append(id)
  }

  /// Returns the commit for observers, nil if there is nothing to report. `isUnsequenced` tells that the
  /// transaction made changes without a sequence.
  func commit(
    after begin: UInt64, upTo end: UInt64, isUnsequenced: Bool, purges: ClosedRange<UInt64>?
  ) -> ObservedCommit? {
    guard end > begin || unstored.count > 0 || isUnsequenced else { return nil }
    return ObservedCommit(
      after: begin, upTo: end, notes: isCollecting && !isOverflown ? Array(all.bytes) : nil,
      unstored: Array(unstored.bytes), isUnsequenced: isUnsequenced, purges: purges)
  }
}

/// A transaction to be published to the observers.
final class ObservedCommit: @unchecked Sendable {
  enum Outcome { case open, committed, failed }

  /// The last sequence before the transaction and the last sequence including it.
  let begin, end: UInt64
  /// The notes of the transaction, in order. Nil if none were taken or there were too many. Then observers
  /// read the saves from the stored changes.
  let notes: [UInt8]?
  /// The notes that the stored changes don't cover.
  let unstored: [UInt8]
  /// Whether it made a change without a new sequence: of a body or of an expiration time.
  let isUnsequenced: Bool
  /// The numbers of the purges that it has recorded (PurgeRecord.swift).
  let purges: ClosedRange<UInt64>?
  /// Whether changes were missed that nothing tells of any more: another process purged too many documents.
  let isIncomplete: Bool
  /// Guarded by the lock of `ObserverNotifier`.
  var outcome = Outcome.open

  init(
    after begin: UInt64, upTo end: UInt64, notes: [UInt8]?, unstored: [UInt8], isUnsequenced: Bool = false,
    purges: ClosedRange<UInt64>? = nil, isIncomplete: Bool = false
  ) {
    self.isUnsequenced = isUnsequenced
    self.purges = purges
    self.isIncomplete = isIncomplete
    self.begin = begin
    self.end = end
    self.notes = notes
    self.unstored = unstored
  }
}
