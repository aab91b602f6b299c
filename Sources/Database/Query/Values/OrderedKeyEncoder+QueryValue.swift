import Fleece
import Storage

extension OrderedKeyEncoder {
  /// Appends a value, so that keys have the order of `ValueOrder`.
  ///
  /// Two kinds of values can't be restored exactly, and are marked in `lossyValues`: a double with an
  /// integral value is restored as an integer, and text under a collator isn't restored at all. Arrays and
  /// objects are written completely, with members in the order of their names. Values nested deeper than
  /// `FleeceLimits.depth` are left out.
  mutating func append(_ value: QueryValue, _ order: ValueOrder) {
    append(value, order, depth: 0)
  }

  private mutating func append(_ value: QueryValue, _ order: ValueOrder, depth: Int) {
    switch value {
    case .missing: appendMissing()
    case .null: appendNull()
    case .bool(let value): append(value)
    case .int(let value): append(value)
    case .uint(let value): append(value)
    case .double(let value):
      // Values are finite, so there is no NaN to refuse.
      do { try append(value) } catch { appendNull() }
    case .string(let text): append(text, order)
    case .data(let bytes): append(bytes: bytes.bytes)
    case .array, .computedArray:
      beginArray()
      if depth < FleeceLimits.depth {
        for index in 0..<value.count { append(value.itemOrNull(index), order, depth: depth + 1) }
      }
      endArray()
    case .object, .computedObject:
      beginObject()
      if depth < FleeceLimits.depth {
        for member in value.sortedMembers(order.sharedKeys) {
          append(utf8: member.name.bytes)
          append(member.value, order, depth: depth + 1)
        }
      }
      endObject()
    }
  }

  private mutating func append(_ text: TextSlice, _ order: ValueOrder) {
    guard let collator = order.collator, !collator.collation.comparesBytes else {
      append(utf8: text.bytes)
      return
    }
    // The closure can't change the encoder, so the sort key is copied.
    let key = collator.withSortKey(of: text) { Array($0) }
    key.withUnsafeBytes { append(collationKey: $0) }
  }
}

extension EvaluationArena {
  /// Decodes the next value of a key. Nil for collation keys, which don't contain their text.
  ///
  /// - Throws: `OrderedKeyError` for bytes that no encoder writes.
  func value(from decoder: inout OrderedKeyDecoder) throws(OrderedKeyError) -> QueryValue? {
    try value(try decoder.next(), &decoder, depth: 0)
  }

  private func value(
    _ element: OrderedKeyElement, _ decoder: inout OrderedKeyDecoder, depth: Int
  ) throws(OrderedKeyError) -> QueryValue? {
    switch element {
    case .missing: return .missing
    case .null: return .null
    case .boolean(let value): return .bool(value)
    case .number(.integer(let value)): return .int(value)
    case .number(.unsigned(let value)): return QueryValue(value)
    case .number(.double(let value)): return QueryValue(finite: value)
    case .string(let text): return .string(self.text(text))
    case .bytes(let text): return .data(self.text(text))
    case .collationKey: return nil
    case .beginArray, .beginObject:
      guard depth < FleeceLimits.depth else { throw OrderedKeyError(.notCanonical, at: decoder.offset) }
      var values: [QueryValue] = []
      var isWhole = true
      while true {
        let next = try decoder.next()
        if case .end = next { break }
        guard let value = try value(next, &decoder, depth: depth + 1) else {
          isWhole = false
          continue
        }
        values.append(value)
      }
      guard isWhole else { return nil }
      if case .beginArray = element { return array(values) }
      guard values.count % 2 == 0 else { throw OrderedKeyError(.notCanonical, at: decoder.offset) }
      let members = allocate(values.count / 2, of: ComputedObject.Member.self)
      for index in 0..<(values.count / 2) {
        guard case .string(let name) = values[index * 2] else {
          throw OrderedKeyError(.notCanonical, at: decoder.offset)
        }
        members[index] = ComputedObject.Member(name: name, value: values[index * 2 + 1])
      }
      return object(members, values.count / 2)
    case .end: throw OrderedKeyError(.unexpectedEnd, at: decoder.offset)
    }
  }

  /// The text in a key. It is copied only when it contains escapes, which is rare.
  private func text(_ text: OrderedKeyText) -> TextSlice {
    guard text.isEscaped else { return TextSlice(text.encoded) }
    let buffer = UnsafeMutableRawBufferPointer(
      start: allocate(bytes: text.encoded.count), count: text.encoded.count)
    let count = text.copy(to: buffer)
    return TextSlice(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
  }
}
