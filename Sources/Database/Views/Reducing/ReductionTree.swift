import Bytes
import Storage

// Partial reductions of blocks of rows (a `LongKeyspace`):
//
//   key       := level:u8  boundary                level from 1
//   value     := rows:varint  partial              partial of the reducer; nothing without one that can rereduce
//
// A row whose hash has level·6 trailing zero bits or more begins a block of that level. `boundary` is its row key.
// The first block of a level, before the first such row, has the empty boundary. Blocks without rows have no entry.
// docs/view-reductions.md has the hash, the algorithm and the costs.

/// The counts and partial reductions of blocks of a view's rows, in levels.
///
/// What is stored is a function of the rows: it doesn't depend on the changes that led to them. One thread at a
/// time.
package final class ReductionTree {
  /// A stored block. `rows` is its number of rows.
  struct Block {
    var rows: UInt64
    var partial: [UInt8]
  }

  /// Names the form of what is stored. Another one needs a rebuild.
  package static func identity(of reducer: (any Reducer)?) -> String {
    "blocks 1 \(blockBits) " + (reducer.map { $0.canRereduce ? $0.identity : "rows" } ?? "rows")
  }

  /// A block of a level has 2^blockBits blocks of the level below, on average.
  static let blockBits = 6

  let rows: LongKeyspace
  let entries: LongKeyspace
  let blockBits: Int
  /// The levels that exist.
  let levels: Int
  /// The reducer, if there is one.
  package let reducer: (any Reducer)?
  /// Whether partials are stored.
  let storesPartials: Bool
  let expanding: DocumentExpansion
  private var changes: [RowChange] = []

  struct RowChange {
    let key: [UInt8]
    var old: [UInt8]?
    var new: [UInt8]?
    var level = 0
  }

  /// A tree over `rows` that is stored in `reductions`. With `readsPartials` false, the stored partial reductions are
  /// those of another reducer, and only the counts are read.
  package init(
    rows: LongKeyspace, reductions: LongKeyspace, reducer: (any Reducer)?, readsPartials: Bool = true,
    expanding: @escaping DocumentExpansion
  ) {
    self.rows = rows
    entries = reductions
    self.reducer = reducer
    self.expanding = expanding
    blockBits = ReductionTree.blockBits
    levels = 30 / blockBits
    storesPartials = readsPartials && reducer?.canRereduce ?? false
  }

  /// For measurements of other block sizes.
  init(
    rows: LongKeyspace, reductions: LongKeyspace, reducer: (any Reducer)?, blockBits: Int,
    expanding: @escaping DocumentExpansion
  ) {
    self.rows = rows
    entries = reductions
    self.reducer = reducer
    self.expanding = expanding
    self.blockBits = blockBits
    levels = 30 / blockBits
    storesPartials = reducer?.canRereduce ?? false
  }

  // MARK: Blocks

  /// The number of levels in which a row begins a block.
  func level(of rowKey: RawSpan) -> Int {
    min(ReductionTree.hash(rowKey).trailingZeroBitCount / blockBits, levels)
  }

  /// The number of levels in which a row begins a block.
  private func level(of rowKey: [UInt8]) -> Int { level(of: rowKey.span.bytes) }

  /// Compares keys. Returns a negative number, zero or a positive number.
  static func order(_ left: [UInt8], _ right: [UInt8]) -> Int {
    left.withUnsafeBytes { left in right.withUnsafeBytes { compareBytes(left, $0) } }
  }

  /// A hash that is the same everywhere and forever.
  static func hash(_ key: RawSpan) -> UInt64 {
    key.withUnsafeBytes { bytes in
      let multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15
      var hash = UInt64(bytes.count) &* multiplier ^ 0xD1B5_4A32_D192_ED03
      @inline(__always)
      func mix(_ word: UInt64) {
        let product = (hash ^ word).multipliedFullWidth(by: multiplier)
        hash = (product.high ^ product.low) &+ word
      }
      var offset = 0
      while offset + 8 <= bytes.count {
        mix(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
        offset += 8
      }
      var last: UInt64 = 0
      while offset < bytes.count {
        last = last << 8 | UInt64(bytes[offset])
        offset += 1
      }
      mix(last)
      hash ^= hash >> 32
      hash = hash &* 0xD6E8_FEB8_6659_FD93
      return hash ^ hash >> 32
    }
  }

  static func entryKey(_ level: Int, _ boundary: [UInt8]) -> [UInt8] { [UInt8(level)] + boundary }

  /// The entries of a level whose boundaries are in `from ..< to`.
  static func entryRange(_ level: Int, from: [UInt8], to: [UInt8]?) -> KeyRange {
    KeyRange(
      lower: .inclusive(entryKey(level, from)),
      upper: .exclusive(to.map { entryKey(level, $0) } ?? [UInt8(level + 1)]))
  }

  static func rowRange(from: [UInt8], to: [UInt8]?) -> KeyRange {
    KeyRange(
      lower: from.isEmpty ? .unbounded : .inclusive(from), upper: to.map { .exclusive($0) } ?? .unbounded)
  }

  /// Reads a block's value and lends its partial.
  static func withBlock(_ value: RawSpan, _ body: (_ rows: UInt64, _ partial: RawSpan) throws -> Void) throws
  {
    var reader = ByteReader(value)
    guard let rows = reader.varint(), rows > 0, rows <= UInt64(Int.max) else { throw ViewReduceError.damaged }
    try body(rows, reader.rest)
  }

  static func write(_ rows: UInt64, _ reduction: (any Reduction)?, into value: inout ByteBuffer) throws {
    value.append(varint: rows)
    try reduction?.write(to: &value)
  }

  func makePartial() throws -> (any Reduction)? { storesPartials ? try reducer?.makeReduction() : nil }

  // MARK: Changes

  /// Notes that a row was put. `old` is the row's value before, or nil. `finish` takes it over.
  package func rowPut(_ key: RawSpan, old: RawSpan?, new: RawSpan) {
    let before: [UInt8]? = if let old { [UInt8](copying: old) } else { nil }
    changes.append(RowChange(key: [UInt8](copying: key), old: before, new: [UInt8](copying: new)))
  }

  /// Notes that a row was removed. `old` is the value that it had.
  package func rowRemoved(_ key: RawSpan, old: RawSpan) {
    changes.append(RowChange(key: [UInt8](copying: key), old: [UInt8](copying: old), new: nil))
  }

  /// The number of noted changes.
  package var changeCount: Int { changes.count }

  /// Forgets the noted changes, when their transaction is undone.
  package func forget() { changes.removeAll() }

  /// Brings the stored blocks up to date with the noted changes. All of them are made in `rows` before.
  package func finish(in transaction: any WriteTransaction) throws {
    let sorted = takeChanges()
    guard !sorted.isEmpty else { return }
    let update = try ReductionUpdate(self, sorted, transaction)
    for level in 1...levels { try update.run(level) }
  }

  /// The noted changes in the order of keys, one of each row.
  private func takeChanges() -> [RowChange] {
    defer { changes.removeAll() }
    // The order of changes of one row counts.
    let order = changes.indices.sorted { left, right in
      let compared = ReductionTree.order(changes[left].key, changes[right].key)
      return compared == 0 ? left < right : compared < 0
    }
    var sorted: [RowChange] = []
    for index in order {
      let change = changes[index]
      if let last = sorted.last, last.key == change.key {
        sorted[sorted.count - 1].new = change.new
      } else {
        sorted.append(change)
      }
    }
    sorted.removeAll { $0.old == $0.new }
    for index in sorted.indices { sorted[index].level = level(of: sorted[index].key) }
    return sorted
  }
}
