import Bytes
import Storage

// The keyspace `view.N.boxes`, a `LongKeyspace`: an entry for each row with a box.
//
//   key    = class:u8  place:u64  y0:f64  x0:f64  document ID 00  emission
//   value  = x1:f64  y1:f64
//
//   class        the number of bits of the box's greater side, in coordinates of the curve: 0 for a point
//   place        that of the corner x0, y0 on the curve (GeoCurve.swift)
//   f64          a double whose bytes sort as the numbers do
//   document ID, emission   the end of the row's key (StoredRow.swift)
//
// All numbers are big-endian. A box of class c is less than 2^c wide and high. So the boxes of a class that meet an area
// have their corner in the area, or less than 2^c to the left of it or below it.

/// An entry of the index of boxes, in place.
struct GeoEntry: ~Escapable {
  /// The corner and the end of the row's key: what results are ordered by.
  let orderKey: RawSpan
  let rect: GeoRect
  let sizeClass: UInt8
  let place: UInt64

  private static let cornerOffset = 9
  /// Where the end of the row's key begins in `orderKey`.
  static let rowOffset = 16

  /// Reads an entry. Throws `damaged`.
  @_lifetime(copy key)
  init(_ key: RawSpan, _ value: RawSpan) throws {
    guard key.byteCount > GeoEntry.cornerOffset + GeoEntry.rowOffset, value.byteCount == 16 else {
      throw GeoEntry.damaged
    }
    sizeClass = key.unsafeLoad(as: UInt8.self)
    place = GeoEntry.word(1, key)
    orderKey = key.extracting(droppingFirst: GeoEntry.cornerOffset)
    rect = GeoRect(
      x0: GeoEntry.double(GeoEntry.word(17, key)), y0: GeoEntry.double(GeoEntry.word(9, key)),
      x1: GeoEntry.double(GeoEntry.word(0, value)), y1: GeoEntry.double(GeoEntry.word(8, value)))
  }

  static var damaged: StorageError {
    StorageError(.damaged, "an entry of a view's index of boxes can't be read")
  }

  private static func word(_ offset: Int, _ bytes: RawSpan) -> UInt64 {
    UInt64(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// The bits of a double in the order of the numbers.
  private static func bits(_ value: Double) -> UInt64 {
    let bits = value.bitPattern
    return bits >> 63 == 0 ? bits | 1 << 63 : ~bits
  }

  private static func double(_ bits: UInt64) -> Double {
    Double(bitPattern: bits >> 63 == 0 ? ~bits : bits & ~(1 << 63))
  }

  /// Appends the key of a box. `row` is the end of the row's key.
  static func appendKey(_ rect: GeoRect, row: RawSpan, to key: inout ByteBuffer) {
    let (x, y) = (GeoCurve.coordinate(rect.x0), GeoCurve.coordinate(rect.y0))
    let side = max(GeoCurve.coordinate(rect.x1) - x, GeoCurve.coordinate(rect.y1) - y)
    key.append(UInt8(UInt32.bitWidth - side.leadingZeroBitCount))
    key.append(bigEndian: GeoCurve.place(x, y))
    key.append(bigEndian: bits(rect.y0))
    key.append(bigEndian: bits(rect.x0))
    key.append(row)
  }

  /// Appends the value of a box.
  static func appendValue(_ rect: GeoRect, to value: inout ByteBuffer) {
    value.append(bigEndian: bits(rect.x1))
    value.append(bigEndian: bits(rect.y1))
  }
}

/// Finds the boxes that meet an area. One thread at a time.
struct GeoSearch {
  /// The number of entries outside of the area after which the search goes on behind them with a seek.
  private static let misses = 8

  let boxes: LongKeyspace
  let area: GeoRect

  /// Calls `body` with each box that has inner points of the area, in any order, until it returns false. `check` is called
  /// now and then, and may throw.
  func forEach(
    in transaction: any ReadTransaction, check: () throws -> Void, _ body: (borrowing GeoEntry) throws -> Bool
  ) throws {
    let cursor = try boxes.cursor(.all, in: transaction)
    var sizeClass: UInt8 = 0
    while sizeClass <= 32 {
      try check()
      guard try seek(cursor, sizeClass, place: 0) else { return }
      // The next class that there is.
      sizeClass = try cursor.withEntry { key, _ in key.unsafeLoad(as: UInt8.self) }
      guard sizeClass <= 32 else { throw GeoEntry.damaged }
      guard try forEach(ofClass: sizeClass, cursor, check: check, body) else { return }
      sizeClass += 1
    }
  }

  private func forEach(
    ofClass sizeClass: UInt8, _ cursor: LongCursor, check: () throws -> Void,
    _ body: (borrowing GeoEntry) throws -> Bool
  ) throws -> Bool {
    let reach = UInt32(truncatingIfNeeded: (UInt64(1) << UInt64(sizeClass)) - 1)
    func corner(_ value: Double) -> UInt32 {
      let coordinate = GeoCurve.coordinate(value)
      return coordinate > reach ? coordinate - reach : 0
    }
    let (left, bottom) = (corner(area.x0), corner(area.y0))
    let (right, top) = (GeoCurve.coordinate(area.x1), GeoCurve.coordinate(area.y1))
    let (lower, upper) = (GeoCurve.place(left, bottom), GeoCurve.place(right, top))
    var misses = 0
    var isThere = try seek(cursor, sizeClass, place: lower)
    while isThere {
      enum Step {
        case next
        case seek(UInt64)
        case stop
        case end
      }
      let step: Step = try cursor.withEntry { key, value in
        let entry = try GeoEntry(key, value)
        guard entry.sizeClass == sizeClass, entry.place <= upper else { return .end }
        let (x, y) = GeoCurve.coordinates(of: entry.place)
        if x >= left, x <= right, y >= bottom, y <= top {
          misses = 0
          return try !entry.rect.intersects(area) || body(entry) ? .next : .stop
        }
        misses += 1
        guard misses == GeoSearch.misses else { return .next }
        misses = 0
        return GeoCurve.next(from: entry.place, lower: lower, upper: upper).map { .seek($0) } ?? .end
      }
      switch step {
      case .next: isThere = try cursor.next()
      case .seek(let place):
        try check()
        isThere = try seek(cursor, sizeClass, place: place)
      case .stop: return false
      case .end: return true
      }
    }
    return true
  }

  private func seek(_ cursor: LongCursor, _ sizeClass: UInt8, place: UInt64) throws -> Bool {
    var key = ByteBuffer(capacity: 16)
    key.append(sizeClass)
    key.append(bigEndian: place)
    return try cursor.seek(key.bytes.bytes)
  }
}
