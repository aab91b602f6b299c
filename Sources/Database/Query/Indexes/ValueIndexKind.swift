import Documents
import Storage

/// The kind of value indexes, for `DocumentStore.Options.indexKinds`.
package struct ValueIndexKind: IndexKind {
  /// The name of this kind in databases.
  package static let name = "value"
  /// The memory, in bytes, that a build may use for entries before it stores them. A build with more entries
  /// stores them in several rounds, each of them sorted.
  package var memoryLimit: Int

  /// Creates the kind with a memory limit, in bytes, for builds.
  package init(memoryLimit: Int = 128 << 20) { self.memoryLimit = memoryLimit }

  /// The name of this kind in databases.
  package var name: String { ValueIndexKind.name }

  /// Creates an index and adds all documents.
  package func create(
    _ index: IndexRecord, of documents: IndexedDocuments, in transaction: any WriteTransaction
  ) throws {
    let definition = try ValueIndexDefinition(encoded: index.definition)
    let extractor = try ValueIndexExtractor(definition)
    let keyspace = try transaction.createKeyspace(index.keyspaceName, shape: .entries)
    let statistics = try transaction.createKeyspace(index.keyspaceName + ".statistics", shape: .entries)
    if definition.unnest != nil { try ValueIndexContents.note(statistics, transaction) }
    extractor.begin(documents.sharedKeys)
    let entries = ValueIndexEntries(capacity: 1 << 16)
    var isWhole = true
    try documents.forEach(order: .stored) { id, body in
      try extractor.extract(id, body, into: entries)
      isWhole = entries.usedBytes <= memoryLimit
      return isWhole
    }
    guard isWhole else {
      entries.removeAll()
      return try createInRounds(
        definition, extractor, entries, documents, keyspace, statistics, transaction)
    }
    entries.sort()
    var counter = ValueIndexCounter(columns: definition.expressions.count)
    try transaction.load(keyspace) { append in
      for position in 0..<entries.count {
        let entry = entries[position]
        let key = entries.key(entry)
        try entries.withValue(entry) { try append(key.bytes, $0.bytes) }
        counter.add(key)
      }
    }
    try counter.statistics.write(statistics, transaction)
  }

  /// Builds an index whose entries don't fit the memory limit. Each round stores the entries of some
  /// documents, in order. A scan can't write, so each round starts after the last document of the previous
  /// one.
  private func createInRounds(
    _ definition: ValueIndexDefinition, _ extractor: ValueIndexExtractor, _ entries: ValueIndexEntries,
    _ documents: IndexedDocuments, _ keyspace: Keyspace, _ statistics: Keyspace,
    _ transaction: any WriteTransaction
  ) throws {
    var range = KeyRange.all
    var isDone = false
    while !isDone {
      var last: [UInt8] = []
      isDone = true
      try documents.forEach(in: range, order: .ascending) { id, body in
        try extractor.extract(id, body, into: entries)
        guard entries.usedBytes > memoryLimit else { return true }
        last = [UInt8](copying: id)
        isDone = false
        return false
      }
      range.lower = .exclusive(last)
      entries.sort()
      for position in 0..<entries.count {
        let entry = entries[position]
        try entries.withValue(entry) { try transaction.put(entries.key(entry).bytes, $0.bytes, in: keyspace) }
      }
      entries.removeAll()
    }
    try ValueIndexMaintainer.count(keyspace, columns: definition.expressions.count, transaction)
      .write(statistics, transaction)
  }

  /// Opens an index for updates.
  package func open(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> any IndexMaintainer {
    try ValueIndexMaintainer(index, transaction)
  }

  /// Whether the index has the current contents: an array index needs entries for the member values of
  /// objects.
  package func isCurrent(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> Bool {
    let definition = try ValueIndexDefinition(encoded: index.definition)
    return try definition.unnest == nil || ValueIndexContents.hasObjects(index, definition, in: transaction)
  }
}
