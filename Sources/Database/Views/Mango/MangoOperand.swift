import Bytes
import Fleece

/// A value that a condition compares with, ready to be compared.
package struct MangoOperand: Sendable {
  package let value: JSONValue
  /// ICU's sort key of a string; nil for what isn't a string.
  let sortKey: [UInt8]?

  init(_ value: JSONValue, _ collation: MangoCollation) {
    self.value = value
    sortKey = value.string.map { collation.sortKey(of: $0) }
  }
}

/// Compares JSON values as CouchDB's views do: null, false, true, numbers, strings in the order of ICU's root collation, arrays, objects.
///
/// Members of objects are compared in the order of their names' bytes; CouchDB compares them in the order in which they are stored.
/// Used on one thread at a time.
package final class MangoCollation {
  private let collator: ViewCollator?
  private var buffer = ByteBuffer(capacity: 256)

  /// Throws if ICU has no collator.
  package init() throws { collator = try ViewCollator(hasGuideOrder: false) }

  func sortKey(of text: String) -> [UInt8] {
    var text = text
    return text.withUTF8 { utf8 in
      buffer.removeAll(keepingAtMost: 1 << 16)
      // ICU only fails without memory. What has no key is in the order of its bytes.
      guard let collator, (try? collator.append(UnsafeRawBufferPointer(utf8), to: &buffer)) != nil else {
        return Array(utf8)
      }
      return [UInt8](buffer.bytes)
    }
  }

  /// Below 0, 0 or above 0.
  package func compare(_ left: JSONValue, _ right: MangoOperand) -> Int {
    if case .string(let text) = left, let key = right.sortKey {
      if let other = right.value.string, text.utf8.elementsEqual(other.utf8) { return 0 }
      return Self.order(sortKey(of: text), key)
    }
    return compare(left, right.value)
  }

  func compare(_ left: JSONValue, _ right: JSONValue) -> Int {
    switch (left, right) {
    case (.string(let left), .string(let right)):
      return left.utf8.elementsEqual(right.utf8) ? 0 : Self.order(sortKey(of: left), sortKey(of: right))
    case (.array(let left), .array(let right)):
      for (item, other) in zip(left, right) {
        let order = compare(item, other)
        if order != 0 { return order }
      }
      return left.count - right.count
    case (.object(let left), .object(let right)): return compare(left, right)
    default:
      let (rank, other) = (Self.rank(left), Self.rank(right))
      guard rank == .number, other == .number else { return rank.rawValue - other.rawValue }
      return Self.compareNumbers(left, right)
    }
  }

  private func compare(_ left: JSONObject, _ right: JSONObject) -> Int {
    let (names, others) = (left.keys.sortedByBytes(), right.keys.sortedByBytes())
    for (name, other) in zip(names, others) {
      var order = compare(.string(name), .string(other))
      if order == 0 { order = compare(left[name] ?? .null, right[other] ?? .null) }
      if order != 0 { return order }
    }
    return names.count - others.count
  }

  static func rank(_ value: JSONValue) -> MangoRank {
    switch value {
    case .null: .null
    case .bool(false): .isFalse
    case .bool(true): .isTrue
    case .int, .uint, .double: .number
    case .string, .data: .string
    case .array: .array
    case .object: .object
    }
  }

  private static func compareNumbers(_ left: JSONValue, _ right: JSONValue) -> Int {
    if let left = left.exactInteger, let right = right.exactInteger {
      return left < right ? -1 : left > right ? 1 : 0
    }
    let (left, right) = (left.double ?? 0, right.double ?? 0)
    return left < right ? -1 : left > right ? 1 : 0
  }

  private static func order(_ left: [UInt8], _ right: [UInt8]) -> Int {
    left.withUnsafeBytes { left in right.withUnsafeBytes { right in Int(compareBytes(left, right)) } }
  }
}

extension JSONValue {
  /// The number, if it has no fraction and fits.
  fileprivate var exactInteger: Int128? {
    switch self {
    case .int(let value): Int128(value)
    case .uint(let value): Int128(value)
    case .double(let value): Int128(exactly: value)
    default: nil
    }
  }
}
