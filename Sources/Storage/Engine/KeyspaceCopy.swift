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
  /// Bytes of keys and values in one transaction: as much as an engine holds easily, and in memory that is at hand.
  static let batchBytes = 4 << 20
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

  /// Copies everything, in as many transactions as it takes; returns what it has read, to hold the copy against. A
  /// thread of its own reads while this one writes. When it throws, `target` holds a part and is of no use. Throws
  /// `alreadyExists` when `target` has a keyspace.
  @discardableResult
  public func run() throws -> KeyspaceRecord {
    let keyspaces = try source.keyspaces().sorted { $0.value.number < $1.value.number }
      .map { (name: $0.key, keyspace: $0.value) }
    var copied = Copied()
    copied.progress.totalEntries = try keyspaces.reduce(0) {
      $0 + (try source.entryCount(of: $1.keyspace).estimate)
    }
    var copies: [Keyspace] = []
    try target.write { (transaction: any WriteTransaction) throws -> Void in
      guard try transaction.keyspaces().isEmpty else {
        throw StorageError(
          .alreadyExists, "a copy needs an empty file, and there are keyspaces", path: target.location)
      }
      copies = try keyspaces.map { try transaction.createKeyspace($0.name, shape: $0.keyspace.shape) }
    }
    var growths = 0
    while true {
      do {
        try copy(keyspaces, to: copies, &copied)
        break
      } catch let error as StorageError where error.code == .mapFull && growths < Self.maximumGrowths {
        // Reading begins again where the transaction began.
        growths += 1
      }
    }
    try onProgress(copied.progress)
    return copied.record
  }

  /// What is committed.
  private struct Copied {
    var progress = CopyProgress(entries: 0, bytes: 0, totalEntries: 0)
    var record = KeyspaceRecord()
    var next = ReadAhead.Position()
  }

  /// What one transaction has written. When it fails, none of it counts.
  private struct Batch {
    var progress: CopyProgress
    var pieces: [KeyspaceRecord.Piece] = []
    var next: ReadAhead.Position
    var isLast = false
  }

  private func copy(
    _ keyspaces: [(name: String, keyspace: Keyspace)], to copies: [Keyspace], _ copied: inout Copied
  ) throws {
    let entries = ReadAhead(source, keyspaces, from: copied.next)
    defer { entries.stop() }
    while true {
      var batch = Batch(progress: copied.progress, next: copied.next)
      try target.write { (transaction: any WriteTransaction) throws -> Void in
        try fill(transaction, copies, from: entries, &batch)
      }
      copied.progress = batch.progress
      copied.record.pieces += batch.pieces
      copied.next = batch.next
      if batch.isLast { return }
    }
  }

  /// Copies as much as one transaction takes, in whole pieces, or all that is left.
  private func fill(
    _ transaction: any WriteTransaction, _ copies: [Keyspace], from entries: ReadAhead, _ batch: inout Batch
  ) throws {
    let limit = batch.progress.bytes + Self.batchBytes
    var progress = batch.progress
    while let chunk = try entries.next() {
      defer { entries.giveBack(chunk) }
      let copy = copies[chunk.keyspace]
      try transaction.load(copy) { append in
        try chunk.forEach { key, value in
          try append(key.bytes, value.bytes)
          progress.entries += 1
          progress.bytes += key.count + value.count
          if progress.entries % Self.progressEntries == 0 { try onProgress(progress) }
        }
      }
      guard let piece = chunk.piece else { continue }
      batch.pieces.append(piece)
      batch.next = chunk.next
      batch.progress = progress
      if progress.bytes >= limit { return }
    }
    batch.isLast = true
  }
}
