import Logs
import Storage

extension DocumentStore {
  /// All indexes, ordered by name.
  package var indexes: [IndexRecord] {
    get throws { try reading { try self.indexCatalog($0, $1).records } }
  }

  /// Creates an index over all live documents. Throws `unknownIndexKind` when the database wasn't opened with
  /// that kind, and `invalidIndex` when the name is invalid.
  @discardableResult
  package func createIndex(_ name: String, kind: String, definition: [UInt8]) throws -> Bool {
    try IndexRecord.check(name: name)
    let wanted = IndexRecord(name: name, kind: kind, number: 0, definition: definition)
    let kind = try options.kind(of: wanted)
    // Checked without a write transaction: when a database is opened, its indexes usually exist already.
    let found = try indexes.first { $0.name.hasSameBytes(as: name) }
    if !isInBatch, let found, found.kind == wanted.kind, found.definition == definition { return false }
    let begin = LogClock.now
    let isNew = try writing { try $0.createIndex(name, kind, definition: definition) }
    if isNew {
      Log.write(
        .info, .index, logPath,
        "made the index '\(name)' of kind \(kind.name) in \(LogText.milliseconds(LogClock.now - begin))")
    }
    return isNew
  }

  /// Removes an index.
  @discardableResult
  package func deleteIndex(_ name: String) throws -> Bool {
    let isGone = try writing { try $0.deleteIndex(name) }
    if isGone { Log.write(.info, .index, logPath, "removed the index '\(name)'") }
    return isGone
  }

  /// Rebuilds the indexes whose content is outdated because a library that they depend on has changed.
  /// Returns their names. Only reads if there are none. Indexes that can't be read or whose kind isn't known
  /// are left unchanged.
  @discardableResult
  package func renewIndexes() throws -> [String] {
    let outdated = try reading { transaction, context in
      try self.indexCatalog(transaction, context).records.filter { record in
        guard let kind = try? self.options.kind(of: record) else { return false }
        return (try? kind.isCurrent(record, in: transaction)) == false
      }
    }
    if outdated.isEmpty { return [] }
    let begin = LogClock.now
    let renewed = try writing { writer in
      var names: [String] = []
      // Another process may have rebuilt it first.
      for record in outdated where try writer.renewIndex(record) { names.append(record.name) }
      return names
    }
    guard !renewed.isEmpty else { return [] }
    Log.write(
      .info, .index, logPath,
      "rebuilt \(renewed.map { "'\($0)'" }.joined(separator: ", ")) in \(LogText.milliseconds(LogClock.now - begin)), because a library that they depend on has changed"
    )
    return renewed
  }

  /// Verifies every index against the documents of the check's snapshot.
  func checkIndexes(_ check: IntegrityCheck, _ context: Context) throws {
    let transaction = check.transaction
    var catalog = IndexCatalog.empty
    var keys = context.sharedKeys
    try check.part("indexes") {
      let state = try State(transaction, context.keyspaces.meta)
      keys = try sharedKeys(state.sharedKeyCount, transaction, context)
      catalog = try IndexCatalog.load(state.indexGeneration, transaction, context.keyspaces.meta)
      // A keyspace without an index can only be the rest of an incomplete creation. That must not happen.
      for name in try transaction.keyspaces().keys.sorted()
      where name.hasPrefix("index.") && !catalog.records.contains(where: { $0.owns(keyspace: name) }) {
        try check.report("indexes", "there is no index for the keyspace \(name)")
      }
    }
    for record in catalog.records {
      let subject = "index '\(record.name)'"
      try check.part(subject) {
        let documents = IndexedDocuments(transaction, context.keyspaces.docs, keys)
        try options.kind(of: record).open(record, in: transaction).check(documents, check, subject: subject)
      }
    }
  }

  /// Recounts the statistics that query planners use. Part of a compaction.
  package func refreshIndexStatistics() throws { try writing { try $0.refreshIndexStatistics() } }

  /// Returns the indexes that `transaction` sees.
  func indexCatalog(_ transaction: any ReadTransaction, _ context: Context) throws -> IndexCatalog {
    if isInBatch, let generation = writer.state?.indexGeneration {
      if let catalog = writer.indexes?.catalog { return catalog }
      return try IndexCatalog.load(generation, transaction, context.keyspaces.meta)
    }
    let generation = try State(transaction, context.keyspaces.meta).indexGeneration
    if generation == 0 { return .empty }
    let known = lastCatalog.withLock { $0 }
    if known.generation == generation { return known }
    let catalog = try IndexCatalog.load(generation, transaction, context.keyspaces.meta)
    lastCatalog.withLock { $0 = catalog }
    return catalog
  }
}

extension DocumentSnapshot {
  /// In a batch, writes the index changes of the batch that are still in memory, so that a reader sees them.
  /// Outside of a batch it does nothing.
  package func writePendingIndexes() throws {
    if isOfBatch { try store.writer.writePendingIndexes() }
  }

  /// All indexes in the snapshot, ordered by name. Fast: they are read again only when they have changed.
  package var indexes: [IndexRecord] { get throws { try indexCatalog.records } }

  /// A number that changes whenever any process creates or removes an index.
  package var indexGeneration: UInt32 { get throws { try state.indexGeneration } }

  /// The version of the set of indexes. What was read about indexes in one snapshot holds in every other
  /// snapshot with an equal version on the same `engine`.
  package var indexVersion: IndexVersion {
    get throws {
      IndexVersion(
        generation: try state.indexGeneration, batch: isOfBatch ? store.writer.indexBatch : 0)
    }
  }

  /// The engine of the snapshot. Keyspace handles belong to one engine, and a compaction may replace the
  /// engine.
  package var engine: any StorageEngine { get throws { try open().1.engine } }
}

/// Identifies the set of indexes that a snapshot sees.
package struct IndexVersion: Hashable, Sendable {
  /// Changes whenever any process creates or removes an index.
  package let generation: UInt32
  /// 0 for a snapshot of the committed state. In a batch, a number unique to the batch: the batch may be
  /// rolled back, and another transaction may then use its generation for other indexes.
  package let batch: UInt64
}
