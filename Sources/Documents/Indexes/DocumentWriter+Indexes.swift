import Storage

/// The indexes that a writer keeps.
struct OpenIndexes {
  let catalog: IndexCatalog
  /// In the catalog's order.
  let maintainers: [any IndexMaintainer]
  /// Whose keyspaces the maintainers have handles of.
  let engine: any StorageEngine
  /// Whether the open transaction has changed anything of them.
  var isTouched = false
}

extension DocumentWriter {
  /// Sees to it that all indexes of the database as `transaction` has it are kept. Throws `unknownIndexKind` for one
  /// that can't be.
  func openIndexes(
    _ generation: UInt32, _ transaction: any WriteTransaction, _ context: DocumentStore.Context
  ) throws {
    if let indexes, indexes.catalog.generation == generation, indexes.engine === context.engine { return }
    indexes = nil
    guard generation > 0 else { return }
    let catalog = try IndexCatalog.load(generation, transaction, context.keyspaces.meta)
    indexes = OpenIndexes(
      catalog: catalog,
      maintainers: try catalog.records.map { try options.kind(of: $0).open($0, in: transaction) },
      engine: context.engine)
  }

  /// Tells every index what a write makes of a document. Either body is nil where there is no live one. Not to be
  /// called when the current body stays what it was.
  @inline(__always)
  func updateIndexes(
    _ id: UnsafeRawBufferPointer, old: UnsafeRawBufferPointer?, new: UnsafeRawBufferPointer?,
    _ transaction: any WriteTransaction
  ) throws {
    if indexes == nil { return }
    try updateEachIndex(id, old: old, new: new, transaction)
  }

  @inline(never)
  private func updateEachIndex(
    _ id: UnsafeRawBufferPointer, old: UnsafeRawBufferPointer?, new: UnsafeRawBufferPointer?,
    _ transaction: any WriteTransaction
  ) throws {
    guard old != nil || new != nil else { return }
    indexes?.isTouched = true
    guard let maintainers = indexes?.maintainers, !maintainers.isEmpty else { return }
    let change = try IndexedChange(documentID: id, old: old, new: new, sharedKeys: keys)
    for maintainer in maintainers { try maintainer.update(change, in: transaction) }
  }

  /// Lets the indexes write what they owe before the commit.
  func finishIndexes(_ transaction: any WriteTransaction) throws {
    guard let indexes, indexes.isTouched else { return }
    for maintainer in indexes.maintainers { try maintainer.finish(in: transaction) }
  }

  /// Lets the indexes write what they owe before they are read in the same transaction.
  func writePendingIndexes() throws {
    // Inside of a scan nothing can be pending that this scan's own beginning hasn't written.
    guard let indexes, indexes.isTouched, indexes.maintainers.contains(where: \.hasPendingChanges) else {
      return
    }
    let (transaction, _) = try open()
    try mutating { for maintainer in indexes.maintainers { try maintainer.finish(in: transaction) } }
  }

  // MARK: Making and removing

  /// Makes an index, in place of one of that name. False, and nothing done, when there is just that one.
  func createIndex(_ name: String, _ kind: any IndexKind, definition: [UInt8]) throws -> Bool {
    let (transaction, keyspaces) = try open()
    if let old = indexes?.catalog.records.first(where: { $0.name == name }) {
      if old.kind == kind.name, old.definition == definition { return false }
      _ = try deleteIndex(name)
    }
    return try mutating {
      let generation = try nextIndexGeneration()
      let record = IndexRecord(name: name, kind: kind.name, number: generation, definition: definition)
      try transaction.put(IndexRecord.key(name), record.encoded, in: keyspaces.meta)
      let sharedKeys = keys.snapshot()
      try kind.create(
        record, of: IndexedDocuments(transaction, keyspaces.docs, sharedKeys), in: transaction)
      try reopenIndexes(generation, transaction)
      return true
    }
  }

  /// Removes the index and its keyspaces. False when there is none of that name.
  func deleteIndex(_ name: String) throws -> Bool {
    let (transaction, keyspaces) = try open()
    guard let record = indexes?.catalog.records.first(where: { $0.name == name }) else { return false }
    return try mutating {
      for (name, keyspace) in try transaction.keyspaces() where record.owns(keyspace: name) {
        try transaction.dropKeyspace(keyspace)
      }
      _ = try IndexRecord.key(name).withUnsafeBytes { try transaction.delete($0, in: keyspaces.meta) }
      try reopenIndexes(try nextIndexGeneration(), transaction)
      return true
    }
  }

  /// Makes an index anew with its own definition. False when there is another of its name by now.
  func renewIndex(_ record: IndexRecord) throws -> Bool {
    _ = try open()
    guard let found = indexes?.catalog.records.first(where: { $0.name == record.name }),
      found.number == record.number
    else { return false }
    let kind = try options.kind(of: record)
    _ = try deleteIndex(record.name)
    return try createIndex(record.name, kind, definition: record.definition)
  }

  private func nextIndexGeneration() throws -> UInt32 {
    guard let generation = state?.indexGeneration, generation < .max else {
      throw DocumentError(.damaged, "the number of changes to indexes has reached its limit")
    }
    state?.indexGeneration = generation + 1
    hasChangedIndexes = true
    return generation + 1
  }

  /// What is written later in the same transaction goes into the indexes that there are now.
  private func reopenIndexes(_ generation: UInt32, _ transaction: any WriteTransaction) throws {
    guard let context else { return }
    // What the old ones owe goes with them, but for those that stay.
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

  // MARK: Looking

  /// Counts anew what planners go by.
  func refreshIndexStatistics() throws {
    let (transaction, _) = try open()
    guard let indexes else { return }
    try mutating {
      for maintainer in indexes.maintainers { try maintainer.refreshStatistics(in: transaction) }
    }
  }
}

extension DocumentStore.Options {
  /// The kind that keeps an index. Throws `unknownIndexKind`.
  func kind(of index: IndexRecord) throws -> any IndexKind {
    guard let kind = indexKinds.first(where: { $0.name == index.kind }) else {
      let known = indexKinds.map(\.name).sorted().joined(separator: ", ")
      throw DocumentError(
        .unknownIndexKind,
        "the index \"\(index.name)\" is of the kind \"\(index.kind)\", which nobody here can keep (known:"
          + " \(known.isEmpty ? "none" : known)): open the database for reading only, or with what made it")
    }
    return kind
  }
}
