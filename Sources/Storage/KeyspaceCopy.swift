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

  /// Copies everything, in as many transactions as it takes; says what it was. When it throws, `target` holds a part
  /// and is of no use. Throws `alreadyExists` when `target` has a keyspace.
  @discardableResult
  public func run() throws -> CopyProgress {
    let keyspaces = try source.keyspaces().sorted { $0.value.number < $1.value.number }
    var progress = CopyProgress(
      entries: 0, bytes: 0, totalEntries: try keyspaces.reduce(0) { $0 + (try source.count(of: $1.value)) })
    var copies: [Keyspace] = []
    try target.write { (transaction: any WriteTransaction) throws -> Void in
      guard try transaction.keyspaces().isEmpty else {
        throw StorageError(
          .alreadyExists, "a copy needs an empty file, and there are keyspaces", path: target.path)
      }
      copies = try keyspaces.map { try transaction.createKeyspace($0.key, shape: $0.value.shape) }
    }
    for (keyspace, copy) in zip(keyspaces, copies) {
      try self.copy(keyspace.value, to: copy, &progress)
    }
    try onProgress(progress)
    return progress
  }

  private func copy(_ keyspace: Keyspace, to copy: Keyspace, _ progress: inout CopyProgress) throws {
    var lower = KeyRange.Bound.unbounded
    var growths = 0
    while true {
      // What a transaction that fails has counted doesn't count.
      var reached = progress
      var last: [UInt8]?
      do {
        try target.write { (transaction: any WriteTransaction) throws -> Void in
          last = try copyBatch(keyspace, after: lower, to: copy, transaction, &reached)
        }
      } catch let error as StorageError where error.code == .mapFull && growths < Self.maximumGrowths {
        growths += 1
        continue
      }
      progress = reached
      guard let last else { return }
      lower = .exclusive(last)
    }
  }

  /// Copies entries until a transaction has enough; returns the last one's key, nil when there are no more.
  private func copyBatch(
    _ keyspace: Keyspace, after lower: KeyRange.Bound, to copy: Keyspace, _ transaction: any WriteTransaction,
    _ progress: inout CopyProgress
  ) throws -> [UInt8]? {
    var entries = 0
    var bytes = 0
    var last: [UInt8]?
    let before = progress
    func report() throws {
      progress.entries = before.entries + entries
      progress.bytes = before.bytes + bytes
      try onProgress(progress)
    }
    try source.scan(keyspace, KeyRange(lower: lower)) { key, value in
      try transaction.append(key, value, in: copy)
      entries += 1
      bytes += key.count + value.count
      if entries % Self.progressEntries == 0 { try report() }
      guard bytes >= Self.batchBytes else { return true }
      last = [UInt8](key)
      return false
    }
    progress.entries = before.entries + entries
    progress.bytes = before.bytes + bytes
    return last
  }
}
