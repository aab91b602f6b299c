import Bytes
import Storage
import StorageMemory

/// What a write transaction has done and not sent. A copy takes constant time: that of a part of the transaction is kept, so
/// that the part can be undone.
struct WriterState {
  /// A change of the list of keyspaces.
  enum Change: Equatable {
    case add(number: Int, name: String, shape: KeyspaceShape)
    case remove(number: Int)
  }

  var catalog: PostgresCatalog
  /// Whether anything was written.
  var isChanged = false
  /// Whether the keyspaces were changed.
  var changesCatalog = false
  /// Changes of keyspaces that aren't sent, in their order.
  var changes: [Change] = []
  /// Entries that aren't sent, with their `UnsentMark`.
  var entries: [Int: SortedRecords] = [:]
  /// The greatest keys of keyspaces as this transaction has them, where they are known. Empty: there is no entry.
  var greatest: [Int: [UInt8]] = [:]
  /// Whether the server has changes of this transaction. What was known before may be wrong then.
  var hasSent = false

  init(_ catalog: PostgresCatalog, greatest: [Int: [UInt8]]) {
    self.catalog = catalog
    self.greatest = greatest
  }

  /// The size of what isn't sent, in bytes.
  var unsentBytes: Int { entries.values.reduce(0) { $0 + $1.byteCount + 32 * $1.count } }

  /// Whether everything is sent.
  var isSent: Bool { changes.isEmpty && entries.allSatisfy { $0.value.count == 0 } }

  mutating func noteSent() {
    changes = []
    entries = [:]
    hasSent = true
  }

  /// What is left to send once everything of `before` is sent, which this state came from.
  func without(_ before: WriterState) -> WriterState {
    var left = self
    left.changes = Array(changes.drop { before.changes.contains($0) })
    // A keyspace that was added before and removed since has no change at all here.
    for case .add(let number, _, _) in before.changes where catalog.names[number] == nil {
      left.changes.insert(.remove(number: number), at: 0)
    }
    left.entries = [:]
    for (number, records) in entries {
      left.entries[number] = Self.difference(records, before.entries[number] ?? SortedRecords())
    }
    for (number, sent) in before.entries where entries[number] == nil && catalog.names[number] != nil {
      left.entries[number] = Self.difference(SortedRecords(), sent)
    }
    return left
  }

  private static func difference(_ records: SortedRecords, _ sent: SortedRecords) -> SortedRecords {
    var left = SortedRecords()
    var place = records.start
    while place < records.end {
      let record = records[place]
      place = records.after(place)
      let before = record.withBytes { key, _ in sent.record(at: key) }
      guard before !== record else { continue }
      record.withBytes { key, value in
        var mark = record.mark
        if let before {
          mark =
            UnsentMark.isPut(mark)
            ? (UnsentMark.isPut(before.mark) ? UnsentMark.changed : UnsentMark.new) : UnsentMark.gone
        }
        _ = left.set(key, value, replaces: true, mark: mark)
      }
    }
    // What was new before, and was removed since.
    place = sent.start
    while place < sent.end {
      let record = sent[place]
      place = sent.after(place)
      guard UnsentMark.isPut(record.mark) else { continue }
      record.withBytes { key, _ in
        guard records.record(at: key) == nil else { return }
        _ = left.set(key, key.extracting(0..<0), replaces: true, mark: UnsentMark.gone)
      }
    }
    return left
  }

  // MARK: Requests

  /// The most bytes of keys and values of one statement.
  private static let batchBytes = 4 << 20
  /// The number of bytes from which the new entries of a keyspace go into a `COPY`, which takes a round trip of its own.
  private static let copiedBytes = 1 << 20

  /// The requests that send everything.
  func requests() -> [Request] {
    var requests = changes.map { change -> Request in
      switch change {
      case .add(let number, let name, let shape):
        .prepared(.addKeyspace, [.integer(number), .text(name), .integer(Int(shape.rawValue))])
      case .remove(let number): .prepared(.removeKeyspace, [.integer(number)])
      }
    }
    for (number, records) in entries.sorted(by: { $0.key < $1.key }) where records.count > 0 {
      Self.append(&requests, number, records)
    }
    return requests
  }

  private static func append(_ requests: inout [Request], _ number: Int, _ records: SortedRecords) {
    var batches = EntryBatches(number, copies: records.byteCount >= copiedBytes)
    var new = 0
    var place = records.start
    while place < records.end {
      let record = records[place]
      place = records.after(place)
      record.withBytes { key, value in
        key.withUnsafeBytes { key in
          value.withUnsafeBytes { value in
            if record.mark == UnsentMark.new { new += 1 }
            batches.add(record.mark, key, value, limit: batchBytes, &requests)
          }
        }
      }
    }
    batches.finish(&requests)
    if new > 0 { requests.append(.prepared(.changeCount, [.integer(number), .integer(new)])) }
  }
}

/// Gathers the entries of a keyspace for the statements that write and remove them.
private struct EntryBatches {
  private struct Batch {
    var keys = ArrayParameter()
    var values = ArrayParameter()

    var bytes: Int { keys.bytes.count + values.bytes.count }

    mutating func finished(_ statement: Statement, _ number: Int) -> Request {
      keys.finish()
      values.finish()
      defer { self = Batch() }
      let lists = statement == .delete ? [Parameter.array(keys)] : [.array(keys), .array(values)]
      return .prepared(statement, [.integer(number)] + lists)
    }
  }

  private let number: Int
  /// Whether new entries are copied.
  private let copies: Bool
  private var rows = CopiedRows()
  private var upserts = Batch()
  private var counted = Batch()
  private var deletes = Batch()

  init(_ number: Int, copies: Bool) {
    self.number = number
    self.copies = copies
  }

  mutating func add(
    _ mark: UInt8, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, limit: Int,
    _ requests: inout [Request]
  ) {
    let size = key.count + value.count
    switch mark {
    case UnsentMark.new where copies:
      if rows.count > 0, rows.bytes.count + size > 2 * limit { finishRows(&requests) }
      rows.append(number, key, value)
    case UnsentMark.new, UnsentMark.changed:
      if upserts.keys.count > 0, upserts.bytes + size > limit {
        requests.append(upserts.finished(.upsert, number))
      }
      upserts.keys.append(key)
      upserts.values.append(value)
    case UnsentMark.put:
      if counted.keys.count > 0, counted.bytes + size > limit {
        requests.append(counted.finished(.upsertCounted, number))
      }
      counted.keys.append(key)
      counted.values.append(value)
    default:
      if deletes.bytes + size > limit { requests.append(deletes.finished(.delete, number)) }
      deletes.keys.append(key)
    }
  }

  private mutating func finishRows(_ requests: inout [Request]) {
    rows.finish()
    requests.append(.copy(rows))
    rows = CopiedRows()
  }

  mutating func finish(_ requests: inout [Request]) {
    if rows.count > 0 { finishRows(&requests) }
    if deletes.keys.count > 0 { requests.append(deletes.finished(.delete, number)) }
    if upserts.keys.count > 0 { requests.append(upserts.finished(.upsert, number)) }
    if counted.keys.count > 0 { requests.append(counted.finished(.upsertCounted, number)) }
  }
}
