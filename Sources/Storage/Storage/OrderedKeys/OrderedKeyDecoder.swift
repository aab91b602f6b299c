#if canImport(Glibc)
  import Glibc
#endif

/// One element of a key, as the decoder reads it.
@frozen
package enum OrderedKeyElement {
  case missing
  case null
  case boolean(Bool)
  case number(OrderedKeyNumber)
  case string(OrderedKeyText)
  case collationKey(OrderedKeyText)
  case bytes(OrderedKeyText)
  /// The start of an array. Its items follow, then `end`.
  case beginArray
  /// The start of an object. Its names and values follow in turn, then `end`.
  case beginObject
  case end
}

/// A string or binary value inside a key. It is valid as long as the key's bytes.
@frozen
package struct OrderedKeyText {
  /// The bytes as stored, with escapes.
  package let encoded: UnsafeRawBufferPointer
  /// Whether `encoded` contains escapes. If not, `encoded` is the text itself.
  package let isEscaped: Bool

  init(encoded: UnsafeRawBufferPointer, isEscaped: Bool) {
    self.encoded = encoded
    self.isEscaped = isEscaped
  }

  /// A copy of the text without escapes.
  package var bytes: [UInt8] {
    guard isEscaped else { return [UInt8](encoded) }
    return [UInt8](unsafeUninitializedCapacity: encoded.count) { buffer, count in
      count = copy(to: UnsafeMutableRawBufferPointer(buffer))
    }
  }

  /// The text as a string. Bytes that aren't UTF-8 are replaced.
  package var string: String {
    isEscaped ? String(decoding: bytes, as: UTF8.self) : String(decoding: encoded, as: UTF8.self)
  }

  /// Writes the text without escapes to the start of `buffer` and returns its length. `buffer` must have room
  /// for `encoded.count` bytes.
  package func copy(to buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard isEscaped else {
      buffer.copyMemory(from: encoded)
      return encoded.count
    }
    var count = 0
    var index = 0
    while index < encoded.count {
      var byte = encoded[index]
      // The decoder has checked that a byte follows each escape.
      if byte == OrderedKeyCode.escape {
        index += 1
        byte = encoded[index] - 1
      }
      buffer[count] = byte
      count += 1
      index += 1
    }
    return count
  }
}

/// Decodes the values of a key in turn, and the document ID at its end.
///
/// A key doesn't store its number of values; the caller must know it. The decoder trusts nothing in the
/// bytes: encodings that no encoder writes throw an `OrderedKeyError`. The elements point into the key and
/// are valid as long as its bytes.
package struct OrderedKeyDecoder {
  let bytes: UnsafeRawBufferPointer
  private var depth = 0

  /// The number of bytes read so far.
  package internal(set) var offset = 0

  /// Makes a decoder at the start of `key`.
  package init(_ key: UnsafeRawBufferPointer) { bytes = key }

  /// The bytes that aren't read yet. After the last value, this is the document ID.
  package var remainder: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[offset...]) }

  /// Reads the next element: a value, or the begin or end of an array or object. After an error the decoder
  /// stays where it was.
  package mutating func next() throws(OrderedKeyError) -> OrderedKeyElement {
    guard offset < bytes.count else { throw OrderedKeyError(.truncated, at: offset) }
    let start = offset
    let code = bytes[start]
    do throws(OrderedKeyError) {
      switch code {
      case OrderedKeyCode.hugeNegative...OrderedKeyCode.hugePositive: return .number(try number(code))
      case OrderedKeyCode.string: return .string(try text())
      case OrderedKeyCode.missing: return step(.missing)
      case OrderedKeyCode.null: return step(.null)
      case OrderedKeyCode.false: return step(.boolean(false))
      case OrderedKeyCode.true: return step(.boolean(true))
      case OrderedKeyCode.collationKey: return .collationKey(try text())
      case OrderedKeyCode.bytes: return .bytes(try text())
      case OrderedKeyCode.array:
        depth += 1
        return step(.beginArray)
      case OrderedKeyCode.object:
        depth += 1
        return step(.beginObject)
      case OrderedKeyCode.end:
        guard depth > 0 else { throw OrderedKeyError(.unexpectedEnd, at: start) }
        depth -= 1
        return step(.end)
      default: throw OrderedKeyError(.unknownCode, at: start)
      }
    } catch {
      offset = start
      throw error
    }
  }

  /// Skips `count` whole values. An array or object counts as one value.
  package mutating func skip(_ count: Int = 1) throws(OrderedKeyError) {
    for _ in 0..<count {
      let outside = depth
      repeat { _ = try next() } while depth > outside
    }
  }

  private mutating func step(_ element: OrderedKeyElement) -> OrderedKeyElement {
    offset += 1
    return element
  }

  /// Reads the text after the code at `offset`.
  private mutating func text() throws(OrderedKeyError) -> OrderedKeyText {
    let first = offset + 1
    guard first < bytes.count, let base = bytes.baseAddress,
      let end = memchr(base + first, Int32(OrderedKeyCode.end), bytes.count - first)
    else { throw OrderedKeyError(.truncated, at: offset) }
    let length = UnsafeRawPointer(end) - (base + first)
    let encoded = UnsafeRawBufferPointer(start: base + first, count: length)
    let isEscaped = length > 0 && memchr(base + first, Int32(OrderedKeyCode.escape), length) != nil
    if isEscaped {
      var index = 0
      while index < length {
        if encoded[index] == OrderedKeyCode.escape {
          index += 1
          guard index < length, encoded[index] == 1 || encoded[index] == 2 else {
            throw OrderedKeyError(.notCanonical, at: offset)
          }
        }
        index += 1
      }
    }
    offset = first + length + 1
    return OrderedKeyText(encoded: encoded, isEscaped: isEscaped)
  }
}
