// Converts a body to JSON text and to values in memory.
//
// Shared values let small data stand for large output. The work is therefore limited to four values per two
// bytes of data and 64 bytes of text per byte of data. No regular body reaches these limits.

import Bytes

extension UnsafeValue {
  /// Appends the JSON text of this value.
  ///
  /// In canonical JSON, names are sorted by their bytes at every level. Otherwise members have the order of
  /// the body, which is faster. Spaces are never written. Binary data become base64 strings.
  /// - Throws: `FleeceError.invalidFleece` if the body is damaged, `.unknownSharedKey`, `.notFinite`,
  ///   `.tooDeep`, `.tooLarge`. After an error, nothing is appended.
  package func writeJSON(
    sharedKeys: SharedKeys, canonical: Bool = true, into output: inout [UInt8]
  ) throws(FleeceError) {
    if type == .int, let int { return UnsafeValue.append(int, to: &output) }
    if type == .string, let utf8, UnsafeValue.append(plain: utf8, to: &output) { return }
    var text = ByteBuffer(capacity: 2048)
    try ValueWriter.write(self, sharedKeys: sharedKeys, canonical: canonical, to: &text)
    output.append(contentsOf: text.bytes)
  }

  private static func append(_ integer: Int64, to output: inout [UInt8]) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
      var start = 20
      var rest = integer.magnitude
      repeat {
        start &-= 1
        digits[start] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      if integer < 0 {
        start &-= 1
        digits[start] = UInt8(ascii: "-")
      }
      output.append(contentsOf: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(digits)[start...]))
    }
  }

  /// Appends a string in quotes if it is ASCII that needs no escapes.
  private static func append(plain utf8: UnsafeRawBufferPointer, to output: inout [UInt8]) -> Bool {
    guard isPlain(utf8) else { return false }
    output.append(UInt8(ascii: "\""))
    output.append(contentsOf: utf8)
    output.append(UInt8(ascii: "\""))
    return true
  }

  /// Whether a string is ASCII that needs no escapes.
  @inline(__always)
  private static func isPlain(_ utf8: UnsafeRawBufferPointer) -> Bool {
    for byte in utf8
    where byte < 0x20 || byte >= 0x7F || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
      return false
    }
    return true
  }

  /// Appends the JSON text to a buffer. After an error, nothing is appended.
  package func writeJSON(
    sharedKeys: SharedKeys, canonical: Bool = true, into text: inout ByteBuffer
  ) throws(FleeceError) {
    if type == .int, let int { return text.appendInteger(int) }
    if type == .string, let utf8, UnsafeValue.isPlain(utf8) {
      text.reserve(utf8.count + 2)
      text.append(UInt8(ascii: "\""))
      text.append(utf8)
      return text.append(UInt8(ascii: "\""))
    }
    let start = text.count
    do throws(FleeceError) {
      try ValueWriter.write(self, sharedKeys: sharedKeys, canonical: canonical, to: &text)
    } catch {
      text.truncate(to: start)
      throw error
    }
  }

  /// Returns the JSON text of this value.
  ///
  /// - Throws: the errors of `writeJSON`.
  package func json(sharedKeys: SharedKeys, canonical: Bool = true) throws(FleeceError) -> String {
    var text = ByteBuffer(capacity: 2048)
    try ValueWriter.write(self, sharedKeys: sharedKeys, canonical: canonical, to: &text)
    return String(decoding: text.bytes, as: UTF8.self)
  }

  /// Returns a copy of this value in memory.
  ///
  /// - Throws: the errors of `writeJSON`.
  package func jsonValue(sharedKeys: SharedKeys) throws(FleeceError) -> JSONValue {
    var budget = Budget(self)
    return try jsonValue(sharedKeys, &budget, depth: 0)
  }

  func damaged(_ reason: String) -> FleeceError { .invalidFleece(reason: reason, offset: offset) }

  private func jsonValue(
    _ sharedKeys: SharedKeys, _ budget: inout Budget, depth: Int
  ) throws(FleeceError) -> JSONValue {
    try budget.spend(bytes: 0)
    switch type {
    case .null:
      guard !isUndefined else { throw damaged("undefined has no JSON form") }
      return .null
    case .bool: return .bool(bool == true)
    case .int:
      guard let integer else { throw damaged("the integer is cut off") }
      let isBig = integer.isUnsigned && integer.bits > UInt64(Int64.max)
      return isBig ? .uint(integer.bits) : .int(Int64(bitPattern: integer.bits))
    case .double:
      guard let double else { throw damaged("the double is cut off") }
      guard double.isFinite else { throw .notFinite }
      return .double(double)
    case .string:
      guard let utf8 else { throw damaged("the string is cut off") }
      try budget.spend(bytes: utf8.count)
      guard let string else { throw damaged("the string is not UTF-8") }
      return .string(string)
    case .data:
      guard let data else { throw damaged("the binary data is cut off") }
      try budget.spend(bytes: data.count)
      return .data(Array(data))
    case .array:
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      guard let slots = slots(Tag.array) else { throw damaged("the array is cut off") }
      var items: [JSONValue] = []
      items.reserveCapacity(slots.count)
      for index in 0..<slots.count {
        guard let item = slots.value(index) else { throw damaged("item \(index) points outside the data") }
        items.append(try item.jsonValue(sharedKeys, &budget, depth: depth + 1))
      }
      return .array(items)
    case .dict:
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      guard let slots = slots(Tag.dict) else { throw damaged("the dictionary is cut off") }
      var members = JSONObject()
      members.reserveCapacity(slots.count)
      for index in 0..<slots.count {
        let (utf8, value) = try entry(slots, index, sharedKeys)
        if value.isUndefined { continue }
        try budget.spend(bytes: utf8.count)
        guard let name = String(utf8: utf8) else {
          throw damaged("the name of entry \(index) is not UTF-8")
        }
        let member = try value.jsonValue(sharedKeys, &budget, depth: depth + 1)
        // A shared key is first and is found first. A string with the same name is never seen.
        if members[name] == nil { members[name] = member }
      }
      return .object(members)
    }
  }

  /// Returns the name and the value of an entry of this dictionary.
  @inline(__always)
  func entry(
    _ slots: Slots, _ index: Int, _ sharedKeys: SharedKeys
  ) throws(FleeceError) -> (utf8: UnsafeRawBufferPointer, value: UnsafeValue) {
    guard let key = slots.value(index &* 2), let value = slots.value(index &* 2 &+ 1) else {
      throw damaged("entry \(index) points outside the data")
    }
    if let number = key.int {
      guard let name = sharedKeys.utf8(of: Int(number)) else {
        throw .unknownSharedKey(number: Int(number), count: sharedKeys.count)
      }
      return (name, value)
    }
    guard let name = key.utf8 else { throw damaged("the key of entry \(index) is neither number nor string") }
    return (name, value)
  }

  /// The remaining output budget of a value's data.
  struct Budget {
    private let limit: Int
    private var values: Int
    private var bytes: Int

    init(_ value: UnsafeValue) {
      let size = value.limit - value.start
      limit = size * 64 + 1024
      values = size * 2 + 16
      bytes = limit
    }

    @inline(__always)
    mutating func spend(values number: Int = 1, bytes count: Int) throws(FleeceError) {
      values &-= number
      bytes &-= count
      if _slowPath(values < 0 || bytes < 0) { throw .tooLarge(limit: limit) }
    }
  }
}
