import Bytes
import Documents
import Fleece
import Storage

/// Updates one value index. Use it from one thread at a time.
final class ValueIndexMaintainer: IndexMaintainer {
  private let definition: ValueIndexDefinition
  private let extractor: ValueIndexExtractor
  private let keyspace: Keyspace
  private let statisticsKeyspace: Keyspace
  private let old = ValueIndexEntries()
  private let new = ValueIndexEntries()
  private var knownKeys = -1
  /// The number of entries added or deleted since the statistics were written.
  @exclusivity(unchecked) private var churn = 0
  private var countedEntries: Int

  init(_ index: IndexRecord, _ transaction: any ReadTransaction) throws {
    definition = try ValueIndexDefinition(encoded: index.definition)
    extractor = try ValueIndexExtractor(
      definition, hasObjects: ValueIndexContents.hasObjects(index, definition, in: transaction))
    guard let keyspace = try transaction.keyspace(named: index.keyspaceName),
      let statistics = try transaction.keyspace(named: index.keyspaceName + ".statistics")
    else {
      throw QueryError(
        .index, "the entries of the index \"\(index.name)\" are missing; delete it and make it again")
    }
    self.keyspace = keyspace
    statisticsKeyspace = statistics
    countedEntries =
      try ValueIndexStatistics.load(index, columns: definition.expressions.count, transaction)?.entries ?? 0
  }

  func update(_ change: IndexedChange, in transaction: any WriteTransaction) throws {
    if change.sharedKeys.count != knownKeys {
      extractor.begin(change.sharedKeys.snapshot())
      knownKeys = change.sharedKeys.count
    }
    old.removeAll()
    new.removeAll()
    if let body = change.old { try extractor.extract(change.documentID, body, into: old) }
    if let body = change.new { try extractor.extract(change.documentID, body, into: new) }
    // Both lists are sorted. Entries that are only in one list, or have different details, are written or
    // deleted.
    var (from, to) = (0, 0)
    while from < old.count || to < new.count {
      if to == new.count {
        try delete(old[from], transaction)
        from += 1
        continue
      }
      let added = new[to]
      let order =
        from == old.count ? 1 : compareBytes(old.key(old[from]), new.key(added))
      if order < 0 {
        try delete(old[from], transaction)
        from += 1
        continue
      }
      if order > 0 || old[from].details != added.details {
        try new.withValue(added) { try transaction.put(new.key(added).bytes, $0.bytes, in: keyspace) }
        if order > 0 { churn += 1 }
      }
      if order == 0 { from += 1 }
      to += 1
    }
  }

  private func delete(_ entry: ValueIndexEntries.Entry, _ transaction: any WriteTransaction) throws {
    guard try transaction.delete(old.key(entry).bytes, in: keyspace) else { throw ValueIndexEntry.damaged }
    churn += 1
  }

  func finish(in transaction: any WriteTransaction) throws {
    // A recount reads all entries. This limit makes it rare enough to cost little for each change.
    if churn > max(256, countedEntries) { try refreshStatistics(in: transaction) }
  }

  func refreshStatistics(in transaction: any WriteTransaction) throws {
    let statistics = try ValueIndexMaintainer.count(
      keyspace, columns: definition.expressions.count, transaction)
    try statistics.write(statisticsKeyspace, transaction)
    countedEntries = statistics.entries
    churn = 0
  }

  static func count(_ keyspace: Keyspace, columns: Int, _ transaction: any ReadTransaction) throws
    -> ValueIndexStatistics
  {
    var counter = ValueIndexCounter(columns: columns)
    try transaction.scan(keyspace, .all, order: .ascending, fetch: .keys) { key, _ in
      key.withUnsafeBytes { counter.add($0) }
      return true
    }
    return counter.statistics
  }

  // MARK: Integrity check

  /// Checks the index. Each document's entries are looked up in the index. When all exist, and the index has
  /// no others, it is correct.
  func check(_ documents: IndexedDocuments, _ check: IntegrityCheck, subject: String) throws {
    extractor.begin(documents.sharedKeys)
    knownKeys = -1
    var expected = 0
    try documents.forEach { id, body in
      try check.step()
      new.removeAll()
      try extractor.extract(id, body, into: new)
      expected += new.count
      for position in 0..<new.count {
        let entry = new[position]
        let isRight = try check.transaction.withValue(at: new.key(entry).bytes, in: keyspace) { found in
          try new.withValue(entry) { found.isEqual(to: $0.bytes) }
        }
        if isRight != true {
          let what = isRight == nil ? "misses an entry" : "has a wrong entry"
          try check.report(subject, "\(what) of document '\(String(copying: id))'")
        }
      }
      return true
    }
    var entries = 0
    try check.transaction.scan(keyspace, .all, order: .ascending, fetch: .keys) { _, _ in
      entries += 1
      return true
    }
    if try check.transaction.count(of: keyspace) != entries {
      try check.report(
        subject, "has \(entries) entries, but its count says \(try check.transaction.count(of: keyspace))")
    }
    if entries != expected { try findSuperfluous(documents, check, subject) }
  }

  private func findSuperfluous(_ documents: IndexedDocuments, _ check: IntegrityCheck, _ subject: String)
    throws
  {
    try check.transaction.scan(keyspace) { key, value in
      try check.step()
      try key.withUnsafeBytes { key in
        try value.withUnsafeBytes { value in try checkEntry(key, value, documents, check, subject) }
      }
      return true
    }
  }

  private func checkEntry(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ documents: IndexedDocuments,
    _ check: IntegrityCheck, _ subject: String
  ) throws {
    let id: UnsafeRawBufferPointer
    do {
      id = try ValueIndexEntry(key: key, value: value, columns: definition.expressions.count).documentID
    } catch { return try check.report(subject, "has an entry that can't be read") }
    new.removeAll()
    _ = try documents.withBody(of: id.bytes) { try extractor.extract(id.bytes, $0, into: new) }
    let isExpected = (0..<new.count).contains { compareBytes(new.key(new[$0]), key) == 0 }
    if !isExpected {
      try check.report(
        subject, "has a superfluous entry of document '\(String(decoding: id, as: UTF8.self))'")
    }
  }
}
