import CPostgres
import Storage

/// The rows that a statement has returned, in the binary format. They stay in memory while this object is referenced.
///
/// `@unchecked Sendable`: libpq never changes a result.
final class Answer: @unchecked Sendable {
  private let result: OpaquePointer
  /// The number of rows.
  let count: Int
  /// The number of columns.
  var columns: Int { Int(PQnfields(result)) }

  init(_ result: OpaquePointer) {
    self.result = result
    count = Int(PQntuples(result))
  }

  deinit { PQclear(result) }

  /// Whether the field is NULL.
  @inline(__always)
  func isNull(_ row: Int, _ column: Int32) -> Bool { PQgetisnull(result, Int32(row), column) != 0 }

  /// The bytes of a field. They are valid while this object is referenced.
  @inline(__always)
  func bytes(_ row: Int, _ column: Int32) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(
      start: PQgetvalue(result, Int32(row), column), count: Int(PQgetlength(result, Int32(row), column)))
  }

  /// A field of type `smallint`, `integer` or `bigint`.
  func integer(_ row: Int, _ column: Int32) -> Int {
    let bytes = bytes(row, column)
    switch bytes.count {
    case 2: return Int(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
    case 4: return Int(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
    case 8: return Int(Int64(bigEndian: bytes.loadUnaligned(as: Int64.self)))
    default: return 0
    }
  }

  /// A field of type `text`.
  func text(_ row: Int, _ column: Int32) -> String { String(decoding: bytes(row, column), as: UTF8.self) }
}

/// A parameter of a statement, in the binary format.
enum Parameter {
  case integer(Int)
  case bytes(UnsafeRawBufferPointer)
  case text(String)
  /// The whole array, as `ArrayParameter` encodes it.
  case array(ArrayParameter)
}

/// Encodes new entries for a `COPY` of the table of entries, in PostgreSQL's binary format.
///
///     rows = "PGCOPY\n" FF "\r\n" 00 flags extension row* FFFF      flags and extension are integers of 4 bytes, 0
///     row  = fields (length bytes){3}                              fields is an integer of 2 bytes, 3; all are big-endian
struct CopiedRows {
  private(set) var bytes: [UInt8] =
    Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0] + [UInt8](repeating: 0, count: 8)
  private(set) var count = 0

  private mutating func append(_ number: some FixedWidthInteger) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func append(_ keyspace: Int, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    append(Int16(3))
    append(Int32(4))
    append(Int32(keyspace))
    append(Int32(key.count))
    bytes.append(contentsOf: key)
    append(Int32(value.count))
    bytes.append(contentsOf: value)
    count += 1
  }

  mutating func finish() { append(Int16(-1)) }
}

/// Encodes an array of `bytea` in PostgreSQL's binary format.
///
///     array   = dimensions flags type length lower element*      all integers big-endian, of 4 bytes
///     element = length bytes
struct ArrayParameter {
  private(set) var bytes: [UInt8] = []
  private(set) var count = 0

  init(capacity: Int = 0) {
    bytes.reserveCapacity(20 + capacity)
    for number: Int32 in [1, 0, Int32(Statement.byteaType), 0, 1] { append(number) }
  }

  private mutating func append(_ number: Int32) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func append(_ element: UnsafeRawBufferPointer) {
    append(Int32(element.count))
    bytes.append(contentsOf: element)
    count += 1
  }

  /// Writes the number of elements. An empty array has no dimension.
  mutating func finish() {
    withUnsafeBytes(of: Int32(count == 0 ? 0 : 1).bigEndian) { bytes.replaceSubrange(0..<4, with: $0) }
    if count == 0 {
      bytes.removeLast(bytes.count - 12)
    } else {
      withUnsafeBytes(of: Int32(count).bigEndian) { bytes.replaceSubrange(12..<16, with: $0) }
    }
  }
}
