import Storage

/// The depth of revision trees, and the index generation at which it was read. A transaction that sees another
/// generation reads it again: another process may have set it.
struct KnownTreeDepth: Sendable {
  let generation: UInt32
  let depth: Int

  init(generation: UInt32, depth: Int) {
    self.generation = generation
    self.depth = depth
  }

  /// Reads the depth that holds in `transaction`. The options come before what is stored.
  init(
    _ generation: UInt32, _ options: DocumentStore.Options, _ transaction: any ReadTransaction,
    _ meta: Keyspace
  ) throws {
    let depth = try options.maximumTreeDepth ?? DocumentStore.storedTreeDepth(transaction, meta)
    self.init(generation: generation, depth: depth ?? DocumentStore.defaultTreeDepth)
  }
}

extension DocumentStore {
  /// The default number of revisions that are kept of each branch.
  package static let defaultTreeDepth = 20

  /// The number of revisions that are kept of each branch, as the last transaction of this process found it.
  package var maximumTreeDepth: Int { context.treeDepth.depth }

  /// Returns the number of revisions that are kept of each branch now.
  package func currentTreeDepth() throws -> Int {
    try reading { transaction, context in try currentTreeDepth(transaction, context) }
  }

  /// Returns the number of revisions that are kept of each branch in a transaction.
  func currentTreeDepth(_ transaction: any ReadTransaction, _ context: Context) throws -> Int {
    let generation = try State(transaction, context.keyspaces.meta).indexGeneration
    guard generation != context.treeDepth.generation else { return context.treeDepth.depth }
    return try KnownTreeDepth(generation, options, transaction, context.keyspaces.meta).depth
  }

  /// Sets that number, for now and for later opens. 0 and less mean the default.
  package func setMaximumTreeDepth(_ depth: Int) throws {
    let depth = depth < 1 ? DocumentStore.defaultTreeDepth : min(depth, Int(Int32.max))
    guard !isInBatch else {
      throw StorageError(
        .nestedWrite, "the depth of revision trees can't be changed inside a batch", path: engine.location)
    }
    let generation = try writing { writer in
      try writer.checkWritable()
      let bytes = (0..<4).map { UInt8(truncatingIfNeeded: depth >> (24 - 8 * $0)) }
      try writer.transaction.put(DocumentStore.treeDepthKey, bytes, in: writer.keyspaces.meta)
      // Other processes read the depth again when the generation has changed.
      return try writer.nextIndexGeneration()
    }
    publish(KnownTreeDepth(generation: generation, depth: depth))
  }

  private static let treeDepthKey = Array("treeDepth".utf8)

  static func storedTreeDepth(_ transaction: any ReadTransaction, _ meta: Keyspace) throws -> Int? {
    guard let bytes = try transaction.bytes(treeDepthKey, in: meta) else { return nil }
    let depth = bytes.reduce(0) { $0 << 8 | Int($1) }
    guard bytes.count == 4, depth > 0, depth <= Int(Int32.max) else {
      throw DocumentError(.damaged, "the stored depth of revision trees can't be read")
    }
    return depth
  }
}
