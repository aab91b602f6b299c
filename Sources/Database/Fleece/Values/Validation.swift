// Full validation of bytes from outside, before they are stored.
//
// It checks more than reading in place: every value is well formed and ends within its limit, strings are
// UTF-8, numbers are finite, keys are numbers below the table's count or strings, keys are sorted and unique,
// and nesting is limited. Long encodings of small numbers, set reserved bits and padding that isn't zero are
// legal.

import Bytes

/// Checks bytes from outside against the whole format.
///
/// The time is linear in the size of the data: a value with several references is checked once.
/// - Parameter sharedKeyCount: the number of shared keys that the body can refer to.
/// - Throws: `FleeceError.invalidFleece` with the offset of the fault, `.unknownSharedKey`, `.notFinite`,
///   `.tooDeep`.
package func validate(_ bytes: UnsafeRawBufferPointer, sharedKeyCount: Int) throws(FleeceError) {
  guard bytes.count >= 2, let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
    throw .invalidFleece(reason: "there are fewer than 2 bytes", offset: 0)
  }
  guard bytes.count & 1 == 0 else {
    throw .invalidFleece(reason: "the length is odd", offset: bytes.count)
  }
  guard let root = FleeceReader.root(of: bytes) else {
    throw .invalidFleece(reason: "the last two bytes don't refer to a root value", offset: bytes.count - 2)
  }
  let validator = Validator(start: start, size: bytes.count, sharedKeyCount: sharedKeyCount)
  defer { validator.heights.deallocate() }
  _ = try validator.validate(root, depth: 0)
}

private struct Validator {
  let start: UnsafePointer<UInt8>
  let sharedKeyCount: Int
  /// For each unit of 2 bytes: 0, or 1 + the nesting levels of the valid value that begins there.
  let heights: UnsafeMutablePointer<UInt8>

  init(start: UnsafePointer<UInt8>, size: Int, sharedKeyCount: Int) {
    self.start = start
    self.sharedKeyCount = sharedKeyCount
    heights = .allocate(capacity: size / 2)
    heights.initialize(repeating: 0, count: size / 2)
  }

  /// Checks a value at a depth. Returns its nesting levels, 0 for a scalar.
  func validate(_ value: UnsafeValue, depth: Int) throws(FleeceError) -> Int {
    switch value.type {
    case .null:
      if value.isUndefined { throw value.damaged("undefined can't be stored") }
    case .bool: break
    case .int:
      if value.integer == nil { throw value.damaged("the integer doesn't fit into the data") }
    case .double:
      guard let double = value.double else { throw value.damaged("the double doesn't fit into the data") }
      guard double.isFinite else { throw .notFinite }
    case .string:
      guard let utf8 = value.utf8 else { throw value.damaged("the string doesn't fit into the data") }
      let unit = value.offset / 2
      if heights[unit] == 0 {
        guard isUTF8(utf8) else { throw value.damaged("the string is not UTF-8") }
        heights[unit] = 1
      }
    case .data:
      if value.data == nil { throw value.damaged("the binary data doesn't fit into the body") }
    case .array, .dict: return try validateCollection(value, depth: depth)
    }
    return 0
  }

  private func validateCollection(_ value: UnsafeValue, depth: Int) throws(FleeceError) -> Int {
    // The limit depends on the reference, so it is checked each time. The contents don't, so they are checked
    // once.
    guard let slots = value.slots(value.tag) else { throw value.damaged("the slots don't fit into the data") }
    let unit = value.offset / 2
    if heights[unit] != 0 {
      let height = Int(heights[unit]) - 1
      guard depth + height <= FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
      return height
    }
    guard depth < FleeceLimits.depth else { throw .tooDeep(limit: FleeceLimits.depth) }
    var height = 0
    if value.tag == Tag.array {
      for index in 0..<slots.count {
        guard let item = slots.value(index) else { throw outside(slots, index) }
        height = max(height, try validate(item, depth: depth + 1))
      }
    } else {
      var last: UnsafeValue?
      for index in 0..<slots.count {
        guard let key = slots.value(index * 2) else { throw outside(slots, index * 2) }
        guard let item = slots.value(index * 2 + 1) else { throw outside(slots, index * 2 + 1) }
        try validateKey(key, after: last)
        last = key
        height = max(height, try validate(item, depth: depth + 1))
      }
    }
    heights[unit] = UInt8(height + 2)
    return height + 1
  }

  private func outside(_ slots: UnsafeValue.Slots, _ index: Int) -> FleeceError {
    .invalidFleece(
      reason: "the pointer leads outside the data", offset: slots.first + index * slots.width - start)
  }

  private func validateKey(_ key: UnsafeValue, after last: UnsafeValue?) throws(FleeceError) {
    if key.tag == Tag.smallInt {
      guard let number = key.int, number >= 0 else {
        throw key.damaged("a key can't be a negative number (inheritance)")
      }
      guard number < sharedKeyCount else {
        throw .unknownSharedKey(number: Int(number), count: sharedKeyCount)
      }
      if let last {
        guard let previous = last.int, previous < number else {
          throw key.damaged("the keys are not in order")
        }
      }
      return
    }
    guard key.type == .string else { throw key.damaged("a key must be a number or a string") }
    _ = try validate(key, depth: 0)
    if let last = last?.utf8, let utf8 = key.utf8, compareBytes(last, utf8) >= 0 {
      throw key.damaged("the keys are not in order")
    }
  }
}

/// Returns whether the bytes are UTF-8.
func isUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool {
  var index = 0
  // Eight ASCII bytes at a time. Most strings have only ASCII.
  while bytes.count - index >= 8,
    bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
  {
    index += 8
  }
  while index < bytes.count, bytes[index] < 0x80 { index += 1 }
  if index == bytes.count { return true }
  return String(validating: UnsafeRawBufferPointer(rebasing: bytes[index...]), as: UTF8.self) != nil
}
