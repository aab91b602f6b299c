import Storage

extension DocumentStore {
  /// All indexes, by name.
  public var indexes: [IndexRecord] {
    get throws { try reading { try self.indexCatalog($0, $1).records } }
  }

  /// Makes an index over all live documents, in place of one of that name with another definition. False when
  /// there is just that one already: then nothing is done.
  ///
  /// Throws `unknownIndexKind` when the database wasn't opened with that kind, and `invalidIndex` for a name that
  /// can't be one.
  @discardableResult
  public func createIndex(_ name: String, kind: String, definition: [UInt8]) throws -> Bool {
    try IndexRecord.check(name: name)
    let wanted = IndexRecord(name: name, kind: kind, number: 0, definition: definition)
    let kind = try options.kind(of: wanted)
    // Without a write: most databases are opened with all their indexes made.
    let found = try indexes.first { $0.name == name }
    if !isInBatch, let found, found.kind == wanted.kind, found.definition == definition { return false }
    return try writing { try $0.createIndex(name, kind, definition: definition) }
  }

  /// Removes an index. False when there is none of that name.
  @discardableResult
  public func deleteIndex(_ name: String) throws -> Bool { try writing { try $0.deleteIndex(name) } }

  /// Makes those indexes anew that hold something else than if they were made now, because a library that they depend on
  /// has changed; returns their names. Reads only when there is none. Those that can't be read or aren't of a known kind
  /// are left alone.
  @discardableResult
  public func renewIndexes() throws -> [String] {
    let outdated = try reading { transaction, context in
      try self.indexCatalog(transaction, context).records.filter { record in
        guard let kind = try? self.options.kind(of: record) else { return false }
        return (try? kind.isCurrent(record, in: transaction)) == false
      }
    }
    if outdated.isEmpty { return [] }
    return try writing { writer in
      var renewed: [String] = []
      // Another process may have been faster.
      for record in outdated where try writer.renewIndex(record) { renewed.append(record.name) }
      return renewed
    }
  }

  /// Proves every index against the documents of the check's snapshot.
  func checkIndexes(_ check: IntegrityCheck, _ context: Context) throws {
    let transaction = check.transaction
    var catalog = IndexCatalog.empty
    var keys = context.sharedKeys
    try check.part("indexes") {
      let state = try State(transaction, context.keyspaces.meta)
      keys = try sharedKeys(state.sharedKeyCount, transaction, context)
      catalog = try IndexCatalog.load(state.indexGeneration, transaction, context.keyspaces.meta)
      // A keyspace of no index is what a creation left, which can't be.
      for name in try transaction.keyspaces().keys.sorted()
      where name.hasPrefix("index.") && !catalog.records.contains(where: { $0.owns(keyspace: name) }) {
        try check.report("indexes", "the keyspace \(name) belongs to no index")
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

  /// Counts anew what planners go by; part of a compaction.
  public func refreshIndexStatistics() throws { try writing { try $0.refreshIndexStatistics() } }

  /// The indexes as `transaction` has them.
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
  /// In a batch, lets the indexes write what they keep in memory of the batch's changes until its end, so that a
  /// reader sees it; else nothing is done.
  public func writePendingIndexes() throws {
    if isOfBatch { try store.writer.writePendingIndexes() }
  }

  /// All indexes as the snapshot has them, by name. Fast: read again only when they have changed.
  public var indexes: [IndexRecord] { get throws { try indexCatalog.records } }

  /// A number that changes whenever an index is made or removed, by any process.
  public var indexGeneration: UInt32 { get throws { try state.indexGeneration } }

  /// Which indexes there are: what was learnt of them in one snapshot holds in every other of an equal version, on
  /// the same `engine`.
  public var indexVersion: IndexVersion {
    get throws {
      IndexVersion(
        generation: try state.indexGeneration, batch: isOfBatch ? store.writer.indexBatch : 0)
    }
  }

  /// The engine that is read: handles of keyspaces are its own, and a compaction may put another in its place.
  public var engine: any StorageEngine { get throws { try open().1.engine } }
}

/// Which indexes a snapshot has.
public struct IndexVersion: Hashable, Sendable {
  /// Changes whenever an index is made or removed, by any process.
  public let generation: UInt32
  /// 0 for a snapshot of what is committed. In a batch a number of its own: it may be undone, and another transaction
  /// may then use the generation for other indexes.
  public let batch: UInt64
}
