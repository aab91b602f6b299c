import Bytes

// Rows are sorted by eight bytes of their keys at a time: byte by byte where there are many, by comparing where there are
// few.

extension MappedRows {
  /// The places in `rows` of a view's rows, sorted by row key.
  func sortedRows(ofView view: Int) -> ContiguousArray<Int> {
    let rows = rows
    var items = ContiguousArray<SortedRow>()
    items.reserveCapacity(rows.count)
    for (index, row) in rows.enumerated() where row.view == Int32(view) {
      items.append(SortedRow(prefix: prefix(of: row), index: index))
    }
    items.withUnsafeMutableBufferPointer { items in
      let scratch = UnsafeMutableBufferPointer<SortedRow>.allocate(capacity: items.count)
      defer { scratch.deallocate() }
      MappedRows.sort(items, scratch, from: 0) { rowKey(rows[$0]) }
    }
    return ContiguousArray(items.lazy.map(\.index))
  }

  /// The places in `documents` in the order of the bytes of their IDs; nil if they are in that order.
  func sortedDocuments() -> ContiguousArray<Int>? {
    let documents = documents
    let isSorted = zip(documents, documents.dropFirst()).allSatisfy { compareBytes(id($0), id($1)) < 0 }
    if isSorted { return nil }
    var items = ContiguousArray<SortedRow>()
    items.reserveCapacity(documents.count)
    for (index, document) in documents.enumerated() {
      items.append(SortedRow(prefix: RowKeyPrefix.word(of: id(document), at: 0), index: index))
    }
    items.withUnsafeMutableBufferPointer { items in
      let scratch = UnsafeMutableBufferPointer<SortedRow>.allocate(capacity: items.count)
      defer { scratch.deallocate() }
      MappedRows.sort(items, scratch, from: 0) { id(documents[$0]) }
    }
    return ContiguousArray(items.lazy.map(\.index))
  }

  /// The first eight bytes of a row key, with zeros behind its end.
  @inline(__always)
  func prefix(of row: Row) -> UInt64 { RowKeyPrefix.word(of: rowKey(row), at: 0) }

  /// A row or document to sort, with eight bytes of its key.
  private struct SortedRow: BitwiseCopyable {
    var prefix: UInt64
    var index: Int
  }

  /// Keys that have more bytes in common are compared.
  private static let comparedFrom = 32

  /// Sorts items whose keys have their first `offset` bytes in common, and whose prefixes are the next eight bytes.
  private static func sort(
    _ given: UnsafeMutableBufferPointer<SortedRow>, _ scratch: UnsafeMutableBufferPointer<SortedRow>,
    from offset: Int, key: (Int) -> UnsafeRawBufferPointer
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
          for place in run.indices {
            run[place].prefix = RowKeyPrefix.word(of: key(run[place].index), at: next)
          }
          sort(run, scratch, from: next, key: key)
        } else {
          run.sort { compareBytes(key($0.index), key($1.index)) < 0 }
        }
      }
      first = end
    }
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

/// Eight bytes of a row key as a number in the order of keys.
enum RowKeyPrefix {
  /// The bytes from `offset` on, with zeros behind the key's end.
  @inline(__always)
  static func word(of key: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
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
}
