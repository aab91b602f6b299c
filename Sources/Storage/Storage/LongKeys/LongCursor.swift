import Bytes

/// A position in a range of a `LongKeyspace` that moves in both directions. It follows the rules of `Cursor`.
///
/// A step to or from a key of more than 510 bytes costs a search in the keyspace. Other steps cost what they do in a
/// cursor of the engine.
package final class LongCursor {
  private let map: LongKeyspace
  private let range: KeyRange
  private let transaction: any ReadTransaction
  /// Moves over short keys and stems at the top.
  private let top: any Cursor
  /// The key that the cursor stands on below the stem that `top` stands on; empty if it stands on what `top` does.
  private var long: [UInt8] = []
  /// The number of closures that the entry is lent to.
  private var lent = 0

  init(_ map: LongKeyspace, _ range: KeyRange, _ transaction: any ReadTransaction) throws {
    self.map = map
    self.range = range
    self.transaction = transaction
    top = try transaction.cursor(in: map.keyspace, LongKeyspace.topRange(range))
  }

  /// Moves to the first entry of the range whose key is `key` or greater.
  package func seek(_ key: RawSpan) throws -> Bool {
    try leave()
    if key.byteCount < LongKeyLayout.stemBytes { return try top.seek(key) && settle(.ascending) }
    let stem = key.extracting(first: LongKeyLayout.stemBytes)
    guard try top.seek(stem) else { return false }
    if try top.withEntry({ found, _ in found.isEqual(to: stem) }) {
      if try enter(.ascending, from: key) { return true }
      return try top.next() && settle(.ascending)
    }
    return try settle(.ascending)
  }

  /// Moves to the first entry of the range.
  package func first() throws -> Bool {
    try leave()
    return try top.first() && settle(.ascending)
  }

  /// Moves to the last entry of the range.
  package func last() throws -> Bool {
    try leave()
    return try top.last() && settle(.descending)
  }

  /// Moves to the next entry. A cursor before the first entry moves to the first entry.
  ///
  /// Returns false if there is no next entry. The cursor then stands after the last one.
  package func next() throws -> Bool { try step(.ascending) }

  /// Moves to the previous entry. A cursor after the last entry moves to the last entry.
  ///
  /// Returns false if there is no previous entry. The cursor then stands before the first one.
  package func previous() throws -> Bool { try step(.descending) }

  /// Lends the current entry to `body` and returns the result. Throws `notOnEntry` if the cursor stands on none.
  package func withEntry<Result>(
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result
  ) throws -> Result {
    lent += 1
    defer { lent -= 1 }
    if long.isEmpty { return try top.withEntry(body) }
    // The cursor at the top knows whether there were writes since.
    return try top.withEntry { _, _ in
      let key = long
      var result: Result?
      _ = try map.read(key.span.bytes, in: transaction) { result = try body(key.span.bytes, $0) }
      guard let result else { throw StorageError(.damaged, "an entry with a long key is gone") }
      return result
    }
  }

  private func step(_ order: ScanOrder) throws -> Bool {
    try checkNotLent()
    if !long.isEmpty {
      // Throws if there were writes since.
      let found = try top.withEntry { stem, _ in
        let bound = KeyRange.Bound.exclusive(long)
        let part =
          order == .ascending
          ? KeyRange(lower: bound, upper: range.upper) : KeyRange(lower: range.lower, upper: bound)
        return try find(below: stem, part, order)
      }
      if found { return true }
      try leave()
    }
    return try (order == .ascending ? top.next() : top.previous()) && settle(order)
  }

  /// Moves on from a stem without entries in the range, and below one that has some.
  private func settle(_ order: ScanOrder) throws -> Bool {
    while try top.withEntry({ key, _ in key.byteCount == LongKeyLayout.stemBytes }) {
      if try enter(order, from: nil) { return true }
      guard try order == .ascending ? top.next() : top.previous() else { return false }
    }
    return true
  }

  /// Moves below the stem that `top` stands on: to the first entry of the range, not before `key`, or to the last one.
  private func enter(_ order: ScanOrder, from key: RawSpan?) throws -> Bool {
    var part = range
    if let key {
      let isInside =
        switch range.lower {
        case .unbounded: true
        case .inclusive(let bound): key.compare(bound.span.bytes) > 0
        case .exclusive(let bound): key.compare(bound.span.bytes) > 0
        }
      if isInside { part.lower = .inclusive([UInt8](copying: key)) }
    }
    return try top.withEntry { stem, _ in try find(below: stem, part, order) }
  }

  private func find(below stem: RawSpan, _ part: KeyRange, _ order: ScanOrder) throws -> Bool {
    var found: [UInt8]?
    _ = try map.scanNodes(below: stem, part, order: order, fetch: .keys, in: transaction) { key, _ in
      found = [UInt8](copying: key)
      return false
    }
    guard let found else { return false }
    long = found
    return true
  }

  private func leave() throws {
    try checkNotLent()
    long.removeAll()
  }

  private func checkNotLent() throws {
    if lent > 0 { throw StorageError(.bytesAreLent, "a cursor moves while its entry is lent") }
  }
}
