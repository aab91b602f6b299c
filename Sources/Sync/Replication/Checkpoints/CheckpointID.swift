// The ID of a checkpoint, as Couchbase Lite 2.x makes it, so that a database that goes over to this library, or ships
// with an app, goes on where its replication stopped:
//
//   ID    := "cp-" base64(SHA-1(Fleece))
//   Fleece := [UUID, remote ID]                                                     16 bytes as a string; a string
//           | [UUID, remote ID, channels, filter, filter parameters, document IDs]  if one of them is set; else null
//
// UUID is the private one of the database.
//
// In the protocol of 1.x each direction has its own document under `_local/`, named by the SHA-1 in hexadecimal digits of
// canonical JSON: {"docids":…, "filter":…, "filterParams":…, "localUUID":…, "push":…, "remoteURL":…}. What isn't set is left
// out. 1.x adds "continuous":false for a replication that ends; here both have the same checkpoint.

import Blobs
import Bytes
import CCrypto
import Fleece

/// Makes checkpoint IDs.
struct CheckpointID {
  var remoteID: String
  var channels: [String]?
  var filter: String?
  var filterParameters: [String: JSONValue] = [:]
  var selector: JSONValue?
  var documentIDs: [String]?

  /// Returns the ID for a database with this private UUID (16 bytes).
  func text(_ privateUUID: [UInt8]) throws -> String { "cp-" + base64(try Self.digest(fleece(privateUUID))) }

  /// Returns the names in the protocol of 1.x for a database with this private UUID (16 bytes).
  func legacyNames(_ privateUUID: [UInt8]) throws -> LegacyCheckpointNames {
    func name(push: Bool) throws -> String {
      var members: JSONObject = [
        "localUUID": .string(Self.uuidText(privateUUID)), "push": .bool(push), "remoteURL": .string(remoteID),
      ]
      var (filter, parameters) = (filter, filterParameters)
      if let channels, !channels.isEmpty {
        filter = "sync_gateway/bychannel"
        parameters["channels"] = .string(channels.joined(separator: ","))
      }
      if let filter { members["filter"] = .string(filter) }
      if !parameters.isEmpty { members["filterParams"] = .object(JSONObject(parameters)) }
      if let documentIDs, !documentIDs.isEmpty { members["docids"] = .array(documentIDs.map { .string($0) }) }
      if let selector { members["selector"] = selector }
      return Hex.text(try Self.digest(Array(JSONValue.object(members).canonicalJSON().utf8)))
    }
    return LegacyCheckpointNames(push: try name(push: true), pull: try name(push: false))
  }

  /// As 1.x has it: `8-4-4-4-12` digits, in upper case.
  private static func uuidText(_ uuid: [UInt8]) -> String {
    let digits = Array(Hex.text(uuid, isUpper: true))
    guard digits.count == 32 else { return String(digits) }
    return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }.joined(separator: "-")
  }

  private static func digest(_ bytes: [UInt8]) throws -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 20)
    var count = digest.count
    guard EVP_Q_digest(nil, "SHA1", nil, bytes, bytes.count, &digest, &count) == 1, count == 20 else {
      throw ReplicationError(.touchstone, 590, "libcrypto doesn't provide SHA-1")
    }
    return digest
  }

  func fleece(_ privateUUID: [UInt8]) -> [UInt8] {
    var writer = FleeceWriter()
    var items = [writer.string(privateUUID), writer.string(Array(remoteID.utf8))]
    let channels = channels ?? []
    let documents = documentIDs ?? []
    if !channels.isEmpty || !documents.isEmpty || filter != nil || selector != nil {
      func strings(_ texts: [String]) -> FleeceWriter.Item {
        texts.isEmpty ? .null : writer.array(texts.map { writer.string(Array($0.utf8)) })
      }
      items.append(strings(channels))
      items.append(filter.map { writer.string(Array($0.utf8)) } ?? .null)
      items.append(
        filterParameters.isEmpty
          ? .null : writer.value(.object(JSONObject(filterParameters.map { ($0, $1) }))))
      items.append(strings(documents))
      if let selector { items.append(writer.value(selector)) }
    }
    let root = writer.array(items)
    return writer.finish(root)
  }
}

/// Writes Fleece as LiteCore's encoder does without shared keys: strings may be any bytes.
private struct FleeceWriter {
  /// A value: two bytes in its place, or the offset of what was written.
  enum Item {
    case inline(UInt8, UInt8)
    case offset(Int)

    static let null = Item.inline(0x30, 0)
  }

  private var bytes: [UInt8] = []
  private var strings: [[UInt8]: Int] = [:]

  private mutating func begin() -> Int {
    if bytes.count & 1 == 1 { bytes.append(0) }
    return bytes.count
  }

  mutating func string(_ text: [UInt8]) -> Item {
    if text.isEmpty { return .inline(0x40, 0) }
    if text.count == 1 { return .inline(0x41, text[0]) }
    if let known = strings[text] { return .offset(known) }
    let start = begin()
    if text.count < 15 {
      bytes.append(0x40 | UInt8(text.count))
    } else {
      bytes.append(0x4F)
      append(varint: text.count)
    }
    bytes += text
    if text.count <= 100 { strings[text] = start }
    return .offset(start)
  }

  private mutating func append(varint value: Int) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func array(_ items: [Item]) -> Item { collection(0x60, items, count: items.count) }

  private mutating func collection(_ tag: UInt8, _ slots: [Item], count: Int) -> Item {
    if count == 0 { return .inline(tag, 0) }
    let start = begin()
    let short = min(count, 0x7FF)
    bytes.append(tag | UInt8(short >> 8))
    bytes.append(UInt8(truncatingIfNeeded: short))
    if count >= 0x7FF {
      append(varint: count - 0x7FF)
      _ = begin()
    }
    let first = bytes.count
    func reach(_ width: Int) -> Int {
      slots.enumerated().map { index, item in
        if case .offset(let offset) = item { (first + index * width - offset) / 2 } else { 0 }
      }.max() ?? 0
    }
    let isWide = reach(2) > 0x7FFF
    if isWide { bytes[start] |= 0x08 }
    for item in slots {
      switch item {
      case .inline(let high, let low): bytes += isWide ? [high, low, 0, 0] : [high, low]
      case .offset(let offset):
        let distance = (bytes.count - offset) / 2
        if isWide {
          let bits = UInt32(distance) | 0x8000_0000
          bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: bits >> $0) }
        } else {
          let bits = UInt16(distance) | 0x8000
          bytes += [UInt8(bits >> 8), UInt8(truncatingIfNeeded: bits)]
        }
      }
    }
    return .offset(start)
  }

  mutating func value(_ value: JSONValue) -> Item {
    switch value {
    case .null: return .null
    case .bool(let bool): return .inline(bool ? 0x38 : 0x34, 0)
    case .string(let text): return string(Array(text.utf8))
    case .array(let items):
      var encoded: [Item] = []
      for item in items { encoded.append(self.value(item)) }
      return array(encoded)
    case .object(let object):
      var slots: [Item] = []
      for name in object.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
        slots.append(string(Array(name.utf8)))
        slots.append(self.value(object[name] ?? .null))
      }
      return collection(0x70, slots, count: slots.count / 2)
    default:
      if let int = value.int, int >= -2048, int < 2048 {
        let bits = UInt16(bitPattern: Int16(int)) & 0x0FFF
        return .inline(UInt8(bits >> 8), UInt8(truncatingIfNeeded: bits))
      }
      let start = begin()
      if let int = value.int {
        var count = 1
        while count < 8, int < -(Int64(1) << (8 * count - 1)) || int >= Int64(1) << (8 * count - 1) {
          count += 1
        }
        bytes.append(0x10 | UInt8(count - 1))
        for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: int >> Int64(8 * index))) }
      } else {
        bytes += [0x28, 0]
        let bits = (value.double ?? 0).bitPattern
        for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: bits >> UInt64(8 * index))) }
      }
      return .offset(start)
    }
  }

  /// Returns the bytes of the document with that root.
  mutating func finish(_ root: Item) -> [UInt8] {
    let end = begin()
    switch root {
    case .inline(let high, let low): bytes += [high, low]
    case .offset(let offset):
      let distance = (end - offset) / 2
      if distance <= 0x7FFF {
        let bits = UInt16(distance) | 0x8000
        bytes += [UInt8(bits >> 8), UInt8(truncatingIfNeeded: bits)]
      } else {
        // A wide pointer, and a narrow one to it.
        let bits = UInt32(distance) | 0x8000_0000
        bytes += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: bits >> $0) }
        bytes += [0x80, 0x02]
      }
    }
    return bytes
  }
}
