import Documents
import Storage

/// Value indexes: how they are made and kept, for `DocumentStore.Options.indexKinds`.
public struct ValueIndexKind: IndexKind {
  /// The name under which databases remember this kind.
  public static let name = "value"
  /// How much memory the building of an index takes for its entries, in bytes, before they are stored. More entries
  /// than that are stored in several rounds, each sorted.
  public var memoryLimit: Int

  /// The kind, with what memory a build may take.
  public init(memoryLimit: Int = 128 << 20) { self.memoryLimit = memoryLimit }

  /// The name under which databases remember this kind.
  public var name: String { ValueIndexKind.name }

  /// Makes an index and fills it.
  public func create(
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

  /// More entries than memory is for: rounds over parts of the documents, each stored in order. Nothing can be written
  /// inside of a scan, so each goes on behind the document that the last ended with.
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

  /// What keeps an index.
  public func open(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> any IndexMaintainer {
    try ValueIndexMaintainer(index, transaction)
  }

  /// Whether an array index has entries for the values of objects.
  public func isCurrent(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> Bool {
    let definition = try ValueIndexDefinition(encoded: index.definition)
    return try definition.unnest == nil || ValueIndexContents.hasObjects(index, definition, in: transaction)
  }
}
