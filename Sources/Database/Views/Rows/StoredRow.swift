import Bytes
import Documents
import Storage

// A row of a view, in the view's keyspace of rows (a `LongKeyspace`):
//
//   row key    := key  document ID  emission
//   key        := the emitted key, encoded in the view's collation (docs/views.md); no key is a prefix of another
//   document ID:= text 00             as in docs/ordered-keys.md: bytes 00 and 01 are escaped
//   emission   := nothing | n:u32 big-endian     the document's nth other row with an equal key, from 1
//
//   row value  := flags:u8  keyLength:varint  sequence:varint  jsonLength:varint  special  key's JSON  value's JSON
//   special    := nothing | length:varint  box GeoJSON | length:varint  text
//   box        := x0:f64 y0:f64 x1:f64 y1:f64    little-endian
//
//   flags      1 the value is the document itself, whose JSON isn't stored; 2 there is no value (it reads as null);
//              plus 4 if a box was emitted as the key, which is null then; plus 8 if a text was
//   keyLength  the bytes of the key in the row key
//   sequence   that of the revision that was mapped

/// A stored row, in place.
package struct StoredRow: ~Escapable {
  /// What a row's value is.
  package enum ValueKind: Sendable, Equatable {
    /// JSON.
    case json
    /// The document that was mapped.
    case document
    /// Nothing.
    case none
  }

  /// What was emitted as a key besides JSON.
  package enum SpecialKind: UInt8, Sendable {
    /// Nothing.
    case none = 0
    /// A box, and GeoJSON if it was made of that.
    case box = 4
    /// A text.
    case text = 8
  }

  /// The whole row key.
  package let rowKey: RawSpan
  /// The encoded key.
  package let key: RawSpan
  /// The key's JSON.
  package let keyJSON: RawSpan
  /// The document's ID as it is stored: escaped, without the 00 at its end.
  package let escapedID: RawSpan
  /// The number of the emission among those of its document with an equal key, from 0.
  package let emission: UInt32
  /// The kind of the value.
  package let kind: ValueKind
  /// The value's JSON; empty unless `kind` is `json`.
  package let valueJSON: RawSpan
  /// The sequence of the revision that was mapped.
  package let sequence: UInt64
  /// What was emitted as a key besides JSON.
  package let specialKind: SpecialKind
  /// Its bytes.
  package let special: RawSpan

  static let isDocument: UInt8 = 1
  static let hasNoValue: UInt8 = 2

  /// Reads a row. Throws `damaged`.
  @_lifetime(copy rowKey, copy value)
  package init(_ rowKey: RawSpan, _ value: RawSpan) throws {
    var reader = ByteReader(value)
    guard let flags = reader.byte(), flags & 3 <= 2, let specialKind = SpecialKind(rawValue: flags & ~3),
      let keyLength = reader.varint(), let sequence = reader.varint(),
      let jsonLength = reader.varint(), keyLength > 0, keyLength < UInt64(rowKey.byteCount)
    else { throw StoredRow.damaged }
    self.specialKind = specialKind
    if specialKind == .none {
      special = RawSpan()
    } else {
      guard let length = reader.varint(), let bytes = reader.bytes(Int(clamping: length)) else {
        throw StoredRow.damaged
      }
      special = bytes
    }
    guard let json = reader.bytes(Int(clamping: jsonLength)) else { throw StoredRow.damaged }
    self.rowKey = rowKey
    self.sequence = sequence
    kind = flags & 3 == StoredRow.isDocument ? .document : flags & 3 == StoredRow.hasNoValue ? .none : .json
    keyJSON = json
    valueJSON = reader.rest
    key = rowKey.extracting(first: Int(keyLength))
    let rest = rowKey.extracting(droppingFirst: Int(keyLength))
    // The ID has no byte 00, and an emission may.
    var end = 0
    while end < rest.byteCount, rest.unsafeLoad(fromByteOffset: end, as: UInt8.self) != 0 { end += 1 }
    switch rest.byteCount - end {
    case 1: emission = 0
    case 5: emission = UInt32(bigEndian: rest.unsafeLoadUnaligned(fromByteOffset: end + 1, as: UInt32.self))
    default: throw StoredRow.damaged
    }
    escapedID = rest.extracting(first: end)
  }

  /// The end of the row key: the document and the emission, which name the row in the indexes of special keys.
  var end: RawSpan {
    @_lifetime(copy self)
    get { rowKey.extracting(droppingFirst: key.byteCount) }
  }

  /// Whether the value of a row has a special key.
  @inline(__always)
  static func isSpecial(_ value: RawSpan) -> Bool {
    value.byteCount > 0 && value.unsafeLoad(as: UInt8.self) > 3
  }

  /// The kind of a stored value.
  static func valueKind(_ value: UnsafeRawBufferPointer) -> ValueKind {
    guard let flags = value.first else { return .none }
    return flags & isDocument != 0 ? .document : flags & hasNoValue != 0 ? .none : .json
  }

  /// The value's JSON in a stored value that was written here; empty if it can't be read.
  static func valueJSON(_ value: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let empty = UnsafeRawBufferPointer(start: nil, count: 0)
    var reader = ByteReader(value.bytes)
    guard let flags = reader.byte(), reader.varint() != nil, reader.varint() != nil,
      let jsonLength = reader.varint()
    else { return empty }
    if flags > 3 {
      guard let length = reader.varint(), reader.bytes(Int(clamping: length)) != nil else { return empty }
    }
    guard reader.bytes(Int(clamping: jsonLength)) != nil else { return empty }
    return UnsafeRawBufferPointer(rebasing: value.suffix(reader.rest.byteCount))
  }

  /// A copy of the document's ID.
  package var documentID: String {
    var bytes: [UInt8] = []
    StoredRow.unescape(escapedID, into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  static var damaged: DocumentError { DocumentError(.damaged, "a row of a view can't be read") }

  /// Appends the text that `escape` made from bytes.
  static func unescape(_ escaped: RawSpan, into bytes: inout [UInt8]) {
    bytes.reserveCapacity(bytes.count + escaped.byteCount)
    var index = 0
    while index < escaped.byteCount {
      var byte = escaped.unsafeLoad(fromByteOffset: index, as: UInt8.self)
      index += 1
      if byte == 1, index < escaped.byteCount {
        byte = escaped.unsafeLoad(fromByteOffset: index, as: UInt8.self) &- 1
        index += 1
      }
      bytes.append(byte)
    }
  }

  /// Appends a document's ID as row keys have it, with the 00 at its end.
  static func escape(_ id: UnsafeRawBufferPointer, into key: inout ByteBuffer) {
    guard !id.allSatisfy({ $0 >= 2 }) else {
      // Every ID that can be stored.
      key.append(id)
      return key.append(0)
    }
    key.reserve(2 * id.count + 1)
    for byte in id {
      if byte < 2 {
        key.append(1)
        key.append(byte + 1)
      } else {
        key.append(byte)
      }
    }
    key.append(0)
  }

  /// Appends the value of a row but for the value's JSON, which follows.
  @inline(__always)
  static func write(
    kind: ValueKind, keyLength: Int, sequence: UInt64, keyJSON: UnsafeRawBufferPointer,
    _ specialKind: SpecialKind = .none,
    special: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0),
    into value: inout ByteBuffer
  ) {
    value.append((kind == .document ? isDocument : kind == .none ? hasNoValue : 0) | specialKind.rawValue)
    value.append(varint: UInt64(keyLength))
    value.append(varint: sequence)
    value.append(varint: UInt64(keyJSON.count))
    if specialKind != .none {
      value.append(varint: UInt64(special.count))
      value.append(special)
    }
    value.append(keyJSON)
  }
}
