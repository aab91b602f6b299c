/// The progress of a copy or a comparison of keyspaces.
package struct CopyProgress: Sendable, Equatable {
  /// The number of entries done.
  package var entries: Int
  /// The number of key and value bytes of those entries.
  package var bytes: Int
  /// The number of entries in total. It may be an estimate.
  package var totalEntries: Int
}

/// Copies all keyspaces of a snapshot into another engine.
///
/// The engines may be of different kinds. Names, shapes and all entries are copied, in the order of keys. The
/// target loads them in its fastest way. The copy doesn't interpret keys or values.
package struct KeyspaceCopy {
  /// The number of key and value bytes after which a transaction commits. An engine easily holds this much in
  /// one transaction.
  static let batchBytes = 4 << 20
  /// The number of entries between two calls of `onProgress`.
  static let progressEntries = 1_024
  /// The maximum number of retries after `mapFull`. A full map doubles between transactions.
  static let maximumGrowths = 24

  private let source: any ReadTransaction
  private let target: any StorageEngine
  private let onProgress: (CopyProgress) throws -> Void

  /// Prepares a copy of `source` into `target`, which must have no keyspaces.
  ///
  /// `onProgress` is called about every thousand entries. An error that it throws ends the copy.
  package init(
    from source: any ReadTransaction, to target: any StorageEngine,
    onProgress: @escaping (CopyProgress) throws -> Void = { _ in }
  ) {
    self.source = source
    self.target = target
    self.onProgress = onProgress
  }

  /// Copies everything, in as many transactions as needed. Returns a record of what was read, to verify the
  /// copy with.
  ///
  /// A separate thread reads while the calling thread writes. Throws `alreadyExists` if `target` has a
  /// keyspace. After any other error `target` holds part of the data and can't be used.
  @discardableResult
  package func run() throws -> KeyspaceRecord {
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
          .alreadyExists, "a copy needs an empty file, but this file has keyspaces", path: target.location)
      }
      copies = try keyspaces.map { try transaction.createKeyspace($0.name, shape: $0.keyspace.shape) }
    }
    var growths = 0
    while true {
      do {
        try copy(keyspaces, to: copies, &copied)
        break
      } catch let error as StorageError where error.code == .mapFull && growths < Self.maximumGrowths {
        // The next attempt reads again from the end of the last commit.
        growths += 1
      }
    }
    try onProgress(copied.progress)
    return copied.record
  }

  /// The committed part of the copy.
  private struct Copied {
    var progress = CopyProgress(entries: 0, bytes: 0, totalEntries: 0)
    var record = KeyspaceRecord()
    var next = ReadAhead.Position()
  }

  /// The writes of one transaction. They are discarded if it fails.
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

  /// Copies whole pieces up to the size of one transaction, or everything that is left.
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
