import Bytes
import Storage

// The format of an entry of a value index.
//
//   key    := values documentID                        up to 510 bytes, as docs/ordered-keys.md has it
//           | first 479 bytes of that  SHA-256 of it   511 bytes: a cut key
//   value  := nothing                                  the key is whole, gives everything back, and is there once
//           | flags:u8 count? doubles? opaque? whole?
//   flags  1 count:varint    the document has as many items of these values (array indexes), 2 or more
//          2 doubles:varint  a bit for each expression whose value was a double, where the key has an integer
//          4 opaque:varint   a bit for each expression whose value the key doesn't give back
//          8 whole           valuesLength:varint, and the key before it was cut: to the end
//
// An entry identifies its document. For covering queries it also contains the values.

/// The details of an entry that aren't in its key.
struct ValueIndexEntryDetails: BitwiseCopyable, Equatable {
  /// The number of items of the document that have these values.
  var count: UInt32 = 1
  var doubles: UInt32 = 0
  var opaque: UInt32 = 0

  static let hasCount: UInt8 = 1
  static let hasDoubles: UInt8 = 2
  static let hasOpaque: UInt8 = 4
  static let hasWhole: UInt8 = 8

  @inline(__always)
  var isPlain: Bool { count == 1 && doubles == 0 && opaque == 0 }
}

/// An entry of a value index, without a copy. It is valid inside the closure that receives it.
struct ValueIndexEntry: BitwiseCopyable {
  /// The whole key: the encoded values in order, then the document's ID.
  let key: UnsafeRawBufferPointer
  let details: ValueIndexEntryDetails
  /// The offset of the document's ID in `key`.
  let valuesLength: Int

  @inline(__always)
  init(key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, columns: Int) throws {
    if _fastPath(value.count == 0 && key.count < StorageLimits.maximumKeyBytes) {
      self.key = key
      details = ValueIndexEntryDetails()
      valuesLength = try ValueIndexEntry.valuesLength(of: key, columns)
    } else {
      let whole: (offset: Int, valuesLength: Int)?
      (details, whole) = try ValueIndexEntry.details(of: value)
      guard (whole != nil) == (key.count == StorageLimits.maximumKeyBytes) else {
        throw ValueIndexEntry.damaged
      }
      self.key = whole.map { UnsafeRawBufferPointer(rebasing: value[$0.offset...]) } ?? key
      valuesLength = try whole?.valuesLength ?? ValueIndexEntry.valuesLength(of: key, columns)
    }
  }

  /// Decodes an entry's value. For a cut key it also returns the offset of the whole key in the value, and
  /// the length of the values in that key.
  @inline(never)
  private static func details(of value: UnsafeRawBufferPointer) throws -> (
    ValueIndexEntryDetails, whole: (offset: Int, valuesLength: Int)?
  ) {
    typealias Details = ValueIndexEntryDetails
    var offset = 1
    var details = Details()
    func number() throws -> UInt32 {
      guard let number = value.varint(at: &offset).flatMap({ UInt32(exactly: $0) }), number > 0 else {
        throw ValueIndexEntry.damaged
      }
      return number
    }
    let flags = value.first ?? 0
    guard flags != 0, flags & 0xF0 == 0 else { throw ValueIndexEntry.damaged }
    if flags & Details.hasCount != 0 { details.count = try number() }
    if flags & Details.hasDoubles != 0 { details.doubles = try number() }
    if flags & Details.hasOpaque != 0 { details.opaque = try number() }
    guard flags & Details.hasWhole != 0 else {
      guard offset == value.count else { throw ValueIndexEntry.damaged }
      return (details, nil)
    }
    guard let length = value.varint(at: &offset), length < UInt64(value.count - offset) else {
      throw ValueIndexEntry.damaged
    }
    return (details, (offset, Int(length)))
  }

  /// The document's ID, in UTF-8.
  @inline(__always)
  var documentID: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: key[valuesLength...]) }

  /// The encoded values.
  var values: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: key[..<valuesLength]) }

  /// Whether the entry contains the values of all `columns` (one bit for each expression). If not, the
  /// document has to be read.
  @inline(__always)
  func givesBack(_ columns: UInt32 = .max) -> Bool { details.opaque & columns == 0 }

  /// Decodes the values into `columns`, one for each expression. Text points into the entry, and values that
  /// have to be built are in `arena`. Values that the entry doesn't contain are missing.
  ///
  /// - Throws: `index` for bytes that aren't an entry.
  func read(into columns: UnsafeMutablePointer<QueryValue>, count: Int, _ arena: EvaluationArena) throws {
    var decoder = OrderedKeyDecoder(values)
    do {
      for index in 0..<count {
        let value = try arena.value(from: &decoder) ?? .missing
        columns[index] = value
        if _slowPath(details.doubles != 0), details.doubles & (1 << UInt32(index)) != 0 {
          switch value {
          case .int(let integer): columns[index] = .double(Double(integer))
          case .uint(let integer): columns[index] = .double(Double(integer))
          default: break
          }
        }
      }
    } catch { throw ValueIndexEntry.damaged }
  }

  /// The length of the first `columns` values of a key, in bytes.
  @inline(__always)
  static func valuesLength(of key: UnsafeRawBufferPointer, _ columns: Int) throws -> Int {
    var decoder = OrderedKeyDecoder(key)
    do { try decoder.skip(columns) } catch { throw ValueIndexEntry.damaged }
    guard decoder.offset < key.count else { throw ValueIndexEntry.damaged }
    return decoder.offset
  }

  static let damaged = QueryError(.index, "an entry of the index can't be read; check the database")
}
