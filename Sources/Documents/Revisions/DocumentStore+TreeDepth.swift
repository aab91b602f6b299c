import Storage

extension DocumentStore {
  /// The default number of revisions that are kept of each branch.
  package static let defaultTreeDepth = 20

  /// The number of revisions that are kept of each branch.
  package var maximumTreeDepth: Int { context.maximumTreeDepth }

  /// Sets that number, for now and for later opens. 0 and less mean the default.
  package func setMaximumTreeDepth(_ depth: Int) throws {
    let depth = depth < 1 ? DocumentStore.defaultTreeDepth : min(depth, Int(Int32.max))
    guard !isInBatch else {
      throw StorageError(
        .nestedWrite, "the depth of revision trees can't be changed inside a batch", path: engine.location)
    }
    try writing { writer in
      try writer.checkWritable()
      let bytes = (0..<4).map { UInt8(truncatingIfNeeded: depth >> (24 - 8 * $0)) }
      try writer.transaction.put(DocumentStore.treeDepthKey, bytes, in: writer.keyspaces.meta)
    }
    publish(maximumTreeDepth: depth)
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
