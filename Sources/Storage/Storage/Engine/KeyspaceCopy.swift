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
  private let resumes: Bool
  private let onProgress: (CopyProgress) throws -> Void

  /// Prepares a copy of `source` into `target`, which must have no keyspaces, unless `resumes`: then it may have what an
  /// interrupted copy has left, of this snapshot or of any other one.
  ///
  /// `onProgress` is called about every thousand entries. An error that it throws ends the copy.
  package init(
    from source: any ReadTransaction, to target: any StorageEngine, resumes: Bool = false,
    onProgress: @escaping (CopyProgress) throws -> Void = { _ in }
  ) {
    self.source = source
    self.target = target
    self.resumes = resumes
    self.onProgress = onProgress
  }

  /// Copies everything, in as many transactions as needed. Returns a record of what was read, to verify the
  /// copy with.
  ///
  /// A separate thread reads while the calling thread writes. Throws `alreadyExists` if `target` has a
  /// keyspace. After any other error `target` holds part of the data. Nothing but a copy that resumes can use it.
  ///
  /// A copy that resumes reads the source and the target from their beginning. It keeps the pieces of the target that are
  /// equal, up to the first one that isn't. It removes what follows, and copies the rest.
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
      let found = try transaction.keyspaces()
      guard resumes || found.isEmpty else {
        throw StorageError(
          .alreadyExists, "a copy needs an empty file, but this file has keyspaces", path: target.location)
      }
      let shapes = Dictionary(keyspaces.map { ($0.name, $0.keyspace.shape) }, uniquingKeysWith: { $1 })
      for (name, keyspace) in found where shapes[name] != keyspace.shape {
        try transaction.dropKeyspace(keyspace)
      }
      copies = try keyspaces.map { try transaction.createKeyspace($0.name, shape: $0.keyspace.shape) }
    }
    if resumes {
      try keep(keyspaces, in: copies, &copied)
      try growing {
        try target.write { (transaction: any WriteTransaction) throws -> Void in
          try cut(transaction, copies, from: copied.next)
        }
      }
    }
    // The next attempt reads again from the end of the last commit.
    try growing { try copy(keyspaces, to: copies, &copied) }
    try onProgress(copied.progress)
    return copied.record
  }

  /// Runs `body` again while the map of the target is full.
  private func growing(_ body: () throws -> Void) throws {
    var growths = 0
    while true {
      do { return try body() } catch let error as StorageError
        where error.code == .mapFull && growths < Self.maximumGrowths
      {
        growths += 1
      }
    }
  }

  // MARK: What is there already

  /// Finds the first piece of the source that the target doesn't have.
  private func keep(
    _ keyspaces: [(name: String, keyspace: Keyspace)], in copies: [Keyspace], _ copied: inout Copied
  ) throws {
    let entries = ReadAhead(source, keyspaces, from: copied.next)
    defer { entries.stop() }
    try target.read { there in
      while let chunk = try entries.next() {
        defer { entries.giveBack(chunk) }
        guard let piece = chunk.piece else { continue }
        guard try EntryDigest.of(piece.range, in: copies[chunk.keyspace], there).isSame(as: piece.digest)
        else { return }
        copied.record.pieces.append(piece)
        copied.next = chunk.next
        copied.progress.entries += piece.digest.entries
        copied.progress.bytes += piece.digest.bytes
        try onProgress(copied.progress)
      }
    }
  }

  /// Removes everything behind a position.
  private func cut(
    _ transaction: any WriteTransaction, _ copies: [Keyspace], from position: ReadAhead.Position
  ) throws {
    for index in position.keyspace..<max(position.keyspace, copies.count) {
      let lower = index == position.keyspace ? position.lower : .unbounded
      try transaction.deleteRange(KeyRange(lower: lower), in: copies[index])
    }
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
