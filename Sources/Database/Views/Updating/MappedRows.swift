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
    /// The offset of the row key in the memory. The value follows it, after four bytes for an emission.
    var offset: Int
    var rowKeyLength: Int32
    var keyLength: Int32
    var valueLength: Int32
    var view: Int32
    var document: Int32
    var emission: UInt32

    /// Where the value begins. A row key with an emission takes the four bytes.
    @inline(__always)
    var valueOffset: Int { offset &+ Int(rowKeyLength) &+ (emission == 0 ? 4 : 0) }
  }

  /// One document.
  struct Document: BitwiseCopyable {
    /// Where its ID is in the memory.
    var idOffset: Int
    var idLength: Int32
    var rowCount: Int32
    /// Its first row.
    var firstRow: Int

    /// The offset until the document ends.
    static let inFirstRow = -1
  }

  /// Rows while they are emitted.
  struct State: ~Copyable {
    var bytes = ByteBuffer(capacity: 1 << 16)
    fileprivate var rows = PlainList<Row>()
    fileprivate var documents = PlainList<Document>()
    /// The ID of the document that was begun last, as row keys have it.
    fileprivate var escapedID = ByteBuffer(capacity: 512)
    /// The sequence of its revision.
    private(set) var sequence: UInt64 = 0
    /// Whether any row has a special key.
    fileprivate(set) var hasSpecialKeys = false

    /// Begins a document, which may have no live revision.
    mutating func begin(_ id: UnsafeRawBufferPointer, sequence: UInt64) {
      self.sequence = sequence
      escapedID.removeAll()
      StoredRow.escape(id, into: &escapedID)
      // The ID of nearly every document is in its first row.
      var offset = Document.inFirstRow
      if _slowPath(escapedID.count != id.count + 1) {
        offset = bytes.count
        bytes.append(id)
      }
      documents.append(
        Document(idOffset: offset, idLength: Int32(id.count), rowCount: 0, firstRow: rows.count))
    }

    /// Adds a row of the document that was begun last. Its encoded key is in `bytes`, from `offset` to their end.
    @inline(__always)
    mutating func add(
      view: Int, keyAt offset: Int, keyJSON: UnsafeRawBufferPointer, _ kind: StoredRow.ValueKind,
      _ specialKind: StoredRow.SpecialKind = .none,
      special: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
      writeValue: (inout ByteBuffer) throws -> Void
    ) rethrows {
      let keyLength = bytes.count - offset
      bytes.append(escapedID.bytes)
      let rowKeyLength = bytes.count - offset
      bytes.append(word: 0, count: 4)
      let valueOffset = bytes.count
      StoredRow.write(
        kind: kind, keyLength: keyLength, sequence: sequence, keyJSON: keyJSON, specialKind, special: special,
        into: &bytes)
      do { try writeValue(&bytes) } catch {
        bytes.truncate(to: offset)
        throw error
      }
      if specialKind != .none { hasSpecialKeys = true }
      rows.append(
        Row(
          offset: offset, rowKeyLength: Int32(rowKeyLength), keyLength: Int32(keyLength),
          valueLength: Int32(bytes.count - valueOffset), view: Int32(view),
          document: Int32(documents.count - 1), emission: 0))
    }

    /// Ends the document that was begun last: numbers its rows with equal keys in the order of their emission, or in that of their
    /// values.
    @inline(__always)
    mutating func end(_ order: RowValueOrder?) {
      let index = documents.count - 1
      let first = documents[index].firstRow
      let count = rows.count - first
      documents[index].rowCount = Int32(count)
      if documents[index].idOffset == Document.inFirstRow {
        if count > 0 {
          documents[index].idOffset = rows[first].offset + Int(rows[first].keyLength)
        } else {
          documents[index].idOffset = bytes.count
          bytes.append(UnsafeRawBufferPointer(rebasing: escapedID.bytes.dropLast()))
        }
      }
      if count > 1 { number(from: first, order) }
    }

    @inline(never)
    private mutating func number(from first: Int, _ valueOrder: RowValueOrder?) {
      let (all, bytes) = (rows.elements, self.bytes.base)
      func compare(_ left: Row, _ right: Row) -> Int {
        if left.view != right.view { return left.view < right.view ? -1 : 1 }
        return compareBytes(
          UnsafeRawBufferPointer(start: bytes + left.offset, count: Int(left.keyLength)),
          UnsafeRawBufferPointer(start: bytes + right.offset, count: Int(right.keyLength)))
      }
      var order = (first..<all.count).sorted { left, right in
        let order = compare(all[left], all[right])
        return order != 0 ? order < 0 : left < right
      }
      if let valueOrder {
        var start = 0
        while start < order.count {
          var end = start + 1
          while end < order.count, compare(all[order[start]], all[order[end]]) == 0 { end += 1 }
          if end - start > 1 {
            valueOrder.sort(&order[start..<end], view: Int(all[order[start]].view)) { index in
              UnsafeRawBufferPointer(
                start: bytes + all[index].valueOffset, count: Int(all[index].valueLength))
            }
          }
          start = end
        }
      }
      var emission: UInt32 = 0
      for (place, row) in order.enumerated() where place > 0 {
        emission = compare(all[order[place - 1]], all[row]) == 0 ? emission + 1 : 0
        guard emission > 0 else { continue }
        let end = all[row].offset + Int(all[row].rowKeyLength)
        UnsafeMutableRawPointer(bytes + end).storeBytes(of: emission.bigEndian, as: UInt32.self)
        rows[row].emission = emission
        rows[row].rowKeyLength += 4
      }
    }
  }

  /// A pointer avoids exclusivity checks at run time. Valid as long as the rows.
  let state: UnsafeMutablePointer<State>

  init() {
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  /// The memory of the rows, in bytes.
  @inline(__always)
  var usedBytes: Int {
    state.pointee.bytes.count &+ state.pointee.rows.count &* MemoryLayout<Row>.stride
      &+ state.pointee.documents.count &* MemoryLayout<Document>.stride
  }
  var isEmpty: Bool { state.pointee.documents.count == 0 }
  /// Whether any row has a special key.
  var hasSpecialKeys: Bool { state.pointee.hasSpecialKeys }

  func removeAll() {
    state.pointee.bytes.removeAll()
    state.pointee.rows.removeAll()
    state.pointee.documents.removeAll()
    state.pointee.hasSpecialKeys = false
  }

  /// Begins a document, which may have no live revision.
  @inline(__always)
  func begin(_ id: UnsafeRawBufferPointer, sequence: UInt64) { state.pointee.begin(id, sequence: sequence) }

  /// Ends the document that was begun last: numbers its rows with equal keys in the order of their emission, or in that of their
  /// values.
  @inline(__always)
  func end(_ order: RowValueOrder? = nil) { state.pointee.end(order) }

  // MARK: Reading. All is valid until the rows change.

  /// The rows in the order of their emission.
  @inline(__always)
  var rows: UnsafeBufferPointer<Row> { state.pointee.rows.elements }

  /// The documents in the order in which they were begun.
  @inline(__always)
  var documents: UnsafeBufferPointer<Document> { state.pointee.documents.elements }

  @inline(__always)
  func rowKey(_ row: Row) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: state.pointee.bytes.base + row.offset, count: Int(row.rowKeyLength))
  }

  @inline(__always)
  func key(_ row: Row) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: state.pointee.bytes.base + row.offset, count: Int(row.keyLength))
  }

  @inline(__always)
  func value(_ row: Row) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: state.pointee.bytes.base + row.valueOffset, count: Int(row.valueLength))
  }

  @inline(__always)
  func id(_ document: Document) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: state.pointee.bytes.base + document.idOffset, count: Int(document.idLength))
  }

  /// How many rows `readAhead` reads.
  static let rowsAhead = 64

  /// Reads a byte of each of the next rows, which are anywhere in memory: the processor fetches them at the same time,
  /// where a loop that stores row after row would wait for each.
  @inline(never)
  func readAhead(_ next: ContiguousArray<Int>.SubSequence) {
    let (rows, bytes) = (rows, state.pointee.bytes.base)
    var sum: UInt8 = 0
    for index in next.prefix(MappedRows.rowsAhead) {
      let row = rows[index]
      sum &+= bytes[row.offset]
      sum &+= bytes[row.valueOffset + Int(row.valueLength) - 1]
    }
    // Otherwise nothing would be read.
    lastRead = sum
  }
  private var lastRead: UInt8 = 0
}

/// Elements in memory of their own that grow at the end. Nothing is checked.
private struct PlainList<Element: BitwiseCopyable>: ~Copyable {
  private var memory: UnsafeMutablePointer<Element>
  private var room: Int
  private(set) var count = 0

  init() {
    room = 64
    memory = .allocate(capacity: room)
  }

  deinit { memory.deallocate() }

  /// All elements. Valid until the list changes or ends.
  var elements: UnsafeBufferPointer<Element> { UnsafeBufferPointer(start: memory, count: count) }

  subscript(index: Int) -> Element {
    @inline(__always) get { memory[index] }
    @inline(__always) _modify { yield &memory[index] }
  }

  @inline(__always)
  mutating func append(_ element: Element) {
    if _slowPath(count == room) { grow() }
    (memory + count).initialize(to: element)
    count &+= 1
  }

  @inline(never)
  private mutating func grow() {
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: 2 * room)
    larger.update(from: memory, count: count)
    memory.deallocate()
    memory = larger
    room *= 2
  }

  mutating func removeAll() { count = 0 }
}
