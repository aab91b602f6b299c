/// How far a copy or a comparison of keyspaces is.
public struct CopyProgress: Sendable, Equatable {
  /// Entries done.
  public var entries: Int
  /// Bytes of the keys and values of those entries.
  public var bytes: Int
  /// Entries that there are.
  public var totalEntries: Int
}

/// Copies all that one snapshot holds into another engine, whatever the two are: keyspaces with their names and
/// shapes, and every entry, in order of keys, as the engine that takes them likes it best.
///
/// Nothing is looked into: what lies above an engine comes along unread.
public struct KeyspaceCopy {
  /// Bytes of keys and values in one transaction: as much as an engine holds easily.
  static let batchBytes = 16 << 20
  /// Entries between two calls of `onProgress`.
  static let progressEntries = 1_024
  /// A full map grows between transactions, each time to twice its size.
  static let maximumGrowths = 24

  private let source: any ReadTransaction
  private let target: any StorageEngine
  private let onProgress: (CopyProgress) throws -> Void

  /// A copy of `source` into `target`, which has no keyspaces yet. What `onProgress` throws ends the copy; it is called
  /// every thousand entries or so.
  public init(
    from source: any ReadTransaction, to target: any StorageEngine,
    onProgress: @escaping (CopyProgress) throws -> Void = { _ in }
  ) {
    self.source = source
    self.target = target
    self.onProgress = onProgress
  }

  /// Copies everything, in as many transactions as it takes; returns what it has read, to hold the copy against. When it
  /// throws, `target` holds a part and is of no use. Throws `alreadyExists` when `target` has a keyspace.
  @discardableResult
  public func run() throws -> KeyspaceRecord {
    let keyspaces = try source.keyspaces().sorted { $0.value.number < $1.value.number }
    var progress = CopyProgress(
      entries: 0, bytes: 0, totalEntries: try keyspaces.reduce(0) { $0 + (try source.count(of: $1.value)) })
    var record = KeyspaceRecord()
    var copies: [Keyspace] = []
    try target.write { (transaction: any WriteTransaction) throws -> Void in
      guard try transaction.keyspaces().isEmpty else {
        throw StorageError(
          .alreadyExists, "a copy needs an empty file, and there are keyspaces", path: target.path)
      }
      copies = try keyspaces.map { try transaction.createKeyspace($0.key, shape: $0.value.shape) }
    }
    for (keyspace, copy) in zip(keyspaces, copies) {
      try self.copy(keyspace.key, keyspace.value, to: copy, &progress, &record)
    }
    try onProgress(progress)
    return record
  }

  private func copy(
    _ name: String, _ keyspace: Keyspace, to copy: Keyspace, _ progress: inout CopyProgress,
    _ record: inout KeyspaceRecord
  ) throws {
    var lower = KeyRange.Bound.unbounded
    var growths = 0
    while true {
      // What a transaction that fails has counted doesn't count.
      var batch = Batch(name: name, shape: keyspace.shape, lower: lower, progress: progress)
      do {
        try target.write { (transaction: any WriteTransaction) throws -> Void in
          try batch.fill(from: keyspace, of: source, to: copy, transaction, onProgress)
        }
      } catch let error as StorageError where error.code == .mapFull && growths < Self.maximumGrowths {
        growths += 1
        continue
      }
      progress = batch.progress
      record.pieces += batch.pieces
      guard !batch.isLast else { return }
      lower = batch.lower
    }
  }

  /// The entries of one transaction.
  private struct Batch {
    let name: String
    let shape: KeyspaceShape
    /// Behind which key the next entries are.
    var lower: KeyRange.Bound
    var progress: CopyProgress
    var pieces: [KeyspaceRecord.Piece] = []
    var isLast = true

    /// Copies entries until there are enough, or no more.
    mutating func fill(
      from keyspace: Keyspace, of source: any ReadTransaction, to copy: Keyspace,
      _ transaction: any WriteTransaction, _ onProgress: (CopyProgress) throws -> Void
    ) throws {
      let before = progress
      var pieces: [KeyspaceRecord.Piece] = []
      var lower = lower
      var digest = EntryDigest()
      var entries = 0
      var bytes = 0
      var isLast = true
      try source.scan(keyspace, KeyRange(lower: lower)) { key, value in
        try transaction.append(key, value, in: copy)
        digest.add(key, value)
        entries += 1
        if entries % KeyspaceCopy.progressEntries == 0 {
          try onProgress(
            CopyProgress(
              entries: before.entries + entries, bytes: before.bytes + bytes + digest.bytes,
              totalEntries: before.totalEntries))
        }
        guard digest.bytes >= KeyspaceRecord.pieceBytes else { return true }
        let last = [UInt8](key)
        pieces.append(piece(KeyRange(lower: lower, upper: .inclusive(last)), digest))
        lower = .exclusive(last)
        bytes += digest.bytes
        digest = EntryDigest()
        isLast = bytes < KeyspaceCopy.batchBytes
        return isLast
      }
      // The last piece reaches to the end: nothing may be behind it.
      if isLast { pieces.append(piece(KeyRange(lower: lower), digest)) }
      self.pieces = pieces
      self.lower = lower
      self.isLast = isLast
      progress.entries += entries
      progress.bytes += bytes + digest.bytes
    }

    private func piece(_ range: KeyRange, _ digest: EntryDigest) -> KeyspaceRecord.Piece {
      KeyspaceRecord.Piece(keyspace: name, shape: shape, range: range, digest: digest)
    }
  }
}
