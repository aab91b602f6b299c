import CICU
import Fleece

// More functions of strings: padding, parts, URLs, masks. Positions and lengths are in code points.

enum TextFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("CONCAT2", 2...127, joined),
    padding("LPAD", isLeft: true), padding("RPAD", isLeft: false),
    QueryFunction("LEFT", 2...2) { arguments, _, _ in
      end(arguments) { text, count, length in
        text.slice(0, text.offset(ofScalar: min(count, length), from: 0))
      }
    },
    QueryFunction("RIGHT", 2...2) { arguments, _, _ in
      end(arguments) { text, count, length in
        text.slice(text.offset(ofScalar: max(0, count - length), from: 0), text.count)
      }
    },
    QueryFunction("SUBSTR1", 2...3) { arguments, context, _ in
      // The same as SUBSTR with a positive position one lower.
      withUnsafeTemporaryAllocation(of: QueryValue.self, capacity: 3) { shifted in
        for index in arguments.indices { shifted[index] = arguments[index] }
        if let position = StringFunctions.wholeNumber(arguments[1]), position > 0 {
          shifted[1] = .int(Int64(position - 1))
        }
        return StringFunctions.substring(UnsafeBufferPointer(rebasing: shifted[..<arguments.count]))
      }
    },
    QueryFunction("POSITION1", 2...2) { arguments, _, _ in
      StringFunctions.texts2(arguments) { text, other in
        guard let offset = StringFunctions.find(other, in: text, from: 0) else { return .int(0) }
        return .int(Int64(text.slice(0, offset).scalarCount) + 1)
      }
    },
    QueryFunction("UNICODE", 1...1) { arguments, _, _ in
      StringFunctions.text1(arguments) { text in
        text.string.unicodeScalars.first.map { .int(Int64($0.value)) } ?? .null
      }
    },
    QueryFunction("SUFFIXES", 1...1) { arguments, context, _ in
      StringFunctions.text1(arguments) { text in
        var suffixes: [QueryValue] = []
        var offset = 0
        while offset < text.count, suffixes.count <= context.limits.items {
          suffixes.append(.string(text.slice(offset, text.count)))
          offset = text.offset(ofScalar: 1, from: offset)
        }
        return context.array(suffixes, of: "SUFFIXES")
      }
    },
    QueryFunction("URLENCODE", 1...1) { arguments, context, _ in
      StringFunctions.text1(arguments) { text in
        var encoded: [UInt8] = []
        for byte in text.utf8 {
          if isUnreserved(byte) {
            encoded.append(byte)
          } else {
            encoded.append(UInt8(ascii: "%"))
            for digit in [byte >> 4, byte & 15] { encoded.append(digit < 10 ? 0x30 + digit : 0x37 + digit) }
          }
        }
        return context.text(encoded)
      }
    },
    QueryFunction("URLDECODE", 1...1) { arguments, context, _ in
      StringFunctions.text1(arguments) { decoded($0).map { context.text($0) } ?? .null }
    },
    QueryFunction("LEVENSHTEIN_DISTANCE", 2...2) { arguments, context, _ in
      StringFunctions.texts2(arguments) { .int(Int64(distance($0, $1, context))) }
    },
    QueryFunction("MASK", 1...2, usesPattern: true, mask),
    QueryFunction("LIKE_ESCAPE", 2...2, likeEscape), QueryFunction("LIKE_PREFIX", 1...1, likePrefix),
  ]

  /// `LIKE_PREFIX(pattern)`: what the pattern has before its first wildcard.
  @Sendable private static func likePrefix(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    StringFunctions.text1(arguments) { pattern in
      var prefix: [UInt8] = []
      var isEscaped = false
      for byte in pattern.bytes {
        if !isEscaped {
          if byte == UInt8(ascii: "%") || byte == UInt8(ascii: "_") { break }
          if byte == UInt8(ascii: "\\") {
            isEscaped = true
            continue
          }
        }
        isEscaped = false
        prefix.append(byte)
      }
      // A backslash at the end stands for itself.
      if isEscaped { prefix.append(UInt8(ascii: "\\")) }
      return .string(prefix.withUnsafeBytes { context.arena.copy(TextSlice($0)) })
    }
  }

  /// `LIKE_ESCAPE(pattern, escape)`: a pattern of LIKE in which another character than the backslash makes the next
  /// one stand for itself. `LIKE p ESCAPE e` is `LIKE LIKE_ESCAPE(p, e)`.
  @Sendable private static func likeEscape(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    StringFunctions.texts2(arguments) { pattern, escape in
      guard escape.scalarCount == 1 else { return .null }
      let sign = escape.scalar(at: 0).scalar
      var bytes: [UInt8] = []
      var offset = 0
      var isEscaped = false
      while offset < pattern.count {
        let (scalar, length) = pattern.scalar(at: offset)
        let text = pattern.slice(offset, offset + length).utf8
        offset += length
        if !isEscaped, scalar == sign {
          isEscaped = true
          continue
        }
        // A backslash has no meaning of its own here.
        if isEscaped || scalar == 0x5C { bytes.append(0x5C) }
        bytes.append(contentsOf: text)
        isEscaped = false
      }
      // At the end, the sign stands for itself.
      if isEscaped { bytes += [0x5C] + escape.utf8 }
      return context.text(bytes)
    }
  }

  /// `CONCAT2(separator, a, …)`: strings, and the strings of arrays, with the separator between them.
  @Sendable private static func joined(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let separator) = arguments[0] else { return .null }
    var bytes: [UInt8] = []
    var isFirst = true
    func append(_ value: QueryValue) -> Bool {
      guard case .string(let text) = value else { return false }
      if !isFirst { bytes.append(contentsOf: separator.utf8) }
      isFirst = false
      bytes.append(contentsOf: text.utf8)
      return bytes.count <= context.limits.textBytes && context.goesOn
    }
    for argument in arguments.dropFirst() {
      let all = argument.type == .array ? argument.items : [argument]
      for item in all where !append(item) {
        return bytes.count > context.limits.textBytes
          ? StringFunctions.tooLong(context) : context.goesOn ? .null : .missing
      }
    }
    return context.text(bytes)
  }

  /// `LPAD(text, size[, padding])` and RPAD. A longer text is cut at its end.
  private static func padding(_ name: String, isLeft: Bool) -> QueryFunction {
    QueryFunction(name, 2...3) { arguments, context, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard case .string(let text) = arguments[0], let size = StringFunctions.wholeNumber(arguments[1]),
        size >= 0
      else { return .null }
      var padding = TextSlice(" " as StaticString)
      if arguments.count > 2 {
        guard case .string(let given) = arguments[2], given.count > 0 else { return .null }
        padding = given
      }
      let missing = size - text.scalarCount
      guard missing > 0 else { return .string(text.slice(0, text.offset(ofScalar: size, from: 0))) }
      let width = padding.scalarCount
      let rest = padding.slice(0, padding.offset(ofScalar: missing % width, from: 0))
      let (repeated, overflow) = (missing / width).multipliedReportingOverflow(by: padding.count)
      guard !overflow, repeated <= context.limits.textBytes - text.count - rest.count, context.goesOn else {
        return StringFunctions.tooLong(context)
      }
      var bytes: [UInt8] = []
      bytes.reserveCapacity(repeated + rest.count + text.count)
      if !isLeft { bytes.append(contentsOf: text.utf8) }
      for _ in 0..<(missing / width) { bytes.append(contentsOf: padding.utf8) }
      bytes.append(contentsOf: rest.utf8)
      if isLeft { bytes.append(contentsOf: text.utf8) }
      return context.text(bytes)
    }
  }

  /// Computes a function of a text and a length. `body` also gets the length of the text.
  private static func end(
    _ arguments: Arguments, _ body: (TextSlice, Int, Int) -> TextSlice
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let text) = arguments[0], let length = StringFunctions.wholeNumber(arguments[1]),
      length >= 0
    else { return .null }
    return .string(body(text, text.scalarCount, length))
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x41...0x5A, 0x61...0x7A, 0x30...0x39: true
    default: "-_.~".utf8.contains(byte)
    }
  }

  /// A text without percent encoding. Nil when it is malformed, or not the encoding of UTF-8.
  private static func decoded(_ text: TextSlice) -> [UInt8]? {
    var bytes: [UInt8] = []
    var index = 0
    func digit(_ offset: Int) -> UInt8? {
      guard offset < text.count else { return nil }
      return Character(Unicode.Scalar(text.start[offset])).hexDigitValue.map { UInt8($0) }
    }
    while index < text.count {
      guard text.start[index] == UInt8(ascii: "%") else {
        bytes.append(text.start[index])
        index += 1
        continue
      }
      guard let high = digit(index + 1), let low = digit(index + 2) else { return nil }
      bytes.append(high << 4 | low)
      index += 3
    }
    return String(validating: bytes, as: UTF8.self) == nil ? nil : bytes
  }

  /// The number of code points to insert, delete or change, to make one text of the other.
  private static func distance(_ a: TextSlice, _ b: TextSlice, _ context: EvaluationContext) -> Int {
    let (a, b) = (Array(a.string.unicodeScalars), Array(b.string.unicodeScalars))
    var row = Array(0...b.count)
    for i in a.indices where context.goesOn {
      var diagonal = row[0]
      row[0] = i + 1
      for j in b.indices {
        let cost = min(diagonal + (a[i] == b[j] ? 0 : 1), row[j] + 1, row[j + 1] + 1)
        diagonal = row[j + 1]
        row[j + 1] = cost
      }
    }
    return row[b.count]
  }

  // MARK: MASK

  /// `MASK(text[, options])`: a text with a mask over it.
  @Sendable private static func mask(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let source) = arguments[0], let options = FunctionOptions(arguments, 1, context) else {
      return .null
    }
    func characters(_ name: StaticString) -> [Unicode.Scalar]? {
      options.text(name).map { Array($0.string.unicodeScalars) }
    }
    let maskBytes = options.text("mask")?.count ?? 0
    guard source.count + maskBytes <= context.limits.textBytes else {
      return StringFunctions.tooLong(context)
    }
    let text = Array(source.string.unicodeScalars)
    let given = characters("mask") ?? []
    var mask = Mask(
      characters: given.isEmpty ? Array(repeating: "*", count: 8) : given, holes: characters("hole") ?? [" "],
      injected: characters("inject") ?? [],
      keepsLength: options.text("length")?.string.lowercased() == "source")
    switch options["anchor"] {
    case .string(let anchor) where anchor.string.lowercased() == "start": break
    case .string(let anchor) where anchor.string.lowercased() == "end": mask.isFromEnd = true
    case .string(let anchor):
      let found = PatternFunctions.position(of: anchor, in: source, context, site)
      guard let found else { return context.failure == nil ? .string(source) : .missing }
      mask.anchor = found
    case .int, .uint, .double:
      guard let position = StringFunctions.wholeNumber(options["anchor"]), position > .min else {
        return .string(source)
      }
      mask.anchor = abs(position)
      mask.isFromEnd = position < 0
    default: break
    }
    guard mask.anchor <= text.count else { return .string(source) }
    var masked = String.UnicodeScalarView()
    masked.append(contentsOf: mask.applied(to: text))
    return .string(context.arena.copy(String(masked)))
  }
}

/// A mask over a text.
private struct Mask {
  let characters: [Unicode.Scalar]
  /// The characters of the mask through which the text is seen.
  let holes: [Unicode.Scalar]
  /// The characters of the mask that come between those of the text.
  let injected: [Unicode.Scalar]
  /// Whether the text behind the mask stays, and a mask that is longer than the text is cut.
  let keepsLength: Bool
  /// The number of characters before the mask.
  var anchor = 0
  /// Whether the anchor counts from the end, and the mask goes towards the start.
  var isFromEnd = false

  func applied(to text: [Unicode.Scalar]) -> [Unicode.Scalar] {
    var text = (isFromEnd ? text.reversed() : text)[...]
    let characters = isFromEnd ? self.characters.reversed() : self.characters
    let length =
      keepsLength
      ? text.count + characters.count { injected.contains($0) } : anchor + characters.count
    var result = Array(text.prefix(anchor))
    text = text.dropFirst(anchor)
    for character in characters where result.count < length {
      if holes.contains(character) {
        result.append(text.popFirst() ?? character)
      } else {
        if !injected.contains(character) { _ = text.popFirst() }
        result.append(character)
      }
    }
    result += text.prefix(max(0, length - result.count))
    return isFromEnd ? result.reversed() : result
  }
}

extension EvaluationContext {
  /// The text that a function returns.
  func text(_ bytes: [UInt8]) -> QueryValue {
    guard bytes.count <= limits.textBytes else { return StringFunctions.tooLong(self) }
    return bytes.withUnsafeBytes { .string(arena.copy(TextSlice($0))) }
  }
}
