/// Goes through the records of a store that are current: those of the trie that the log doesn't replace, in the order
/// of their keys, then those of the log. The order is the same each time.
package final class StoreCursor {
  /// What was found.
  package enum Item {
    /// A record, which the cursor lends.
    case record
    /// A record that can't be read, and its key if that could be.
    case damaged(ForestDBDamage, key: [UInt8]?)
  }

  let record: RecordReader
  private let store: ForestDBStore
  private let trie: TrieCursor
  private let log: RecordIndex?
  private let earlier: RecordReader
  private var nextOfLog = 0
  private var isInTrie = true
  private var readBytes: UInt64 = 0

  init(_ file: BlockFile, _ header: FileHeader, _ store: ForestDBStore, _ log: RecordIndex?) throws {
    self.store = store
    self.log = log
    record = RecordReader(file, header.version)
    earlier = RecordReader(file, header.version)
    trie = try TrieCursor(file, root: header.root, store: store.number)
  }

  /// The key of the record. Valid until the next one.
  package var key: UnsafeRawBufferPointer { record.userKey }
  /// The meta of the record. Valid until the next one.
  package var meta: UnsafeRawBufferPointer { record.meta }
  /// Returns the body of the record; nil if it can't be decompressed. Valid until the next record.
  package func body() -> UnsafeRawBufferPointer? { record.body() }
  /// The place of the record in the file.
  package var offset: UInt64 { record.offset }

  /// Moves to the next record. Nil if there is none. Throws if the trie is damaged.
  package func next() throws -> Item? {
    record.shrink()
    while isInTrie {
      guard let offset = try trie.next() else {
        isInTrie = false
        break
      }
      if let item = try item(ofTrie: offset) { return item }
    }
    while let log, nextOfLog < log.count {
      let entry = log[nextOfLog]
      nextOfLog += 1
      let skipped = RecordIndex.State.deleted.rawValue | RecordIndex.State.superseded.rawValue
      if entry.state & skipped != 0 { continue }
      switch try record.read(at: entry.offset) {
      case .record: return .record
      case .damaged(let message): return damaged(message)
      default: return damaged("there is no record")
      }
    }
    return nil
  }

  /// Nil if the record isn't of the store, is deleted, or isn't the last of its key.
  private func item(ofTrie offset: UInt64) throws -> Item? {
    switch try record.read(at: offset) {
    case .record:
      readBytes += UInt64(record.byteCount)
      guard readBytes <= record.file.byteCount else {
        throw ForestDBError(
          .damaged, "the index is damaged (its records overlap)", path: record.file.path, offset: offset)
      }
      guard record.store == store.number, !record.flags.contains(.system), try !isReplaced() else {
        return nil
      }
      guard !record.flags.contains(.deleted) else { return nil }
      guard record.sequence <= store.lastSequence else {
        return damaged("its sequence \(record.sequence) is above the last one, \(store.lastSequence)")
      }
      return .record
    case .damaged(let message):
      if let found = record.store, found == store.number, try isReplaced() { return nil }
      return damaged(message)
    default: return damaged("there is no record", hasKey: false, at: offset)
    }
  }

  /// Whether the log has a later record of the key.
  private func isReplaced() throws -> Bool {
    guard let log, log.count > 0,
      let found = try log.find(
        RecordIndex.hash(record.userKey), { try earlier.hasKey(at: $0, record.key) })
    else { return false }
    if log[found].sequence >= record.sequence { return true }
    log[found].state |= RecordIndex.State.superseded.rawValue
    return false
  }

  private func damaged(_ message: String, hasKey: Bool = true, at offset: UInt64? = nil) -> Item {
    let isOfStore = hasKey && record.store == store.number
    return .damaged(
      ForestDBDamage(offset: offset ?? record.offset, message: message),
      key: isOfStore ? [UInt8](record.userKey) : nil)
  }
}
