import Storage

/// The indexes that a writer maintains.
struct OpenIndexes {
  let catalog: IndexCatalog
  /// In the order of the catalog.
  let maintainers: [any IndexMaintainer]
  /// The lineage of the transaction that opened them (`WriteTransaction.lineage`). What they remember of the
  /// stored indexes holds only in transactions of the same lineage.
  let lineage: UInt64?
  /// Whether the open transaction has changed any of them.
  var isTouched = false
}

extension DocumentWriter {
  /// Keeps the maintainers of the last transaction if `transaction` continues where that one ended. Otherwise
  /// opens those of all indexes that `transaction` sees.
  func resumeIndexes(
    _ generation: UInt32, _ transaction: any WriteTransaction, _ context: DocumentStore.Context
  ) throws {
    if let indexes, let lineage = indexes.lineage, try lineage == transaction.lineage { return }
    try openIndexes(generation, transaction, context)
  }

  /// Opens maintainers for all indexes that `transaction` sees. Throws `unknownIndexKind` when the kind of
  /// one isn't known.
  private func openIndexes(
    _ generation: UInt32, _ transaction: any WriteTransaction, _ context: DocumentStore.Context
  ) throws {
    indexes = nil
    guard generation > 0 else { return }
    let catalog = try IndexCatalog.load(generation, transaction, context.keyspaces.meta)
    indexes = OpenIndexes(
      catalog: catalog,
      maintainers: try catalog.records.map { try options.kind(of: $0).open($0, in: transaction) },
      lineage: try transaction.lineage)
  }

  /// Updates every index after a write to a document. `old` or `new` is nil if there is no live body before
  /// or after it. Must not be called when the current body is unchanged.
  @inline(__always)
  func updateIndexes(
    _ id: UnsafeRawBufferPointer, old: UnsafeRawBufferPointer?, new: UnsafeRawBufferPointer?
  ) throws {
    if indexes == nil { return }
    try updateEachIndex(id, old: old, new: new)
  }

  @inline(never)
  private func updateEachIndex(
    _ id: UnsafeRawBufferPointer, old: UnsafeRawBufferPointer?, new: UnsafeRawBufferPointer?
  ) throws {
    guard old != nil || new != nil else { return }
    indexes?.isTouched = true
    guard let maintainers = indexes?.maintainers, !maintainers.isEmpty else { return }
    let change = try IndexedChange(documentID: id, old: old, new: new, sharedKeys: keys)
    let transaction = try transaction
    for maintainer in maintainers { try maintainer.update(change, in: transaction) }
  }

  /// Makes the indexes write their pending changes before the commit.
  func finishIndexes() throws {
    guard let indexes, indexes.isTouched else { return }
    for maintainer in indexes.maintainers { try maintainer.finish(in: transaction) }
  }

  /// Makes the indexes write their pending changes before they are read in the same transaction.
  func writePendingIndexes() throws {
    // The beginning of a scan writes pending changes, so none can be pending during it.
    guard let indexes, indexes.isTouched, indexes.maintainers.contains(where: \.hasPendingChanges) else {
      return
    }
    try checkWritable()
    try mutating { for maintainer in indexes.maintainers { try maintainer.finish(in: transaction) } }
  }

  // MARK: Creating and removing

  /// Creates an index in place of one with the same name. Returns false, and changes nothing, if the same
  /// index exists.
  func createIndex(_ name: String, _ kind: any IndexKind, definition: [UInt8]) throws -> Bool {
    try checkWritable()
    if let old = indexes?.catalog.records.first(where: { $0.name.hasSameBytes(as: name) }) {
      if old.kind == kind.name, old.definition == definition { return false }
      _ = try deleteIndex(name)
    }
    try writePending()
    return try mutating {
      let generation = try nextIndexGeneration()
      let record = IndexRecord(name: name, kind: kind.name, number: generation, definition: definition)
      try transaction.put(IndexRecord.key(name), record.encoded, in: keyspaces.meta)
      let sharedKeys = keys.snapshot()
      try kind.create(record, of: IndexedDocuments(transaction, keyspaces.docs, sharedKeys), in: transaction)
      try reopenIndexes(generation)
      return true
    }
  }

  /// Removes the index and its keyspaces. Returns false if there is none with this name.
  func deleteIndex(_ name: String) throws -> Bool {
    try checkWritable()
    guard let record = indexes?.catalog.records.first(where: { $0.name.hasSameBytes(as: name) }) else {
      return false
    }
    return try mutating {
      for (name, keyspace) in try transaction.keyspaces() where record.owns(keyspace: name) {
        try transaction.dropKeyspace(keyspace)
      }
      _ = try IndexRecord.key(name).withUnsafeBytes { try transaction.delete($0, in: keyspaces.meta) }
      try reopenIndexes(try nextIndexGeneration())
      return true
    }
  }

  /// Rebuilds an index with its own definition. Returns false if another index has its name by now.
  func renewIndex(_ record: IndexRecord) throws -> Bool {
    try checkWritable()
    guard let found = indexes?.catalog.records.first(where: { $0.name.hasSameBytes(as: record.name) }),
      found.number == record.number
    else { return false }
    let kind = try options.kind(of: record)
    _ = try deleteIndex(record.name)
    return try createIndex(record.name, kind, definition: record.definition)
  }

  /// Tells everybody who has read what belongs to the index generation to read it again.
  func nextIndexGeneration() throws -> UInt32 {
    guard let generation = state?.indexGeneration, generation < .max else {
      throw DocumentError(.damaged, "the number of changes to indexes has reached its limit")
    }
    state?.indexGeneration = generation + 1
    hasChangedIndexes = true
    return generation + 1
  }

  /// Opens the indexes again. Later writes of the same transaction update the current set of indexes.
  private func reopenIndexes(_ generation: UInt32) throws {
    guard let context else { return }
    // Pending changes of removed indexes are dropped with them. Those of the remaining indexes are written.
    let kept = indexes
    if let kept, kept.isTouched {
      let names = Set(try transaction.keyspaces().keys)
      for (record, maintainer) in zip(kept.catalog.records, kept.maintainers)
      where names.contains(record.keyspaceName) {
        try maintainer.finish(in: transaction)
      }
    }
    try openIndexes(generation, transaction, context)
    indexes?.isTouched = kept?.isTouched ?? false
  }

  // MARK: Statistics

  /// Recounts the statistics that query planners use.
  func refreshIndexStatistics() throws {
    try checkWritable()
    guard let indexes else { return }
    try writePending()
    try mutating {
      for maintainer in indexes.maintainers { try maintainer.refreshStatistics(in: transaction) }
    }
  }
}

extension DocumentStore.Options {
  /// Returns the kind of an index. Throws `unknownIndexKind`.
  func kind(of index: IndexRecord) throws -> any IndexKind {
    guard let kind = indexKinds.first(where: { $0.name == index.kind }) else {
      let known = indexKinds.map(\.name).sorted().joined(separator: ", ")
      throw DocumentError(
        .unknownIndexKind,
        "the index \"\(index.name)\" has the kind \"\(index.kind)\", which this program can't maintain (known:"
          + " \(known.isEmpty ? "none" : known)): open the database for reading only, or with the program that made the index"
      )
    }
    return kind
  }
}
