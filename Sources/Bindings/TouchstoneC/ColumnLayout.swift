import CTouchstone
import Touchstone

// A column as Apache Arrow lays it out (https://arrow.apache.org/docs/format/Columnar.html):
//
//   validity   a bit for each row, the lowest bit of a byte first; 1 if it has a value
//   BOOL       a bit for each row
//   INT64      8 bytes for each row, in the order of the machine
//   DOUBLE     the same
//   TEXT, JSON count + 1 offsets of 8 bytes, and UTF-8

/// The values of a column, in memory of its own that never moves.
final class ColumnLayout {
  let type: Int
  let count: Int
  let nullCount: Int
  private(set) var validity: UnsafeMutablePointer<UInt8>?
  private(set) var values: UnsafeMutableRawPointer?
  private(set) var offsets: UnsafeMutablePointer<Int64>?

  init(_ results: QueryResults, _ column: Int) throws {
    count = results.count
    (type, nullCount) = Self.survey(results, column)
    if nullCount > 0 {
      let bits = Self.bitmap(count)
      validity = bits
      var index = 0
      for row in results {
        let value = row[column]
        if value.exists, !value.isNull { bits[index >> 3] |= 1 << UInt8(index & 7) }
        index += 1
      }
    }
    switch type {
    case Int(TOUCHSTONE_BOOL):
      let bits = Self.bitmap(count)
      values = UnsafeMutableRawPointer(bits)
      var index = 0
      for row in results {
        if row[column].bool == true { bits[index >> 3] |= 1 << UInt8(index & 7) }
        index += 1
      }
    case Int(TOUCHSTONE_INT64): fill(results) { $0[column].int ?? 0 }
    case Int(TOUCHSTONE_DOUBLE): fill(results) { $0[column].double ?? 0 }
    case Int(TOUCHSTONE_TEXT), Int(TOUCHSTONE_JSON): try fillText(results, column)
    default: break
    }
  }

  deinit {
    validity?.deallocate()
    values?.deallocate()
    offsets?.deallocate()
  }

  /// The type that all values of a column have, and the number of rows without a value.
  private static func survey(_ results: QueryResults, _ column: Int) -> (type: Int, nullCount: Int) {
    var (texts, ints, doubles, bools, nulls) = (0, 0, 0, 0, 0)
    for row in results {
      switch row[column].typeForC {
      case Int(TOUCHSTONE_TEXT): texts += 1
      case Int(TOUCHSTONE_INT64): ints += 1
      case Int(TOUCHSTONE_DOUBLE): doubles += 1
      case Int(TOUCHSTONE_BOOL): bools += 1
      case Int(TOUCHSTONE_NULL), Int(TOUCHSTONE_MISSING): nulls += 1
      default: return (Int(TOUCHSTONE_JSON), results.count { !$0[column].exists || $0[column].isNull })
      }
    }
    let some = results.count - nulls
    let type =
      some == 0
      ? TOUCHSTONE_NULL
      : texts == some
        ? TOUCHSTONE_TEXT
        : ints == some
          ? TOUCHSTONE_INT64
          : bools == some ? TOUCHSTONE_BOOL : ints + doubles == some ? TOUCHSTONE_DOUBLE : TOUCHSTONE_JSON
    return (Int(type), nulls)
  }

  private static func bitmap(_ count: Int) -> UnsafeMutablePointer<UInt8> {
    let bytes = max((count + 7) / 8, 1)
    let bits = UnsafeMutablePointer<UInt8>.allocate(capacity: bytes)
    bits.initialize(repeating: 0, count: bytes)
    return bits
  }

  private func fill<Number>(_ results: QueryResults, _ value: (QueryRow) -> Number) {
    let numbers = UnsafeMutablePointer<Number>.allocate(capacity: max(count, 1))
    var index = 0
    for row in results {
      (numbers + index).initialize(to: value(row))
      index += 1
    }
    values = UnsafeMutableRawPointer(numbers)
  }

  private func fillText(_ results: QueryResults, _ column: Int) throws {
    let places = UnsafeMutablePointer<Int64>.allocate(capacity: count + 1)
    offsets = places
    var text: [UInt8] = []
    let isText = type == Int(TOUCHSTONE_TEXT)
    var index = 0
    for row in results {
      places[index] = Int64(text.count)
      index += 1
      let value = row[column]
      guard value.exists, !value.isNull else { continue }
      if isText {
        value.withUTF8 { text.append(contentsOf: $0) }
      } else {
        try value.writeJSON(into: &text)
      }
    }
    places[index] = Int64(text.count)
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(text.count, 1), alignment: 8)
    copy.copyBytes(from: text)
    values = copy.baseAddress
  }
}
