import CICU
import Fleece

// Functions of the tokens of a value: the words of its texts, its names, and its other atoms. A word is a run of
// letters and digits.

enum TokenFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("TOKENS", 1...2) { arguments, context, _ in
      if arguments.contains(where: \.isMissing) { return .missing }
      guard let tokens = Tokens(arguments, 1, context) else { return .null }
      let order = ValueOrder(context.sharedKeys)
      let found = ValueSet()
      _ = tokens.forEach(in: arguments[0]) { token in
        found.insert(token, order)
        return context.goesOn && found.count <= context.limits.items
      }
      return context.array((0..<found.count).map { found[$0] }, of: "TOKENS")
    },
    QueryFunction("CONTAINS_TOKEN", 2...3) { arguments, context, _ in
      let order = ValueOrder(context.sharedKeys)
      return contains(arguments, context) { order.areEqual($0, arguments[1]) }
    },
    QueryFunction("CONTAINS_TOKEN_LIKE", 2...3, usesPattern: true) { arguments, context, site in
      matching(arguments, context) { token, pattern in
        let like = context.pattern(site.pattern, for: pattern) { LikePattern($0, site.like) }
        return (like as? LikePattern)?.matches(token, context) ?? false
      }
    },
    QueryFunction("CONTAINS_TOKEN_REGEXP", 2...3, usesPattern: true) { arguments, context, site in
      guard case .string(let pattern) = arguments[1] else {
        return arguments.contains(where: \.isMissing) ? .missing : .null
      }
      // The whole token has to match.
      let whole = context.arena.copy("^(?:" + pattern.string + ")$")
      return matching(arguments, context) { token, _ in
        PatternFunctions.isMatch(token.string, whole, context, site)
      }
    },
  ]

  /// Whether a token of the first argument passes a test of texts. The second argument is a pattern.
  private static func matching(
    _ arguments: Arguments, _ context: EvaluationContext, _ test: (TextSlice, TextSlice) -> Bool
  ) -> QueryValue {
    guard case .string(let pattern) = arguments[1] else {
      return arguments.contains(where: \.isMissing) ? .missing : .null
    }
    return contains(arguments, context) { token in token.text.map { test($0, pattern) } ?? false }
  }

  private static func contains(
    _ arguments: Arguments, _ context: EvaluationContext, _ test: (QueryValue) -> Bool
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard let tokens = Tokens(arguments, 2, context) else { return .null }
    let isFound = !tokens.forEach(in: arguments[0]) { !test($0) && context.goesOn }
    return context.goesOn ? .bool(isFound) : .missing
  }
}

/// Splits values into tokens.
private struct Tokens {
  private enum Case { case asWritten, lower, upper }

  private let context: EvaluationContext
  private let letterCase: Case
  private let includesNames: Bool
  private let splits: Bool
  private let trims: Bool
  /// Whether runs between white space and brackets are tokens too, such as addresses.
  private let includesSpecials: Bool

  /// Nil when the argument with the options isn't an object.
  init?(_ arguments: Arguments, _ index: Int, _ context: EvaluationContext) {
    guard let options = FunctionOptions(arguments, index, context) else { return nil }
    self.context = context
    switch options.text("case")?.string.lowercased() {
    case "lower": letterCase = .lower
    case "upper": letterCase = .upper
    default: letterCase = .asWritten
    }
    includesNames = !options.isOff("names") && !options.isOff("name")
    splits = !options.isOff("split")
    trims = !options.isOff("trim")
    includesSpecials = options.flag("specials") == true
  }

  /// Calls `body` with each token until it returns false. Returns false then. A token may come more than once.
  func forEach(in value: QueryValue, depth: Int = 0, _ body: (QueryValue) -> Bool) -> Bool {
    guard depth <= FleeceLimits.depth else { return true }
    switch value.type {
    case .missing: return true
    case .string: return value.text.map { forEach(of: $0, body) } ?? true
    case .array:
      for item in value.items where !forEach(in: item, depth: depth + 1, body) { return false }
      return true
    case .object:
      for member in value.sortedMembers(context.sharedKeys) {
        if includesNames, !forEach(of: member.name, body) { return false }
        if !forEach(in: member.value, depth: depth + 1, body) { return false }
      }
      return true
    default: return body(value)
    }
  }

  private func forEach(of text: TextSlice, _ body: (QueryValue) -> Bool) -> Bool {
    guard splits else {
      return body(.string(folded(trims ? text.trimmed { icu_is_space($0) != 0 } : text)))
    }
    guard runs(of: text, { icu_is_alphanumeric($0) != 0 }, { body(.string(folded($0))) }) else {
      return false
    }
    guard includesSpecials else { return true }
    return runs(of: text, { icu_is_space($0) == 0 && !Self.brackets.contains($0) }) { run in
      let token = run.trimmed(start: false) { icu_is_alphanumeric($0) == 0 }
      return token.count == 0 || body(.string(folded(token)))
    }
  }

  private static let brackets: Set<Int32> = Set("()[]{}".unicodeScalars.map { Int32($0.value) })

  /// Calls `body` with each longest run of characters that pass a test, until it returns false.
  private func runs(of text: TextSlice, _ isInside: (Int32) -> Bool, _ body: (TextSlice) -> Bool) -> Bool {
    var offset = 0
    var start: Int?
    while offset < text.count, context.goesOn {
      let (scalar, length) = text.scalar(at: offset)
      if isInside(Int32(bitPattern: scalar)) {
        start = start ?? offset
      } else if let begin = start {
        guard body(text.slice(begin, offset)) else { return false }
        start = nil
      }
      offset += length
    }
    return start.map { body(text.slice($0, text.count)) } ?? true
  }

  private func folded(_ text: TextSlice) -> TextSlice {
    letterCase == .asWritten ? text : StringFunctions.cased(text, isUpper: letterCase == .upper, context)
  }
}

extension TextSlice {
  /// The text without characters at its ends that pass a test.
  fileprivate func trimmed(start trimsStart: Bool = true, _ isTrimmed: (Int32) -> Bool) -> TextSlice {
    var (from, to) = (0, count)
    while trimsStart, from < to {
      let (scalar, length) = scalar(at: from)
      guard isTrimmed(Int32(bitPattern: scalar)) else { break }
      from += length
    }
    while to > from {
      var last = to - 1
      while last > from, start[last] & 0xC0 == 0x80 { last -= 1 }
      guard isTrimmed(Int32(bitPattern: scalar(at: last).scalar)) else { break }
      to = last
    }
    return slice(from, to)
  }
}
