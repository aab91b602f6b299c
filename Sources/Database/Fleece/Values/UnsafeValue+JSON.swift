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
    var writer = ValueWriter(self, sharedKeys: sharedKeys, canonical: canonical)
    try writer.write(self, depth: 0, to: &text)
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
    var writer = ValueWriter(self, sharedKeys: sharedKeys, canonical: canonical)
    do throws(FleeceError) {
      try writer.write(self, depth: 0, to: &text)
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
    var writer = ValueWriter(self, sharedKeys: sharedKeys, canonical: canonical)
    try writer.write(self, depth: 0, to: &text)
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

  /// Whether the name of an entry is in the data. Else it is in the table of shared keys.
  @inline(__always)
  fileprivate func holds(_ name: UnsafeRawBufferPointer) -> Bool {
    start <= name.assumingStart && name.assumingStart < limit
  }

  /// Where the bytes end that can be read from the start of a name. The table of shared keys has 16 bytes for each.
  @inline(__always)
  fileprivate func end(ofReadable name: UnsafeRawBufferPointer) -> UnsafePointer<UInt8> {
    holds(name) ? limit : name.assumingStart + 16
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

/// Writes values as JSON text. After an error, the text ends anywhere.
private struct ValueWriter: ~Copyable {
  private struct Member: BitwiseCopyable {
    /// The first eight bytes of the name as a number, in the order of bytes, with zeros behind a shorter name. It decides most
    /// comparisons.
    var prefix: UInt64
    var name: UnsafeRawBufferPointer
    var value: UnsafeValue
    var isShared: Bool
    /// The number of a shared name, which needs no escapes; -1 if it has to be written as any string.
    var number: Int

    @inline(__always)
    static func compare(_ left: Member, _ right: Member) -> Int {
      left.prefix == right.prefix
        ? compareBytes(left.name, right.name) : left.prefix < right.prefix ? -1 : 1
    }
  }

  /// The members of the objects that are being written, for sorting.
  private var members: RawStack<Member>
  private var budget: UnsafeValue.Budget
  private let sharedKeys: SharedKeys
  private let canonical: Bool

  init(_ root: UnsafeValue, sharedKeys: SharedKeys, canonical: Bool) {
    members = RawStack<Member>(capacity: canonical ? 64 : 0)
    budget = UnsafeValue.Budget(root)
    self.sharedKeys = sharedKeys
    self.canonical = canonical
  }

  mutating func write(_ value: UnsafeValue, depth: Int, to text: inout ByteBuffer) throws(FleeceError) {
    try budget.spend(bytes: 0)
    switch value.tag {
    case Tag.string:
      guard let utf8 = value.bytes(Tag.string) else { throw value.damaged("the string is cut off") }
      try append(utf8, readable: value.limit, to: &text)
    case Tag.smallInt, Tag.int:
      guard let integer = value.integer else { throw value.damaged("the integer is cut off") }
      if integer.isUnsigned {
        text.appendInteger(integer.bits)
      } else {
        text.appendInteger(Int64(bitPattern: integer.bits))
      }
    case Tag.float:
      guard let double = value.double else { throw value.damaged("the double is cut off") }
      guard double.isFinite else { throw .notFinite }
      text.appendDouble(double)
    case Tag.special:
      guard let bool = value.bool else {
        guard !value.isUndefined else { throw value.damaged("undefined has no JSON form") }
        return text.append(word: 0x6C6C_756E, count: 4)  // null
      }
      // true, false
      bool ? text.append(word: 0x6575_7274, count: 4) : text.append(word: 0x65_736C_6166, count: 5)
    case Tag.data:
      guard let data = value.data else { throw value.damaged("the binary data is cut off") }
      try budget.spend(bytes: data.count)
      text.appendBase64String(data.bindMemory(to: UInt8.self))
    case Tag.array:
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      guard let slots = value.slots(Tag.array) else { throw value.damaged("the array is cut off") }
      text.append(UInt8(ascii: "["))
      for index in 0..<slots.count {
        guard let item = slots.value(index) else {
          throw value.damaged("item \(index) points outside the data")
        }
        try write(item, depth: depth + 1, to: &text)
        text.append(UInt8(ascii: ","))
      }
      close(&text, isEmpty: slots.count == 0, UInt8(ascii: "]"))
    default:
      guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      guard let slots = value.slots(Tag.dict) else { throw value.damaged("the dictionary is cut off") }
      text.append(UInt8(ascii: "{"))
      let isEmpty =
        canonical
        ? try writeSorted(value, slots, depth, to: &text) : try writeInOrder(value, slots, depth, to: &text)
      close(&text, isEmpty: isEmpty, UInt8(ascii: "}"))
    }
  }

  /// Appends a string. Bytes up to `readable` belong to the data.
  @inline(__always)
  private mutating func append(
    _ utf8: UnsafeRawBufferPointer, readable: UnsafePointer<UInt8>, to text: inout ByteBuffer
  ) throws(FleeceError) {
    try budget.spend(bytes: utf8.count)
    let bytes = utf8.assumingMemoryBound(to: UInt8.self)
    text.appendJSONString(bytes.baseAddress.unsafelyUnwrapped, bytes.count, readable: readable)
  }

  /// Closes a collection. The closing byte replaces the last comma.
  @inline(__always)
  private func close(_ text: inout ByteBuffer, isEmpty: Bool, _ byte: UInt8) {
    if isEmpty { return text.append(byte) }
    text.base[text.count - 1] = byte
  }

  /// Writes the members of a dictionary in their order, each with a comma. Returns whether there are none.
  @inline(__always)
  private mutating func writeInOrder(
    _ dict: UnsafeValue, _ slots: UnsafeValue.Slots, _ depth: Int, to text: inout ByteBuffer
  ) throws(FleeceError) -> Bool {
    var isEmpty = true
    for index in 0..<slots.count {
      let key = slots.value(index &* 2)
      if let key, key.tag == Tag.smallInt, let number = key.integer?.bits, number < UInt64(sharedKeys.count) {
        guard let entry = slots.value(index &* 2 &+ 1) else {
          throw dict.damaged("entry \(index) points outside the data")
        }
        if entry.isUndefined { continue }
        let (name, length) = sharedKeys.table.name(of: Int(number))
        try budget.spend(bytes: length)
        text.appendName(name, length)
        try write(entry, depth: depth + 1, to: &text)
      } else {
        let (name, entry) = try dict.entry(slots, index, sharedKeys)
        if entry.isUndefined { continue }
        try append(name, readable: dict.end(ofReadable: name), to: &text)
        text.append(UInt8(ascii: ":"))
        try write(entry, depth: depth + 1, to: &text)
      }
      text.append(UInt8(ascii: ","))
      isEmpty = false
    }
    return isEmpty
  }

  /// Writes the members of a dictionary, sorted by their names, each with a comma. Returns whether there are none.
  private mutating func writeSorted(
    _ dict: UnsafeValue, _ slots: UnsafeValue.Slots, _ depth: Int, to text: inout ByteBuffer
  ) throws(FleeceError) -> Bool {
    let first = members.count
    for index in 0..<slots.count {
      let key = slots.value(index &* 2)
      if let key, key.tag == Tag.smallInt, let number = key.integer?.bits, number < UInt64(sharedKeys.count) {
        guard let entry = slots.value(index &* 2 &+ 1) else {
          throw dict.damaged("entry \(index) points outside the data")
        }
        if entry.isUndefined { continue }
        let number = Int(number)
        members.push(
          Member(
            prefix: UInt64(bigEndian: sharedKeys.table.names[number].low),
            name: UnsafeRawBufferPointer(sharedKeys.table.utf8(of: number)), value: entry, isShared: true,
            number: number))
      } else {
        let (name, entry) = try dict.entry(slots, index, sharedKeys)
        if entry.isUndefined { continue }
        var prefix: UInt64 = 0
        for (index, byte) in name.prefix(8).enumerated() { prefix |= UInt64(byte) << UInt64(56 - 8 * index) }
        members.push(
          Member(prefix: prefix, name: name, value: entry, isShared: !dict.holds(name), number: -1))
      }
    }
    let count = sort(first, members.count - first)
    for index in first..<(first + count) {
      let member = members.base[index]
      if member.number >= 0 {
        let (name, length) = sharedKeys.table.name(of: member.number)
        try budget.spend(bytes: length)
        text.appendName(name, length)
      } else {
        try append(member.name, readable: dict.end(ofReadable: member.name), to: &text)
        text.append(UInt8(ascii: ":"))
      }
      try write(member.value, depth: depth + 1, to: &text)
      text.append(UInt8(ascii: ","))
    }
    members.count = first
    return count == 0
  }

  /// Sorts members by name and keeps the first of each name, the shared key. Returns the number that is left.
  private mutating func sort(_ first: Int, _ count: Int) -> Int {
    guard count > 1 else { return count }
    let base = members.base + first
    if count <= 32 {
      for index in 1..<count {
        let member = base[index]
        var hole = index
        while hole > 0, Member.compare(member, base[hole - 1]) < 0 {
          base[hole] = base[hole - 1]
          hole -= 1
        }
        base[hole] = member
      }
    } else {
      var unsorted = UnsafeMutableBufferPointer(start: base, count: count)
      unsorted.sort {
        let order = Member.compare($0, $1)
        return order < 0 || (order == 0 && $0.isShared && !$1.isShared)
      }
    }
    var kept = 0
    for index in 1..<count where Member.compare(base[kept], base[index]) != 0 {
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
