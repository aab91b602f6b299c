import Bytes
import Storage

// The keyspace `purges` tells other processes and views of the last purges, which leave no other trace. It exists once
// the database was opened with `watchesOtherProcesses` or has had a view. Its keys are the numbers of the purges, from 1:
//
//   purge number:u64 big-endian → version:u8=1  kind:u8  writer:8 bytes  document ID
//   kind := 1 the document was purged | 2 it expired
//
// The purge of a branch is a change. Builds between two releases wrote an entry of kind 3 instead, which is read.
// A purge adds its entry in its own transaction, and removes the entry that is `PurgeRecord.kept` older, or in a database
// with views `PurgeRecord.keptForViews`: a view that is farther behind is built again. `writer` is
// a random number of the open database that purged, so that it doesn't hear of itself.

/// The recorded purges, as a reader finds them.
struct PurgeRecord {
  static let keyspace = "purges"
  /// The number of purges that are kept.
  static let kept: UInt64 = 1_024
  /// The number of purges that are kept in a database with the keyspace `views`.
  static let keptForViews: UInt64 = 65_536
  static let version: UInt8 = 1
  private static let headBytes = 10

  /// What was purged.
  enum Kind: UInt8 {
    case document = 1
    case expired = 2
    /// A branch of it was purged. Isn't written any more.
    case branch = 3
  }

  /// The number of the last purge, 0 if there is none.
  var newest: UInt64 = 0
  /// The purges by other processes, as notes for observers.
  var notes: [UInt8] = []
  /// Whether some purges aren't recorded any more, or can't be read.
  var isIncomplete = false

  /// Returns the number of the last purge.
  static func newest(_ transaction: any ReadTransaction) throws -> UInt64 {
    guard let keyspace = try transaction.keyspace(named: keyspace) else { return 0 }
    return try newest(transaction, keyspace)
  }

  static func newest(_ transaction: any ReadTransaction, _ keyspace: Keyspace) throws -> UInt64 {
    var newest: UInt64 = 0
    try transaction.scan(keyspace, .all, order: .descending, fetch: .keys) { key, _ in
      newest = StoredChange.sequence(of: key) ?? 0
      return false
    }
    return newest
  }

  /// Whether an entry is valid.
  static func isValid(_ key: RawSpan, _ value: RawSpan) -> Bool {
    guard let number = StoredChange.sequence(of: key), number > 0, value.byteCount > headBytes else {
      return false
    }
    return value.unsafeLoad(as: UInt8.self) == version
      && Kind(rawValue: value.unsafeLoad(fromByteOffset: 1, as: UInt8.self)) != nil
  }

  /// The ID of the document of an entry, nil if the entry is invalid.
  static func documentID(_ key: RawSpan, _ value: RawSpan) -> [UInt8]? {
    guard isValid(key, value) else { return nil }
    let id = [UInt8](copying: value.extracting(droppingFirst: headBytes))
    return id.withUnsafeBytes { DocumentID.isStorable($0) } ? id : nil
  }

  /// Reads the purges after number `begin` that another open database than `writer` made.
  init(
    after begin: UInt64, by writer: UInt64, _ transaction: any ReadTransaction,
    _ keyspaces: DocumentStore.Keyspaces
  ) throws {
    guard let keyspace = try transaction.keyspace(named: Self.keyspace) else { return }
    newest = try Self.newest(transaction, keyspace)
    guard newest > begin else { return }
    var entries: [(kind: Kind, id: [UInt8])] = []
    var next = begin + 1
    let lower = withSequenceKey(begin) { Array($0) }
    try transaction.scan(keyspace, KeyRange(lower: .exclusive(lower))) { key, value in
      guard Self.isValid(key, value),
        let kind = Kind(rawValue: value.unsafeLoad(fromByteOffset: 1, as: UInt8.self))
      else {
        isIncomplete = true
        return true
      }
      let number = StoredChange.sequence(of: key) ?? 0
      if number != next { isIncomplete = true }
      next = number + 1
      if value.unsafeLoadUnaligned(fromByteOffset: 2, as: UInt64.self) != writer {
        entries.append((kind, [UInt8](copying: value.extracting(droppingFirst: Self.headBytes))))
      }
      return true
    }
    var buffer = ByteBuffer()
    for entry in entries {
      try entry.id.withUnsafeBytes { id in
        guard DocumentID.isStorable(id) else {
          isIncomplete = true
          return
        }
        switch entry.kind {
        case .document, .expired:
          // A document that was made again since is reported with its save. Observers may have heard of that
          // already, so the purge would come too late.
          guard try !Self.exists(id, transaction, keyspaces) else { return }
          ChangeNotes.appendPurge(of: id, isExpired: entry.kind == .expired, to: &buffer)
        case .branch: break
        }
      }
    }
    notes = Array(buffer.bytes)
  }

  private static func exists(
    _ id: UnsafeRawBufferPointer, _ transaction: any ReadTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws -> Bool {
    for keyspace in [keyspaces.docs, keyspaces.deleted]
    where try transaction.read(id.bytes, in: keyspace, { _ in }) { return true }
    return false
  }
}

extension DocumentStore {
  /// Makes purges be recorded for other processes and for views, from now on and for good. Who derives data from documents calls it
  /// before the snapshot that the data is made of: a purge after that snapshot then leaves a record.
  package func recordPurges() throws {
    let isRecorded = try reading { transaction, _ in
      try transaction.keyspace(named: PurgeRecord.keyspace) != nil
    }
    guard !isRecorded else { return }
    try writing { writer in
      try writer.checkWritable()
      let transaction = try writer.transaction
      guard try transaction.keyspace(named: PurgeRecord.keyspace) == nil else { return }
      _ = try transaction.createKeyspace(PurgeRecord.keyspace, shape: .sequences)
      // Earlier purges of this batch weren't recorded. Later ones are.
      writer.recordedPurges = nil
    }
  }
}

extension DocumentWriter {
  /// The purges that the open transaction has recorded.
  struct RecordedPurges {
    var keyspace: Keyspace?
    var last: UInt64 = 0
    var kept = PurgeRecord.kept
    var numbers: ClosedRange<UInt64>?
  }

  /// Records a purge, if the database records them.
  func recordPurge(_ id: UnsafeRawBufferPointer, _ kind: PurgeRecord.Kind) throws {
    var recorded: RecordedPurges
    if let recordedPurges {
      recorded = recordedPurges
    } else {
      var found = RecordedPurges(keyspace: try transaction.keyspace(named: PurgeRecord.keyspace))
      if let keyspace = found.keyspace {
        found.last = try PurgeRecord.newest(transaction, keyspace)
        if try transaction.keyspace(named: DocumentStore.viewsKeyspace) != nil {
          found.kept = PurgeRecord.keptForViews
        }
      }
      recorded = found
    }
    defer { recordedPurges = recorded }
    guard let keyspace = recorded.keyspace, recorded.last < maximumSequence else { return }
    let number = recorded.last + 1
    other.removeAll()
    other.append(PurgeRecord.version)
    other.append(kind.rawValue)
    withUnsafeBytes(of: purgeWriter) { other.append($0) }
    other.append(id)
    try withSequenceKey(number) { try transaction.append($0, other.bytes, in: keyspace) }
    if number > recorded.kept { try deleteSequence(number - recorded.kept, in: keyspace) }
    recorded.last = number
    recorded.numbers = (recorded.numbers?.lowerBound ?? number)...number
  }
}
