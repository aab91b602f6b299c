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
    var writer = ValueWriter(self, sharedKeys: sharedKeys, canonical: canonical)
    try writer.write(self, depth: 0)
    output.append(contentsOf: writer.text.bytes)
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
    var writer = ValueWriter(self, sharedKeys: sharedKeys, canonical: canonical)
    try writer.write(self, depth: 0)
    text.append(writer.text.bytes)
  }

  /// Returns the JSON text of this value.
  ///
  /// - Throws: the errors of `writeJSON`.
  package func json(sharedKeys: SharedKeys, canonical: Bool = true) throws(FleeceError) -> String {
    var writer = ValueWriter(self, sharedKeys: sharedKeys, canonical: canonical)
    try writer.write(self, depth: 0)
    return String(decoding: writer.text.bytes, as: UTF8.self)
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
  fileprivate struct Budget {
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
    mutating func spend(bytes count: Int) throws(FleeceError) {
      values &-= 1
      bytes &-= count
      if _slowPath(values < 0 || bytes < 0) { throw .tooLarge(limit: limit) }
    }
  }
}

/// Writes values as JSON text into its own memory.
private struct ValueWriter: ~Copyable {
  private struct Member: BitwiseCopyable {
    var name: UnsafeRawBufferPointer
    var value: UnsafeValue
    var isShared: Bool
  }

  var text = ByteBuffer(capacity: 2048)
  private var members = RawStack<Member>(capacity: 64)
  private var budget: UnsafeValue.Budget
  private let sharedKeys: SharedKeys
  private let canonical: Bool

  init(_ root: UnsafeValue, sharedKeys: SharedKeys, canonical: Bool) {
    budget = UnsafeValue.Budget(root)
    self.sharedKeys = sharedKeys
    self.canonical = canonical
  }

  mutating func write(_ value: UnsafeValue, depth: Int) throws(FleeceError) {
    try budget.spend(bytes: 0)
    switch value.type {
    case .null:
      guard !value.isUndefined else { throw value.damaged("undefined has no JSON form") }
      text.append(word: 0x6C6C_756E, count: 4)  // null
    case .bool:
      // true, false
      value.bool == true
        ? text.append(word: 0x6575_7274, count: 4) : text.append(word: 0x65_736C_6166, count: 5)
    case .int:
      guard let integer = value.integer else { throw value.damaged("the integer is cut off") }
      if integer.isUnsigned {
        text.appendInteger(integer.bits)
      } else {
        text.appendInteger(Int64(bitPattern: integer.bits))
      }
    case .double:
      guard let double = value.double else { throw value.damaged("the double is cut off") }
      guard double.isFinite else { throw .notFinite }
      text.appendDouble(double)
    case .string:
      guard let utf8 = value.utf8 else { throw value.damaged("the string is cut off") }
      try append(utf8, readable: value.limit)
    case .data:
      guard let data = value.data else { throw value.damaged("the binary data is cut off") }
      try budget.spend(bytes: data.count)
      text.appendBase64String(data.bindMemory(to: UInt8.self))
    case .array:
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      guard let slots = value.slots(Tag.array) else { throw value.damaged("the array is cut off") }
      text.append(UInt8(ascii: "["))
      for index in 0..<slots.count {
        guard let item = slots.value(index) else {
          throw value.damaged("item \(index) points outside the data")
        }
        try write(item, depth: depth + 1)
        text.append(UInt8(ascii: ","))
      }
      close(isEmpty: slots.count == 0, UInt8(ascii: "]"))
    case .dict:
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      try writeDict(value, depth: depth)
    }
  }

  /// Appends a string. Bytes up to `readable` belong to the data.
  @inline(__always)
  private mutating func append(
    _ utf8: UnsafeRawBufferPointer, readable: UnsafePointer<UInt8>
  ) throws(FleeceError) {
    try budget.spend(bytes: utf8.count)
    let bytes = utf8.assumingMemoryBound(to: UInt8.self)
    text.appendJSONString(bytes.baseAddress.unsafelyUnwrapped, bytes.count, readable: readable)
  }

  /// Closes a collection. The closing byte replaces the last comma.
  @inline(__always)
  private mutating func close(isEmpty: Bool, _ byte: UInt8) {
    if isEmpty { return text.append(byte) }
    text.base[text.count - 1] = byte
  }

  private mutating func writeDict(_ value: UnsafeValue, depth: Int) throws(FleeceError) {
    guard let slots = value.slots(Tag.dict) else { throw value.damaged("the dictionary is cut off") }
    text.append(UInt8(ascii: "{"))
    let first = members.count
    for index in 0..<slots.count {
      let (name, entry) = try value.entry(slots, index, sharedKeys)
      if entry.isUndefined { continue }
      members.push(
        Member(
          name: name, value: entry,
          isShared: value.start > name.assumingStart || name.assumingStart >= value.limit))
    }
    var count = members.count - first
    if canonical { count = sort(first, count) }
    for index in first..<(first + count) {
      let member = members.base[index]
      let start = member.name.assumingStart
      // Names of the shared key table are stored in 16 bytes each. Other names are in the data.
      try append(member.name, readable: member.isShared ? start + 16 : value.limit)
      text.append(UInt8(ascii: ":"))
      try write(member.value, depth: depth + 1)
      text.append(UInt8(ascii: ","))
    }
    members.count = first
    close(isEmpty: count == 0, UInt8(ascii: "}"))
  }

  /// Sorts members by name and keeps the first of each name, the shared key. Returns the number that is left.
  private mutating func sort(_ first: Int, _ count: Int) -> Int {
    guard count > 1 else { return count }
    let base = members.base + first
    if count <= 32 {
      for index in 1..<count {
        let member = base[index]
        var hole = index
        while hole > 0, compareBytes(member.name, base[hole - 1].name) < 0 {
          base[hole] = base[hole - 1]
          hole -= 1
        }
        base[hole] = member
      }
    } else {
      var unsorted = UnsafeMutableBufferPointer(start: base, count: count)
      unsorted.sort {
        let order = compareBytes($0.name, $1.name)
        return order < 0 || (order == 0 && $0.isShared && !$1.isShared)
      }
    }
    var kept = 0
    for index in 1..<count where compareBytes(base[kept].name, base[index].name) != 0 {
      kept += 1
      base[kept] = base[index]
    }
    return kept + 1
  }
}

extension UnsafeRawBufferPointer {
  /// The start of a string of a body or a table. Such strings always have an address.
  fileprivate var assumingStart: UnsafePointer<UInt8> {
    baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self)
  }
}
