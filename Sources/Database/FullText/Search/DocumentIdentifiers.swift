#if canImport(Glibc)
  import Glibc
#endif
import Storage

/// Reads document IDs from the pages of IDs. It is fast when numbers ascend, because a page is read from the
/// front. `DocumentPages.swift` describes the bytes of a page.
final class DocumentIdentifiers {
  /// The state is behind a pointer to avoid exclusivity checks at run time.
  private struct State {
    /// The number of the document whose ID is in `bytes`, or nil.
    var number: UInt32?
    /// The length of the last ID that was read, of any number.
    var count = 0
    /// The number and the place of the next item.
    var nextNumber: UInt32 = 0
    var next: UnsafePointer<UInt8>
    var end: UnsafePointer<UInt8>
    var hasPage = false
    /// The range of numbers in the page.
    var lower: UInt32 = 0
    var upper: UInt32 = 0
  }

  /// The size of the ID buffer in bytes. No stored ID is longer; eight bytes are spare.
  private static let capacity = 1_024
  private let bytes: UnsafeMutablePointer<UInt8>
  private let state: UnsafeMutablePointer<State>
  @exclusivity(unchecked) private var cursor: (any Cursor)?
  @exclusivity(unchecked) private var page = PageCopy()

  init() {
    bytes = .allocate(capacity: DocumentIdentifiers.capacity)
    state = .allocate(capacity: 1)
    state.initialize(to: State(next: UnsafePointer(bytes), end: UnsafePointer(bytes)))
  }

  deinit {
    bytes.deallocate()
    state.deallocate()
  }

  /// Returns the ID of a document. The bytes are valid until the next call. Cheap when numbers ascend.
  @inline(__always)
  func id(of document: UInt32, in reader: InvertedIndexReader) throws -> UnsafeRawBufferPointer {
    if state.pointee.number != document { try read(document, in: reader) }
    return UnsafeRawBufferPointer(start: bytes, count: state.pointee.count)
  }

  private func read(_ document: UInt32, in reader: InvertedIndexReader) throws {
    let state = state
    state.pointee.number = nil
    if !state.pointee.hasPage || document > state.pointee.upper || document < state.pointee.lower {
      try seek(document, in: reader)
    } else if document < state.pointee.nextNumber {
      try begin()
    }
    guard document >= state.pointee.nextNumber else { throw InvertedIndexFormat.damaged }
    var isThere = false
    var number = state.pointee.nextNumber
    var next = state.pointee.next
    let end = state.pointee.end
    var count = state.pointee.count
    while number <= document {
      let left = end - next
      guard left > 0 else { throw InvertedIndexFormat.damaged }
      let shared = Int(next[0])
      if shared == 0 {
        isThere = false
        next += 1
      } else if _fastPath(left >= 10 && shared < 0x80 && next[1] <= 8) {
        // The source has ten bytes left and the buffer has eight spare bytes, so eight bytes are copied at
        // once.
        let rest = Int(next[1])
        guard shared <= count + 1 else { throw InvertedIndexFormat.damaged }
        let word = UnsafeRawPointer(next + 2).loadUnaligned(as: UInt64.self)
        UnsafeMutableRawPointer(bytes + (shared - 1)).storeBytes(of: word, as: UInt64.self)
        count = shared - 1 + rest
        guard rest <= left - 2 else { throw InvertedIndexFormat.damaged }
        next += 2 + rest
        isThere = true
      } else {
        var scanner = ByteScanner(UnsafeRawBufferPointer(start: next, count: left))
        let shared = try scanner.length()
        let rest = try scanner.bytes(try scanner.length())
        guard shared > 0, shared <= count + 1, shared - 1 + rest.count <= DocumentIdentifiers.capacity - 8
        else { throw InvertedIndexFormat.damaged }
        if let source = rest.baseAddress { memcpy(bytes + (shared - 1), source, rest.count) }
        count = shared - 1 + rest.count
        next = scanner.next
        isThere = true
      }
      number &+= 1
    }
    state.pointee.nextNumber = number
    state.pointee.next = next
    state.pointee.count = count
    guard isThere else { throw InvertedIndexFormat.damaged }
    state.pointee.number = document
  }

  /// Reads the page of a document.
  private func seek(_ document: UInt32, in reader: InvertedIndexReader) throws {
    state.pointee.hasPage = false
    let cursor =
      try cursor
      ?? reader.transaction.cursor(
        in: reader.keyspaces.blocks, InvertedIndexFormat.range(ofList: InvertedIndexFormat.documentList))
    self.cursor = cursor
    guard try cursor.seek(InvertedIndexFormat.blockKey(InvertedIndexFormat.documentList, document)) else {
      throw InvertedIndexFormat.damaged
    }
    try cursor.lendEntry { key, value in
      state.pointee.upper = UInt32(truncatingIfNeeded: try InvertedIndexFormat.number(ofKey: key))
      page.take(value)
    }
    try begin()
    state.pointee.lower = state.pointee.nextNumber
    state.pointee.hasPage = true
  }

  /// Moves to the front of the page.
  private func begin() throws {
    var scanner = ByteScanner(page.bytes)
    state.pointee.nextNumber = try scanner.varint32()
    state.pointee.next = scanner.next
    state.pointee.end = scanner.end
    state.pointee.count = 0
  }
}
