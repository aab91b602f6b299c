import Documents
import Fleece
import Storage

// Functions of the JSON text of values, of base64, and of values in general.

enum JSONFunctions {
  static let table: [QueryFunction] = [
    // MISSING has no JSON text: it is encoded as nothing, and nothing is decoded as MISSING.
    QueryFunction("ENCODE_JSON", 1...1) { arguments, context, _ in
      guard !arguments[0].isMissing else { return .string(.empty) }
      return json(arguments[0], context) { .string(context.arena.copy(TextSlice($0))) }
    },
    QueryFunction("DECODE_JSON", 1...1) { arguments, context, _ in
      StringFunctions.text1(arguments) { text in
        if text.count == 0 { return .missing }
        return (try? JSONValue(json: text.bytes)).map { context.arena.value(of: $0) } ?? .null
      }
    },
    QueryFunction("ENCODED_SIZE", 1...1) { arguments, context, _ in
      arguments[0].isMissing ? .int(0) : json(arguments[0], context) { .int(Int64($0.count)) }
    },
    QueryFunction("BASE64_ENCODE", 1...1) { arguments, context, _ in
      if case .data(let bytes) = arguments[0] { return base64(bytes.bytes, context) }
      return arguments[0].isMissing ? .missing : json(arguments[0], context) { base64($0, context) }
    },
    QueryFunction("BASE64_DECODE", 1...1) { arguments, context, _ in
      StringFunctions.text1(arguments) { text in
        guard let bytes = Base64Text.decoded(text.utf8) else { return .null }
        return bytes.withUnsafeBytes { bytes in
          // What was encoded is JSON text, unless it was binary data.
          if let value = try? JSONValue(json: bytes) { return context.arena.value(of: value) }
          return .data(context.arena.copy(TextSlice(bytes)))
        }
      }
    },
    QueryFunction("HASHBYTES", 1...2) { arguments, context, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard let algorithm = algorithm(arguments, context) else { return .null }
      func hash(_ bytes: UnsafeRawBufferPointer) -> QueryValue {
        guard let digest = MessageDigest.of(bytes, algorithm) else { return .null }
        return digest.withUnsafeBytes { .data(context.arena.copy(TextSlice($0))) }
      }
      if case .data(let bytes) = arguments[0] { return hash(bytes.bytes) }
      return json(arguments[0], context, hash)
    },
    QueryFunction("POLY_LENGTH", 1...1) { arguments, context, _ in length(arguments[0], context) ?? .null },
    QueryFunction("LEN", 1...1) { arguments, context, _ in
      if let length = length(arguments[0], context) { return length }
      switch arguments[0] {
      case .bool: return .int(1)
      case .data(let bytes): return .int(Int64(bytes.count))
      case .int, .uint, .double: return json(arguments[0], context) { .int(Int64($0.count)) }
      default: return .null
      }
    },
    QueryFunction("PAIRS", 1...1) { arguments, context, _ in
      if arguments[0].isMissing { return .missing }
      guard arguments[0].type == .object || arguments[0].type == .array else { return .null }
      var pairs: [QueryValue] = []
      collectPairs(arguments[0], &pairs, context)
      return context.array(pairs, of: "PAIRS")
    },
    QueryFunction("UUID", 0...0, volatility: .call) { _, context, _ in uuid(context) },
    QueryFunction("VERSION", 0...0) { _, _, _ in QueryValue(QueryVocabulary.version) },
    QueryFunction("FORMALIZE", 1...2) { arguments, context, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard case .string(let text) = arguments[0], arguments.count == 1 || arguments[1].type == .string,
        let statement = try? QueryStatement(parsing: text.string)
      else { return .null }
      return .string(context.arena.copy(statement.description))
    },
  ]

  private static func json(
    _ value: QueryValue, _ context: EvaluationContext, _ body: (UnsafeRawBufferPointer) -> QueryValue
  ) -> QueryValue {
    var bytes: [UInt8] = []
    do { try value.writeJSON(context.sharedKeys, into: &bytes) } catch { return context.fail(error) }
    return bytes.count <= context.limits.textBytes
      ? bytes.withUnsafeBytes(body) : StringFunctions.tooLong(context)
  }

  /// The algorithm of HASHBYTES: a text, or the member `algorithm` of an object. Nil for other values.
  private static func algorithm(_ arguments: Arguments, _ context: EvaluationContext) -> String? {
    guard arguments.count == 2 else { return "sha256" }
    if case .string(let name) = arguments[1] { return name.string.lowercased() }
    guard arguments[1].type == .object else { return nil }
    for member in arguments[1].sortedMembers(context.sharedKeys) where member.name.string == "algorithm" {
      if case .string(let name) = member.value { return name.string.lowercased() }
      return nil
    }
    return "sha256"
  }

  private static func base64(_ bytes: UnsafeRawBufferPointer, _ context: EvaluationContext) -> QueryValue {
    guard bytes.count <= context.limits.textBytes / 4 * 3 else { return StringFunctions.tooLong(context) }
    var writer = JSONWriter()
    writer.append(base64: bytes)
    var text: [UInt8] = []
    writer.write(to: &text)
    // The writer adds quotes.
    return text.withUnsafeBytes { text in
      .string(context.arena.copy(TextSlice(UnsafeRawBufferPointer(rebasing: text.dropFirst().dropLast()))))
    }
  }

  /// The length of a string, an array or an object. Nil for other types but null and missing.
  private static func length(_ value: QueryValue, _ context: EvaluationContext) -> QueryValue? {
    switch value.type {
    case .missing: return .missing
    case .null: return .null
    case .string: return .int(Int64(value.text?.scalarCount ?? 0))
    case .array: return .int(Int64(value.count))
    case .object: return .int(Int64(value.sortedMembers(context.sharedKeys).count))
    default: return nil
    }
  }

  /// Collects `[name, value]` for each member at each depth. A member that is an array also gives a pair for each
  /// of its items.
  private static func collectPairs(
    _ value: QueryValue, _ pairs: inout [QueryValue], _ context: EvaluationContext, depth: Int = 0
  ) {
    guard context.goesOn, depth <= FleeceLimits.depth, pairs.count <= context.limits.items else { return }
    if value.type == .array {
      for item in value.items { collectPairs(item, &pairs, context, depth: depth + 1) }
    }
    guard value.type == .object else { return }
    for member in value.sortedMembers(context.sharedKeys) {
      pairs.append(context.arena.array([.string(member.name), member.value]))
      if member.value.type == .array {
        for item in member.value.items { pairs.append(context.arena.array([.string(member.name), item])) }
      }
      collectPairs(member.value, &pairs, context, depth: depth + 1)
    }
  }

  /// A random UUID of version 4, in lower case.
  private static func uuid(_ context: EvaluationContext) -> QueryValue {
    var random = SystemRandomNumberGenerator()
    var high = random.next() as UInt64
    var low = random.next() as UInt64
    high = high & ~0xF000 | 0x4000
    low = low & ~(0b11 << 62) | 0b10 << 62
    var text: [UInt8] = []
    for (index, byte) in [high, low].flatMap({ word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) }
    })
    .enumerated() {
      if [4, 6, 8, 10].contains(index) { text.append(UInt8(ascii: "-")) }
      for digit in [byte >> 4, byte & 15] { text.append(digit < 10 ? 0x30 + digit : 0x57 + digit) }
    }
    return text.withUnsafeBytes { .string(context.arena.copy(TextSlice($0))) }
  }
}

/// Base64 of the standard alphabet, with padding.
enum Base64Text {
  /// The bytes that a text encodes. Nil when it isn't base64. Line breaks are skipped.
  static func decoded(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8]? {
    let digits = text.filter { $0 != 0x0A && $0 != 0x0D }
    guard digits.count % 4 == 0 else { return nil }
    let padding = digits.reversed().prefix { $0 == UInt8(ascii: "=") }.count
    guard padding <= 2 else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 4 * 3)
    var word: UInt32 = 0
    for (index, digit) in digits.enumerated() {
      guard let bits = index < digits.count - padding ? bits(of: digit) : 0 else { return nil }
      word = word << 6 | bits
      guard index % 4 == 3 else { continue }
      for shift in [16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: word >> shift)) }
      word = 0
    }
    bytes.removeLast(padding)
    return bytes
  }

  private static func bits(of digit: UInt8) -> UInt32? {
    switch digit {
    case 0x41...0x5A: UInt32(digit - 0x41)
    case 0x61...0x7A: UInt32(digit - 0x61 + 26)
    case 0x30...0x39: UInt32(digit - 0x30 + 52)
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
