import Bytes
import Documents
import Fleece

/// Makes rows of what map functions and scripts emit. Used on one thread at a time.
///
/// A row is written where it stays, in the memory of the mapped rows: the encoded key first. A row that can't be stored
/// is taken back.
final class RowEmitter {
  /// What the key, the value and the special key of a row may have together, in bytes of JSON.
  static let maximumRowBytes = 256 << 20
  /// What the encoded keys of a document's rows in one view may have together, in bytes. They are one value in the
  /// keyspace of sources, which an engine must be able to store.
  static let maximumKeyBytes = 256 << 20

  /// The view that rows are of, and the encoder of its keys.
  @exclusivity(unchecked) private var view = 0
  @exclusivity(unchecked) private var encoder: ViewKeyEncoder
  /// The first emission of the document that can't be stored.
  @exclusivity(unchecked) private var failure: String?

  /// The bytes of the document's keys, with what the keyspace of sources has besides.
  @exclusivity(unchecked) private var keyBytes = 0
  private let keyLimit: Int

  private let owner: MappedRows
  private let sharedKeys: SharedKeys
  // Pointers avoid exclusivity checks at run time.
  private let rows: UnsafeMutablePointer<MappedRows.State>
  /// The JSON of a key.
  private let keyText: UnsafeMutablePointer<ByteBuffer>

  init(
    _ rows: MappedRows, _ encoder: ViewKeyEncoder, _ sharedKeys: SharedKeys,
    keyLimit: Int = RowEmitter.maximumKeyBytes
  ) {
    self.keyLimit = keyLimit
    owner = rows
    self.rows = rows.state
    self.encoder = encoder
    self.sharedKeys = sharedKeys
    keyText = .allocate(capacity: 1)
    keyText.initialize(to: ByteBuffer(capacity: 256))
  }

  deinit {
    keyText.deinitialize(count: 1)
    keyText.deallocate()
  }

  /// Sets the view of the rows that follow.
  func begin(view: Int, _ encoder: ViewKeyEncoder) {
    self.view = view
    self.encoder = encoder
  }

  /// Ends a document in a view. Returns why its first emission that can't be stored can't; nil if there is none.
  @inline(__always)
  func endDocument() -> String? {
    keyBytes = 0
    guard _slowPath(failure != nil) else { return nil }
    defer { failure = nil }
    return failure
  }

  // MARK: Emissions

  /// A value in place.
  @inline(__always)
  func emit(_ key: Value, _ value: Value?) {
    guard let value else { return emit(key, .none) { _ in } }
    let plain = value.unsafeValue
    emit(key, .json) { text in try plain.writeJSON(sharedKeys: sharedKeys, into: &text) }
  }

  /// A key in place, with a value that `writeValue` appends the JSON of.
  @inline(__always)
  func emit(_ key: Value, _ kind: StoredRow.ValueKind, writeValue: (inout ByteBuffer) throws -> Void) {
    let key = key.unsafeValue
    add(kind, writeKey: { try append(key, to: &$0) }, writeValue: writeValue)
  }

  private func append(_ value: UnsafeValue, to key: inout ByteBuffer) throws {
    try value.writeJSON(sharedKeys: sharedKeys, into: &keyText.pointee)
    switch value.type {
    case .array, .dict:
      // Members of objects have the order of their names then, whatever numbers the names have in this database.
      try encoder.append(json: keyText.pointee.bytes, to: &key)
    default: try encoder.append(value, sharedKeys: sharedKeys, to: &key)
    }
  }

  /// A key in memory, with a value that `writeValue` appends the JSON of.
  func emit(
    _ key: any JSONConvertible, _ kind: StoredRow.ValueKind, writeValue: (inout ByteBuffer) throws -> Void
  ) {
    let value = key.jsonValue
    add(kind) { key in
      try RowEmitter.append(value, to: &keyText.pointee)
      switch value {
      case .array, .object: try encoder.append(json: keyText.pointee.bytes, to: &key)
      default: try encoder.append(value, to: &key)
      }
    } writeValue: { text in
      try writeValue(&text)
    }
  }

  /// A row for an index of places or texts. Its key is null.
  func emit(
    _ special: some SpecialKey, _ kind: StoredRow.ValueKind, writeValue: (inout ByteBuffer) throws -> Void
  ) {
    var bytes: [UInt8] = []
    do {
      let specialKind = try special.specialKeyContent.write(to: &bytes)
      try bytes.withUnsafeBytes { bytes in
        try add(kind, specialKind, bytes) { key in
          try RowEmitter.append(.null, to: &keyText.pointee)
          try encoder.append(.null, to: &key)
        } writeValue: { text in
          try writeValue(&text)
        }
      }
    } catch { fail(error) }
  }

  /// A row of a script, as JSON.
  func emit(keyJSON: UnsafeRawBufferPointer, _ kind: StoredRow.ValueKind, valueJSON: UnsafeRawBufferPointer) {
    add(kind) { key in
      keyText.pointee.append(keyJSON)
      try encoder.append(json: keyJSON, to: &key)
    } writeValue: {
      $0.append(valueJSON)
    }
  }

  /// Writes the JSON of a value in place.
  func write(_ value: Value, to text: inout ByteBuffer) throws {
    try value.unsafeValue.writeJSON(sharedKeys: sharedKeys, into: &text)
  }

  /// Writes the JSON of a value in memory.
  static func write(_ value: any JSONConvertible, to text: inout ByteBuffer) throws {
    try append(value.jsonValue, to: &text)
  }

  private static func append(_ value: JSONValue, to text: inout ByteBuffer) throws {
    switch value {
    case .object, .array:
      var json = try value.canonicalJSON()
      json.withUTF8 { text.append(UnsafeRawBufferPointer($0)) }
    default: try value.jsonText().withUnsafeBytes { text.append($0) }
    }
  }

  // MARK: Rows

  @inline(__always)
  private func add(
    _ kind: StoredRow.ValueKind, writeKey: (inout ByteBuffer) throws -> Void,
    writeValue: (inout ByteBuffer) throws -> Void
  ) {
    do {
      try add(
        kind, .none, UnsafeRawBufferPointer(start: nil, count: 0), writeKey: writeKey, writeValue: writeValue)
    } catch { fail(error) }
  }

  /// Adds a row. `writeKey` appends the encoded key to its argument, and the JSON to `keyText`.
  @inline(__always)
  private func add(
    _ kind: StoredRow.ValueKind, _ specialKind: StoredRow.SpecialKind, _ special: UnsafeRawBufferPointer,
    writeKey: (inout ByteBuffer) throws -> Void, writeValue: (inout ByteBuffer) throws -> Void
  ) throws {
    keyText.pointee.removeAll()
    let start = rows.pointee.bytes.count
    do { try writeKey(&rows.pointee.bytes) } catch {
      rows.pointee.bytes.truncate(to: start)
      throw error
    }
    keyBytes += rows.pointee.bytes.count - start + 8
    if _slowPath(keyBytes > keyLimit) {
      rows.pointee.bytes.truncate(to: start)
      throw TooManyKeys(limit: keyLimit)
    }
    let keyJSON = keyText.pointee.bytes
    try rows.pointee.add(view: view, keyAt: start, keyJSON: keyJSON, kind, specialKind, special: special) {
      text in
      let valueStart = text.count
      try writeValue(&text)
      let count = keyJSON.count + special.count + text.count - valueStart
      if _slowPath(count > RowEmitter.maximumRowBytes) { throw TooLong(count: count) }
    }
    if _slowPath(keyJSON.count > 1 << 16) { keyText.pointee.removeAll(keepingAtMost: 1 << 16) }
  }

  private struct TooLong: Error {
    let count: Int
  }

  private struct TooManyKeys: Error, CustomStringConvertible {
    let limit: Int
    var description: String { "the keys of a document's rows may have \(limit) bytes together" }
  }

  @inline(never)
  private func fail(_ error: any Error) {
    guard failure == nil else { return }
    if let error = error as? TooLong {
      let limit = RowEmitter.maximumRowBytes
      failure = "an emission has \(error.count) bytes, and at most \(limit) are allowed"
    } else {
      failure = "an emission can't be stored: \(error)"
    }
  }
}
