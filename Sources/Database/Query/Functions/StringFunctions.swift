import CICU
import Fleece

// Functions of strings. Positions and lengths are in code points, counted from 0. Only a damaged body
// contains bytes that are not UTF-8.

enum StringFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("CONCAT", 1...127) { arguments, context, _ in concat(arguments, context) },
    QueryFunction("CONTAINS", 2...2) { arguments, context, site in
      texts2(arguments) { text, other in .bool(contains(text, other, context, site)) }
    },
    QueryFunction("LENGTH", 1...1) { arguments, _, _ in
      text1(arguments) { .int(Int64($0.scalarCount)) }
    },
    QueryFunction("LOWER", 1...1) { arguments, context, _ in
      text1(arguments) { .string(cased($0, isUpper: false, context)) }
    },
    QueryFunction("UPPER", 1...1) { arguments, context, _ in
      text1(arguments) { .string(cased($0, isUpper: true, context)) }
    },
    QueryFunction("INITCAP", 1...1) { arguments, context, _ in
      text1(arguments) { .string(capitalized($0, context)) }
    },
    QueryFunction("TRIM", 1...2) { arguments, _, _ in trim(arguments, start: true, end: true) },
    QueryFunction("LTRIM", 1...2) { arguments, _, _ in trim(arguments, start: true, end: false) },
    QueryFunction("RTRIM", 1...2) { arguments, _, _ in trim(arguments, start: false, end: true) },
    QueryFunction("SUBSTR", 2...3) { arguments, _, _ in substring(arguments) },
    QueryFunction("POSITION", 2...2) { arguments, _, _ in
      texts2(arguments) { text, other in
        guard let offset = find(other, in: text, from: 0) else { return .int(-1) }
        return .int(Int64(text.slice(0, offset).scalarCount))
      }
    },
    QueryFunction("REPLACE", 3...4) { arguments, context, _ in replace(arguments, context) },
    QueryFunction("REVERSE", 1...1) { arguments, context, _ in
      text1(arguments) { .string(reversed($0, context)) }
    },
    QueryFunction("REPEAT", 2...2) { arguments, context, _ in repeated(arguments, context) },
    QueryFunction("SPLIT", 1...2) { arguments, context, _ in split(arguments, context) },
  ]

  /// Computes a function of one string. For other types the result is null.
  @inline(__always)
  static func text1(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ body: (TextSlice) -> QueryValue
  ) -> QueryValue {
    guard case .string(let text) = arguments[0] else { return arguments[0].isMissing ? .missing : .null }
    return body(text)
  }

  /// Computes a function of two strings. For other types the result is null.
  @inline(__always)
  static func texts2(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ body: (TextSlice, TextSlice) -> QueryValue
  ) -> QueryValue {
    guard case .string(let first) = arguments[0], case .string(let second) = arguments[1] else {
      return arguments[0].isMissing || arguments[1].isMissing ? .missing : .null
    }
    return body(first, second)
  }

  static func tooLong(_ context: EvaluationContext) -> QueryValue {
    context.fail(
      QueryError(.evaluation, "the result of a function is longer than \(context.limits.textBytes) bytes"))
  }

  /// Joins strings. Numbers, booleans, null, arrays and objects are added as JSON text. A missing argument
  /// gives missing.
  static func concat(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ context: EvaluationContext
  ) -> QueryValue {
    var bytes: [UInt8] = []
    for argument in arguments {
      switch argument {
      case .missing: return .missing
      case .string(let text): bytes.append(contentsOf: text.utf8)
      default:
        do { try argument.writeJSON(context.sharedKeys, into: &bytes) } catch { return context.fail(error) }
      }
      if bytes.count > context.limits.textBytes { return tooLong(context) }
    }
    return bytes.withUnsafeBytes { .string(context.arena.copy(TextSlice($0))) }
  }

  /// The offset of the first occurrence of some bytes in a text, at or after `from`. Nil when there is none.
  static func find(_ other: TextSlice, in text: TextSlice, from: Int) -> Int? {
    other.position(in: text, from, text.count)
  }

  /// Compares by bytes, unless a COLLATE ignores differences.
  private static func contains(
    _ text: TextSlice, _ other: TextSlice, _ context: EvaluationContext, _ site: CallSite
  ) -> Bool {
    guard site.collation != nil else { return find(other, in: text, from: 0) != nil }
    let arena = context.arena
    return find(site.like.folded(other, arena), in: site.like.folded(text, arena), from: 0) != nil
  }

  static func cased(_ text: TextSlice, isUpper: Bool, _ context: EvaluationContext) -> TextSlice {
    if text.isASCII {
      let bytes = context.arena.allocate(text.count, of: UInt8.self)
      for index in 0..<text.count {
        let byte = text.start[index]
        let isLetter = isUpper ? byte &- 0x61 < 26 : byte &- 0x41 < 26
        bytes[index] = isLetter ? byte ^ 0x20 : byte
      }
      return TextSlice(start: UnsafePointer(bytes), count: text.count)
    }
    return UTF16Text.mapping(text, context.arena) { from, count, to, capacity in
      isUpper ? icu_to_upper(to, capacity, from, count) : icu_to_lower(to, capacity, from, count)
    }
  }

  /// The first letter of each word in title case, the others in lower case. A word consists of letters and
  /// digits.
  private static func capitalized(_ text: TextSlice, _ context: EvaluationContext) -> TextSlice {
    var result = String.UnicodeScalarView()
    var isInside = false
    for scalar in text.string.unicodeScalars {
      let code = Int32(bitPattern: scalar.value)
      let isWord = icu_is_alphanumeric(code) != 0
      let mapped = !isWord ? code : isInside ? icu_simple_lower(code) : icu_simple_title(code)
      result.append(Unicode.Scalar(UInt32(bitPattern: mapped)) ?? scalar)
      // A combining mark inside a word doesn't begin a new word.
      isInside = isWord || (isInside && (icu_is_mark(code) != 0))
    }
    return context.arena.copy(String(result))
  }

  /// Removes white space, or the characters of the second argument, from the ends. A first argument that
  /// isn't a string is returned as it is.
  private static func trim(
    _ arguments: UnsafeBufferPointer<QueryValue>, start: Bool, end: Bool
  ) -> QueryValue {
    guard case .string(let text) = arguments[0] else { return arguments[0] }
    var characters: Set<UInt32>?
    if arguments.count > 1 {
      guard case .string(let set) = arguments[1] else { return arguments[1].isMissing ? .missing : .null }
      characters = Set(set.string.unicodeScalars.map(\.value))
    }
    func isTrimmed(_ scalar: UInt32) -> Bool {
      characters?.contains(scalar) ?? (icu_is_space(Int32(bitPattern: scalar)) != 0)
    }
    var (from, to) = (0, text.count)
    while start, from < to {
      let (scalar, length) = text.scalar(at: from)
      guard isTrimmed(scalar) else { break }
      from += length
    }
    while end, to > from {
      var last = to - 1
      while last > from, text.start[last] & 0xC0 == 0x80 { last -= 1 }
      guard isTrimmed(text.scalar(at: last).scalar) else { break }
      to = last
    }
    return .string(text.slice(from, to))
  }

  /// `SUBSTR(text, position[, length])`. A negative position counts from the end. A position outside the text
  /// gives null.
  static func substring(_ arguments: UnsafeBufferPointer<QueryValue>) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let text) = arguments[0], let position = wholeNumber(arguments[1]) else {
      return .null
    }
    let count = text.scalarCount
    let start = position < 0 ? count &+ position : position
    guard start >= 0, start <= count, !(start == count && count > 0) else { return .null }
    var length = count - start
    if arguments.count > 2 {
      guard let wanted = wholeNumber(arguments[2]), wanted >= 0 else { return .null }
      length = min(length, wanted)
    }
    let from = text.offset(ofScalar: start, from: 0)
    return .string(text.slice(from, text.offset(ofScalar: length, from: from)))
  }

  /// An integer, or a double without a fraction. Nil for other values.
  static func wholeNumber(_ value: QueryValue) -> Int? {
    switch value {
    case .int(let value): Int(exactly: value)
    case .double(let value): Int(exactly: value)
    default: nil
    }
  }

  /// `REPLACE(text, old, new[, times])`. Without `times`, or when it is negative, all occurrences are
  /// replaced.
  private static func replace(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ context: EvaluationContext
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let text) = arguments[0], case .string(let old) = arguments[1],
      case .string(let new) = arguments[2]
    else { return .null }
    var left = Int.max
    if arguments.count > 3 {
      guard let times = wholeNumber(arguments[3]) else { return .null }
      if times >= 0 { left = times }
    }
    guard old.count > 0 else { return .string(text) }
    var bytes: [UInt8] = []
    var offset = 0
    while left > 0, context.goesOn, let found = find(old, in: text, from: offset) {
      bytes.append(contentsOf: text.slice(offset, found).utf8)
      bytes.append(contentsOf: new.utf8)
      if bytes.count > context.limits.textBytes { return tooLong(context) }
      offset = found + old.count
      left -= 1
    }
    if offset == 0 { return .string(text) }
    bytes.append(contentsOf: text.slice(offset, text.count).utf8)
    return bytes.withUnsafeBytes { .string(context.arena.copy(TextSlice($0))) }
  }

  /// The code points in reverse order.
  private static func reversed(_ text: TextSlice, _ context: EvaluationContext) -> TextSlice {
    let bytes = context.arena.allocate(text.count, of: UInt8.self)
    var from = 0
    var to = text.count
    while from < text.count {
      let length = text.scalar(at: from).length
      to -= length
      for index in 0..<length { bytes[to + index] = text.start[from + index] }
      from += length
    }
    return TextSlice(start: UnsafePointer(bytes), count: text.count)
  }

  /// `REPEAT(text, times)`. A negative number gives null.
  private static func repeated(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ context: EvaluationContext
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let text) = arguments[0], let times = wholeNumber(arguments[1]), times >= 0 else {
      return .null
    }
    let (total, overflow) = text.count.multipliedReportingOverflow(by: times)
    if overflow || total > context.limits.textBytes { return tooLong(context) }
    // A result can have many long texts. None is made after the query has to stop.
    guard total < 1 << 16 || context.goesOn else { return .missing }
    let bytes = context.arena.allocate(total, of: UInt8.self)
    if total > 0 {
      bytes.update(from: text.start, count: text.count)
      // Doubles the text: what is already written is copied after itself.
      var count = text.count
      while count < total {
        let more = min(count, total - count)
        (bytes + count).update(from: bytes, count: more)
        count += more
      }
    }
    return .string(TextSlice(start: UnsafePointer(bytes), count: total))
  }

  /// `SPLIT(text[, separator])`. Without a separator, it returns the words between white space.
  private static func split(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ context: EvaluationContext
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let text) = arguments[0] else { return .null }
    var parts: [QueryValue] = []
    /// Adds a part. False when there are too many parts, or the query has to stop.
    func add(_ part: TextSlice) -> Bool {
      parts.append(.string(part))
      if parts.count > context.limits.items {
        context.fail(
          QueryError(.evaluation, "the result of SPLIT has more than \(context.limits.items) items"))
      }
      return context.goesOn
    }
    if arguments.count > 1 {
      guard case .string(let separator) = arguments[1] else { return .null }
      var offset = 0
      if separator.count == 0 {
        while offset < text.count {
          let length = text.scalar(at: offset).length
          guard add(text.slice(offset, offset + length)) else { return .missing }
          offset += length
        }
      } else {
        while let found = find(separator, in: text, from: offset) {
          guard add(text.slice(offset, found)) else { return .missing }
          offset = found + separator.count
        }
        guard add(text.slice(offset, text.count)) else { return .missing }
      }
    } else {
      var offset = 0
      var word: Int?
      while offset < text.count {
        let (scalar, length) = text.scalar(at: offset)
        if icu_is_space(Int32(bitPattern: scalar)) != 0 {
          if let word { guard add(text.slice(word, offset)) else { return .missing } }
          word = nil
        } else if word == nil {
          word = offset
        }
        offset += length
      }
      if let word { guard add(text.slice(word, text.count)) else { return .missing } }
    }
    return context.arena.array(parts)
  }
}

extension TextSlice {
  /// The number of code points.
  var scalarCount: Int {
    var total = 0
    for index in 0..<count where start[index] & 0xC0 != 0x80 { total &+= 1 }
    return total
  }

  /// The code point at an offset, and its length in bytes. It never reads beyond the end.
  @inline(__always)
  func scalar(at offset: Int) -> (scalar: UInt32, length: Int) {
    let first = UInt32(start[offset])
    if first < 0x80 { return (first, 1) }
    let wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1
    var scalar = wanted == 4 ? first & 7 : wanted == 3 ? first & 15 : first & 31
    var length = 1
    while length < wanted, offset + length < count, start[offset + length] & 0xC0 == 0x80 {
      scalar = scalar << 6 | UInt32(start[offset + length] & 0x3F)
      length += 1
    }
    return (scalar, length)
  }

  /// The offset of the code point that is `number` code points after `from`.
  func offset(ofScalar number: Int, from: Int) -> Int {
    var offset = from
    var left = number
    while left > 0, offset < count {
      offset += 1
      while offset < count, start[offset] & 0xC0 == 0x80 { offset += 1 }
      left -= 1
    }
    return offset
  }
}
