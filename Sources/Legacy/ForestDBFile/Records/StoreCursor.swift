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
  private var damagedBytes: UInt64 = 0
  /// Damaged records of the trie that the log replaces, up to 1,000. Nothing is lost with them.
  package private(set) var replacedDamages: [ForestDBDamage] = []

  /// The bytes of damaged records that are read, for each byte of the file: a record may be named again and again.
  private static let damagedFactor: UInt64 = 4

  init(_ file: BlockFile, _ header: ForestDBHeader, _ store: ForestDBStore, _ log: RecordIndex?) throws {
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
  /// The sequence of the record.
  package var sequence: UInt64 { record.sequence }
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
      let isDoubtful = entry.state & RecordIndex.hidesOlder != 0
      let skipped = RecordIndex.State.deleted.rawValue | RecordIndex.State.superseded.rawValue
      if !isDoubtful, entry.state & skipped != 0 { continue }
      switch try record.read(at: entry.offset) {
      case .record where entry.state & RecordIndex.State.unconfirmed.rawValue != 0:
        return damaged("the end of its transaction is missing from the log")
      case .record: return .record
      case .damaged(let message): return damaged(message)
      default: return damaged("there is no record")
      }
    }
    return nil
  }

  /// Nil if the record isn't of the store, is deleted, or isn't the last of its key.
  private func item(ofTrie offset: UInt64) throws -> Item? {
    guard damagedBytes <= Self.damagedFactor * record.file.byteCount else {
      return .damaged(
        ForestDBDamage(offset: offset, message: "too many damaged records share bytes"), key: nil)
    }
    let outcome = try record.read(at: offset)
    guard case .record = outcome else { return try damagedItem(outcome, at: offset) }
    readBytes += UInt64(record.byteCount)
    guard readBytes <= record.file.byteCount else {
      throw ForestDBError(
        .damaged, "the index is damaged (its records overlap)", path: record.file.path, offset: offset)
    }
    guard trie.leads(to: record.key) else {
      return damaged("the index leads to the record of another key", hasKey: false)
    }
    guard record.store == store.number, !record.flags.contains(.system), try !isReplaced() else { return nil }
    guard !record.flags.contains(.deleted) else { return nil }
    guard record.sequence <= store.lastSequence else {
      return damaged("its sequence \(record.sequence) is above the last one, \(store.lastSequence)")
    }
    return .record
  }

  /// Nil if the record is another store's, or isn't the last of its key.
  private func damagedItem(_ outcome: RecordReader.Outcome, at offset: UInt64) throws -> Item? {
    damagedBytes += UInt64(record.byteCount)
    // A trie that doesn't branch by stores may not say whose record this was.
    guard trie.knowsStores || record.store == store.number || store.number == 0 else { return nil }
    var message = "there is no record"
    if case .damaged(let said) = outcome { message = said }
    guard record.store == store.number, trie.leads(to: record.key) else {
      return damaged(message, hasKey: false, at: offset)
    }
    guard try inLog() == nil else {
      if replacedDamages.count < 1_000 {
        replacedDamages.append(ForestDBDamage(offset: offset, message: message))
      }
      return nil
    }
    return damaged(message)
  }

  /// The entry of the key in the log.
  private func inLog() throws -> Int? {
    guard let log, log.count > 0 else { return nil }
    return try log.find(RecordIndex.hash(record.userKey)) { try earlier.hasKey(at: $0, record.key) }
  }

  /// Whether the log has a later record of the key.
  private func isReplaced() throws -> Bool {
    guard let log, let found = try inLog() else { return false }
    let entry = log[found]
    if entry.sequence >= record.sequence || entry.state & RecordIndex.hidesOlder != 0 { return true }
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
