// Compares JSON text with an encoded value. It uses the parser and the reader, not the encoder.

import Bytes

/// Compares JSON texts with encoded values, member by member, without creating values. It verifies that an
/// encoded body has the content of its text.
///
/// If several members have the same name, the last one counts. Numbers are equal if they are the same number.
/// The order of members doesn't matter. For one thread at a time.
package final class JSONComparison {
  private let parser = JSONParser()

  /// Creates a comparison. It can be reused.
  package init() {}

  /// Returns whether `value` is equal to the value of `json`.
  ///
  /// - Throws: the errors of `BodyEncoder` for a text that isn't valid JSON, and those of
  ///   `UnsafeValue.jsonValue` for a damaged body.
  package func isEqual(
    json: UnsafeRawBufferPointer, _ value: UnsafeValue, sharedKeys: SharedKeys
  ) throws(FleeceError) -> Bool {
    let tape = try parser.parse(json)
    if Self.matches(tape, 1, value, sharedKeys.table) { return true }
    // The fast comparison returns false if a name occurs twice.
    return try JSONValue(json: json) == value.jsonValue(sharedKeys: sharedKeys)
  }

  /// Returns whether the value at `index` of the tape equals `value`. It can return false if a name occurs
  /// twice.
  private static func matches(_ tape: JSONTape, _ index: Int, _ value: UnsafeValue, _ keys: KeyTable) -> Bool
  {
    let word = tape.words[index]
    switch JSONTape.tag(word) {
    case TapeTag.object:
      guard value.type == .dict else { return false }
      guard let slots = value.slots(Tag.dict) else { return false }
      let end = JSONTape.end(word) - 1
      var index = index + 1
      var count = 0
      while index < end {
        let name = tape.string(tape.words[index])
        guard let member = member(name, of: slots, keys) else { return false }
        guard matches(tape, index + 1, member, keys) else { return false }
        count += 1
        index = tape.next(index + 1)
      }
      return count == slots.count
    case TapeTag.array:
      guard value.type == .array, let slots = value.slots(Tag.array) else { return false }
      let end = JSONTape.end(word) - 1
      var index = index + 1
      var position = 0
      while index < end {
        guard position < slots.count, let item = slots.value(position), matches(tape, index, item, keys)
        else { return false }
        position += 1
        index = tape.next(index)
      }
      return position == slots.count
    case TapeTag.string:
      guard let found = value.utf8 else { return false }
      return compareBytes(UnsafeRawBufferPointer(tape.string(word)), found) == 0
    case TapeTag.int:
      let expected = Int64(bitPattern: tape.words[index + 1])
      if let integer = value.int { return integer == expected }
      return false
    case TapeTag.uint: return value.uint == tape.words[index + 1]
    case TapeTag.double: return value.double == Double(bitPattern: tape.words[index + 1])
    case TapeTag.true: return value.bool == true
    case TapeTag.false: return value.bool == false
    case TapeTag.null: return value.isNull
    default: return false
    }
  }

  /// Returns the member with a name. At least 16 bytes of `name` must be readable, as on a tape.
  @inline(__always)
  private static func member(
    _ name: UnsafeBufferPointer<UInt8>, of slots: UnsafeValue.Slots, _ keys: KeyTable
  ) -> UnsafeValue? {
    guard slots.count > 0, let start = name.baseAddress else { return nil }
    if name.count <= FleeceLimits.sharedKeyLength {
      let number = keys.find(ShortName(overreading: start, length: name.count), length: name.count)
      if number >= 0, let entry = slots.find(number: number) { return slots.member(entry) }
    }
    guard slots.endsInStringKey else { return nil }
    return slots.find(name: UnsafeRawBufferPointer(name)).flatMap { slots.member($0) }
  }
}
