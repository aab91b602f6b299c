import Bytes
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The rows that map functions emitted for some documents, until they are stored. Used on one thread at a time.
///
/// A document is begun, rows are added view by view, and the document is ended.
final class MappedRows {
  /// One row.
  struct Row: BitwiseCopyable {
    /// The first bytes of the row key, for sorting.
    var prefix: UInt64
    /// The offset of the row key in the memory. The value follows it, after four bytes for an emission.
    var offset: Int
    var rowKeyLength: Int32
    var keyLength: Int32
    var valueLength: Int32
    var view: Int32
    var document: Int32
    var emission: UInt32
    /// Where the value begins.
    var valueOffset: Int
  }

  /// One document.
  struct Document: BitwiseCopyable {
    var idOffset: Int
    var idLength: Int
    var sequence: UInt64
    /// Its rows.
    var firstRow: Int
    var rowCount: Int
  }

  private struct State: ~Copyable {
    var bytes = ByteBuffer(capacity: 1 << 16)
    var rows: ContiguousArray<Row> = []
    var documents: ContiguousArray<Document> = []
    var escapedID = ByteBuffer(capacity: 256)
  }
  /// Whether any row has a special key.
  private(set) var hasSpecialKeys = false

  // A pointer avoids exclusivity checks at run time.
  private let state: UnsafeMutablePointer<State>

  private var bytes: ByteBuffer {
    @inline(__always) _read { yield state.pointee.bytes }
    @inline(__always) _modify { yield &state.pointee.bytes }
  }
  private(set) var rows: ContiguousArray<Row> {
    @inline(__always) _read { yield state.pointee.rows }
    @inline(__always) _modify { yield &state.pointee.rows }
  }
  private(set) var documents: ContiguousArray<Document> {
    @inline(__always) _read { yield state.pointee.documents }
    @inline(__always) _modify { yield &state.pointee.documents }
  }
  private var escapedID: ByteBuffer {
    @inline(__always) _read { yield state.pointee.escapedID }
    @inline(__always) _modify { yield &state.pointee.escapedID }
  }

  init() {
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// The memory of the rows, in bytes.
  var usedBytes: Int {
    bytes.count + rows.count * MemoryLayout<Row>.stride + documents.count * MemoryLayout<Document>.stride
  }
  var isEmpty: Bool { documents.isEmpty }

  func removeAll() {
    bytes.removeAll()
    rows.removeAll(keepingCapacity: true)
    documents.removeAll(keepingCapacity: true)
    hasSpecialKeys = false
  }

  /// Begins a document, which may have no live revision.
  func begin(_ id: UnsafeRawBufferPointer, sequence: UInt64) {
    escapedID.removeAll()
    StoredRow.escape(id, into: &escapedID)
    let offset = bytes.count
    bytes.append(id)
    documents.append(
      Document(idOffset: offset, idLength: id.count, sequence: sequence, firstRow: rows.count, rowCount: 0))
  }

  /// Adds a row of the document that was begun last.
  func add(
    view: Int, key: UnsafeRawBufferPointer, keyJSON: UnsafeRawBufferPointer, _ kind: StoredRow.ValueKind,
    valueJSON: UnsafeRawBufferPointer, _ specialKind: StoredRow.SpecialKind = .none,
    special: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) {
    if specialKind != .none { hasSpecialKeys = true }
    let offset = bytes.count
    bytes.append(key)
    bytes.append(escapedID.bytes)
    let rowKeyLength = bytes.count - offset
    bytes.append(word: 0, count: 4)
    let valueOffset = bytes.count
    StoredRow.write(
      kind: kind, keyLength: key.count, sequence: documents[documents.count - 1].sequence, keyJSON: keyJSON,
      valueJSON: valueJSON, specialKind, special: special, into: &bytes)
    rows.append(
      Row(
        prefix: 0, offset: offset, rowKeyLength: Int32(rowKeyLength), keyLength: Int32(key.count),
        valueLength: Int32(bytes.count - valueOffset), view: Int32(view),
        document: Int32(documents.count - 1),
        emission: 0, valueOffset: valueOffset))
  }

  /// Ends the document that was begun last: numbers its rows with equal keys in the order of their emission.
  func end() {
    let index = documents.count - 1
    let first = documents[index].firstRow
    let count = rows.count - first
    documents[index].rowCount = count
    if count > 1 {
      let order = (first..<rows.count).sorted { left, right in
        let order = comparePlainKeys(rows[left], rows[right])
        return order != 0 ? order < 0 : left < right
      }
      var emission: UInt32 = 0
      for (place, row) in order.enumerated() where place > 0 {
        emission = comparePlainKeys(rows[order[place - 1]], rows[row]) == 0 ? emission + 1 : 0
        guard emission > 0 else { continue }
        rows[row].emission = emission
        let end = rows[row].offset + Int(rows[row].rowKeyLength)
        UnsafeMutableRawPointer(bytes.base + end).storeBytes(of: emission.bigEndian, as: UInt32.self)
        rows[row].rowKeyLength += 4
      }
    }
    for row in first..<rows.count {
      rows[row].prefix = prefix(of: rows[row])
    }
  }

  private func comparePlainKeys(_ left: Row, _ right: Row) -> Int {
    if left.view != right.view { return left.view < right.view ? -1 : 1 }
    let leftBytes = UnsafeRawBufferPointer(start: bytes.base + left.offset, count: Int(left.keyLength))
    let rightBytes = UnsafeRawBufferPointer(start: bytes.base + right.offset, count: Int(right.keyLength))
    return compareBytes(leftBytes, rightBytes)
  }

  private func prefix(of row: Row) -> UInt64 {
    // A row key may be shorter than eight bytes; its value follows, so the memory is there. Only equal prefixes are
    // compared in full, and a shorter key's later bytes must not decide.
    let key = rowKey(row)
    if key.count >= 8 { return UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)) }
    var word: UInt64 = 0
    for (index, byte) in key.enumerated() { word |= UInt64(byte) << UInt64(56 - 8 * index) }
    return word
  }

  // MARK: Reading. The bytes are valid until the rows change.

  @inline(__always)
  func rowKey(_ row: Row) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: bytes.base + row.offset, count: Int(row.rowKeyLength))
  }

  @inline(__always)
  func key(_ row: Row) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: bytes.base + row.offset, count: Int(row.keyLength))
  }

  @inline(__always)
  func value(_ row: Row) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: bytes.base + row.valueOffset, count: Int(row.valueLength))
  }

  @inline(__always)
  func id(_ document: Document) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: bytes.base + document.idOffset, count: document.idLength)
  }

  /// How many rows `readAhead` reads.
  static let rowsAhead = 64

  /// Reads a byte of each of the next rows, which are anywhere in memory: the processor fetches them at the same time,
  /// where a loop that stores row after row would wait for each.
  @inline(never)
  func readAhead(_ rows: ContiguousArray<Row>.SubSequence) {
    var sum: UInt8 = 0
    for row in rows.prefix(MappedRows.rowsAhead) {
      sum &+= bytes.base[row.offset]
      sum &+= bytes.base[row.valueOffset + Int(row.valueLength) - 1]
    }
    // Otherwise nothing would be read.
    lastRead = sum
  }
  private var lastRead: UInt8 = 0

  /// The rows of a view, sorted by row key.
  func sortedRows(ofView view: Int) -> ContiguousArray<Row> {
    var items = ContiguousArray<SortedRow>()
    items.reserveCapacity(rows.count)
    for (index, row) in rows.enumerated() where row.view == Int32(view) {
      items.append(SortedRow(prefix: row.prefix, index: index))
    }
    items.withUnsafeMutableBufferPointer { items in
      let scratch = UnsafeMutableBufferPointer<SortedRow>.allocate(capacity: items.count)
      defer { scratch.deallocate() }
      sort(items, scratch, from: 0)
    }
    let all = rows
    return ContiguousArray(unsafeUninitializedCapacity: items.count) { sorted, count in
      for place in items.indices { sorted.initializeElement(at: place, to: all[items[place].index]) }
      count = items.count
    }
  }

  /// A row to sort, with eight bytes of its key.
  private struct SortedRow: BitwiseCopyable {
    var prefix: UInt64
    var index: Int
  }

  /// Keys that have more bytes in common are compared.
  private static let comparedFrom = 32

  /// Sorts rows whose keys have their first `offset` bytes in common, and whose prefixes are the next eight bytes.
  private func sort(
    _ given: UnsafeMutableBufferPointer<SortedRow>, _ scratch: UnsafeMutableBufferPointer<SortedRow>,
    from offset: Int
  ) {
    var items = given
    guard items.count > 1 else { return }
    if items.count > 128 {
      MappedRows.sortByPrefix(items, scratch)
    } else {
      items.sort { $0.prefix < $1.prefix }
    }
    var first = 0
    while first < items.count {
      let prefix = items[first].prefix
      var end = first + 1
      while end < items.count, items[end].prefix == prefix { end += 1 }
      if end - first > 1 {
        var run = UnsafeMutableBufferPointer(rebasing: items[first..<end])
        let next = offset + 8
        if run.count > 16, next < MappedRows.comparedFrom {
          for place in run.indices { run[place].prefix = word(of: rowKey(rows[run[place].index]), at: next) }
          sort(run, scratch, from: next)
        } else {
          run.sort { compareBytes(rowKey(rows[$0.index]), rowKey(rows[$1.index])) < 0 }
        }
      }
      first = end
    }
  }

  /// Eight bytes of a key, with zeros behind its end.
  private func word(of key: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
    if key.count >= offset + 8 {
      return UInt64(bigEndian: key.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
    var word: UInt64 = 0
    var index = 0
    while index < 8, offset + index < key.count {
      word |= UInt64(key[offset + index]) << UInt64(56 - 8 * index)
      index += 1
    }
    return word
  }

  /// Sorts by the prefixes, byte by byte from the last one.
  private static func sortByPrefix(
    _ items: UnsafeMutableBufferPointer<SortedRow>, _ scratch: UnsafeMutableBufferPointer<SortedRow>
  ) {
    let count = items.count
    withUnsafeTemporaryAllocation(of: Int.self, capacity: 8 * 256) { places in
      // How often each value of each byte occurs.
      places.initialize(repeating: 0)
      for item in items {
        for byte in 0..<8 {
          places[byte &* 256 &+ Int(truncatingIfNeeded: (item.prefix >> UInt64(8 &* byte)) & 0xFF)] &+= 1
        }
      }
      var (source, target) = (items, scratch)
      var isInScratch = false
      for byte in 0..<8 {
        let shift = UInt64(8 &* byte)
        let start = byte &* 256
        // A byte that all have in common.
        if places[start &+ Int(truncatingIfNeeded: (source[0].prefix >> shift) & 0xFF)] == count { continue }
        var place = 0
        for value in start..<(start + 256) {
          let occurrences = places[value]
          places[value] = place
          place &+= occurrences
        }
        for index in 0..<count {
          let item = source[index]
          let slot = start &+ Int(truncatingIfNeeded: (item.prefix >> shift) & 0xFF)
          target.initializeElement(at: places[slot], to: item)
          places[slot] &+= 1
        }
        (source, target) = (target, source)
        isInScratch.toggle()
      }
      if isInScratch { for index in 0..<count { items[index] = scratch[index] } }
    }
  }
}
