import Bytes
import Documents
import Fleece

/// Makes rows of what map functions and scripts emit. Used on one thread at a time.
final class RowEmitter {
  /// What the key, the value and the special key of a row may have together, in bytes of JSON.
  static let maximumRowBytes = 256 << 20

  let rows: MappedRows
  var encoder: ViewKeyEncoder
  var view = 0
  /// The first emission of the document that can't be stored.
  var failure: String?
  private struct State: ~Copyable {
    var key = ByteBuffer(capacity: 256)
    var keyText: [UInt8] = []
    var valueText: [UInt8] = []
  }

  // A pointer avoids exclusivity checks at run time.
  private let state: UnsafeMutablePointer<State>
  private var key: ByteBuffer {
    @inline(__always) _read { yield state.pointee.key }
    @inline(__always) _modify { yield &state.pointee.key }
  }
  private var keyText: [UInt8] {
    @inline(__always) _read { yield state.pointee.keyText }
    @inline(__always) _modify { yield &state.pointee.keyText }
  }
  private var valueText: [UInt8] {
    @inline(__always) _read { yield state.pointee.valueText }
    @inline(__always) _modify { yield &state.pointee.valueText }
  }
  private var special: [UInt8] = []
  private let sharedKeys: SharedKeys

  init(_ rows: MappedRows, _ encoder: ViewKeyEncoder, _ sharedKeys: SharedKeys) {
    self.rows = rows
    self.encoder = encoder
    self.sharedKeys = sharedKeys
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  // MARK: Parts

  func take(_ special: some SpecialKey, value setValue: () throws -> StoredRow.ValueKind) {
    self.special.removeAll(keepingCapacity: true)
    var specialKind = StoredRow.SpecialKind.none
    take {
      specialKind = try special.specialKeyContent.write(to: &self.special)
      return try setKey(JSONValue.null)
    } value: {
      try setValue()
    } add: { kind in
      keyText.withUnsafeBytes { keyJSON in
        valueText.withUnsafeBytes { valueJSON in
          self.special.withUnsafeBytes { special in
            add(keyJSON, kind, valueJSON, specialKind, special)
          }
        }
      }
    }
  }

  @inline(__always)
  func take(key setKey: () throws -> Bool, value setValue: () throws -> StoredRow.ValueKind) {
    take(key: setKey, value: setValue, add: add)
  }

  @inline(__always)
  func take(
    key setKey: () throws -> Bool, value setValue: () throws -> StoredRow.ValueKind,
    add: (StoredRow.ValueKind) -> Void
  ) {
    key.removeAll()
    keyText.removeAll(keepingCapacity: true)
    valueText.removeAll(keepingCapacity: true)
    do {
      guard try setKey() else { return }
      let kind = try setValue()
      add(kind)
    } catch {
      if failure == nil { failure = "an emission can't be stored: \(error)" }
    }
  }

  private func add(_ kind: StoredRow.ValueKind) {
    keyText.withUnsafeBytes { keyJSON in
      valueText.withUnsafeBytes { valueJSON in
        add(keyJSON, kind, valueJSON)
      }
    }
  }

  private func add(
    _ keyJSON: UnsafeRawBufferPointer, _ kind: StoredRow.ValueKind, _ valueJSON: UnsafeRawBufferPointer,
    _ specialKind: StoredRow.SpecialKind = .none,
    _ special: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) {
    let count = keyJSON.count + valueJSON.count + special.count
    guard count <= RowEmitter.maximumRowBytes else {
      let limit = RowEmitter.maximumRowBytes
      if failure == nil { failure = "an emission has \(count) bytes, and at most \(limit) are allowed" }
      return
    }
    rows.add(
      view: view, key: key.bytes, keyJSON: keyJSON, kind, valueJSON: valueJSON, specialKind, special: special)
  }

  func setKey(_ value: Value?) throws -> Bool {
    guard let value else { return false }
    try value.writeJSON(sharedKeys: sharedKeys, into: &keyText)
    switch value.type {
    case .array, .dict:
      // Members of objects have the order of their names then, whatever numbers the names have in this database.
      try keyText.withUnsafeBytes { try encoder.append(json: $0, to: &key) }
    default:
      try encoder.append(value.unsafeValue, sharedKeys: sharedKeys, to: &key)
    }
    return true
  }

  func setKey(_ value: (any JSONConvertible)?) throws -> Bool {
    guard let value else { return false }
    let json = value.jsonValue
    try append(json, to: &keyText)
    switch json {
    case .array, .object: try keyText.withUnsafeBytes { try encoder.append(json: $0, to: &key) }
    default: try encoder.append(json, to: &key)
    }
    return true
  }

  func setValue(_ value: Value?) throws -> StoredRow.ValueKind {
    guard let value else { return .none }
    try value.writeJSON(sharedKeys: sharedKeys, into: &valueText)
    return .json
  }

  func setValue(_ value: (any JSONConvertible)?) throws -> StoredRow.ValueKind {
    guard let value else { return .none }
    try append(value.jsonValue, to: &valueText)
    return .json
  }

  private func append(_ value: JSONValue, to text: inout [UInt8]) throws {
    switch value {
    case .object, .array: text += try Array(value.canonicalJSON().utf8)
    default: text += try value.jsonText()
    }
  }

  /// Takes a row of a script, as JSON.
  func emit(keyJSON: UnsafeRawBufferPointer, _ kind: StoredRow.ValueKind, valueJSON: UnsafeRawBufferPointer) {
    key.removeAll()
    do {
      try encoder.append(json: keyJSON, to: &key)
      add(keyJSON, kind, valueJSON)
    } catch {
      if failure == nil { failure = "an emission can't be stored: \(error)" }
    }
  }
}
