#if canImport(Glibc)
  import Glibc
#endif
import Bytes
import Storage

// The IDs and the lengths of documents, by document number.
//
//   IDs     := (shared:varint+1 restLength:varint rest | 00)*     under the key of the highest number, or 7FFFFFFF
//   lengths := width:u8 (length:u8|u16le|u32le){256}              under number / 256
//
//   A page of IDs begins with the number of its first item (first:varint). Then it has one item per number.
//   The item 00 is a number whose document is gone. `shared` counts the bytes in common with the last ID
//   before it in the page. A length is the sum over all columns. 0 is a number without a document.

/// Reads a page of document IDs from the front.
struct DocumentPage {
  let first: UInt32
  private var scanner: ByteScanner
  /// The number of the next item.
  private(set) var nextNumber: UInt32

  init(_ page: UnsafeRawBufferPointer) throws {
    scanner = ByteScanner(page)
    first = try scanner.varint32()
    nextNumber = first
  }

  var isAtEnd: Bool { scanner.isAtEnd }

  /// Reads an item. Returns false if the document is gone; otherwise `id` has the ID.
  @inline(__always)
  mutating func next(_ id: inout ByteBuffer) throws -> Bool {
    let shared = try scanner.varint32()
    nextNumber &+= 1
    if shared == 0 { return false }
    guard Int(shared) - 1 <= id.count else { throw InvertedIndexFormat.damaged }
    let rest = try scanner.bytes(try scanner.length())
    id.truncate(to: Int(shared) - 1)
    id.append(rest)
    return true
  }
}

/// Encodes a page of document IDs.
struct DocumentPageEncoder: ~Copyable {
  private(set) var page = ByteBuffer(capacity: 2_048)
  private var last = ByteBuffer(capacity: 64)
  private(set) var nextNumber: UInt32 = 0
  private(set) var isEmpty = true

  mutating func begin(_ first: UInt32) {
    page.removeAll()
    last.removeAll()
    page.append(varint: first)
    nextNumber = first
    isEmpty = true
  }

  /// Adds the ID of the next number, or nil if the document is gone.
  mutating func append(_ id: UnsafeRawBufferPointer?) {
    nextNumber += 1
    guard let id else { return page.append(0) }
    isEmpty = false
    var shared = 0
    let old = last.bytes
    while shared < old.count, shared < id.count, old[shared] == id[shared] { shared += 1 }
    let rest = UnsafeRawBufferPointer(rebasing: id[shared...])
    page.append(varint: UInt64(shared + 1))
    page.append(varint: UInt64(rest.count))
    page.append(rest)
    last.truncate(to: shared)
    last.append(rest)
  }
}

/// The lengths of 256 documents, in memory.
struct LengthPage {
  private(set) var lengths: [UInt32]

  init() { lengths = Array(repeating: 0, count: Int(InvertedIndexFormat.lengthsPerPage)) }

  init(_ page: UnsafeRawBufferPointer) throws {
    self.init()
    guard let width = page.first.map(Int.init), [1, 2, 4].contains(width),
      page.count == 1 + lengths.count * width
    else { throw InvertedIndexFormat.damaged }
    for index in lengths.indices { lengths[index] = LengthPage.length(index, width, page) }
  }

  /// Reads a length from an encoded page. `index` is the number's index in the page.
  @inline(__always)
  static func length(_ index: Int, _ width: Int, _ page: UnsafeRawBufferPointer) -> UInt32 {
    switch width {
    case 1: UInt32(page[1 + index])
    case 2:
      UInt32(UInt16(littleEndian: page.loadUnaligned(fromByteOffset: 1 + index * 2, as: UInt16.self)))
    default: UInt32(littleEndian: page.loadUnaligned(fromByteOffset: 1 + index * 4, as: UInt32.self))
    }
  }

  subscript(index: Int) -> UInt32 {
    get { lengths[index] }
    set { lengths[index] = newValue }
  }

  var isEmpty: Bool { lengths.allSatisfy { $0 == 0 } }

  var encoded: [UInt8] {
    let highest = lengths.max() ?? 0
    let width = highest < 1 << 8 ? 1 : highest < 1 << 16 ? 2 : 4
    var bytes: [UInt8] = [UInt8(width)]
    bytes.reserveCapacity(1 + lengths.count * width)
    for length in lengths {
      for byte in 0..<width { bytes.append(UInt8(truncatingIfNeeded: length >> UInt32(8 * byte))) }
    }
    return bytes
  }
}
