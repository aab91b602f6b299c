import CICU

// Regular expressions of ICU. They are case-sensitive, and match anywhere in the text unless anchored.

/// A compiled regular expression. It belongs to one evaluation context.
final class RegularExpression: Pattern {
  /// Nil when ICU rejects the pattern.
  let icu: OpaquePointer?

  /// The maximum memory for backtracking, in bytes.
  private static let stackLimit: Int32 = 8_000_000

  /// Compiles a pattern for a context. The context keeps it, and a match stops when the context says that the
  /// query has to stop.
  init(source: TextSlice, _ context: EvaluationContext) {
    // ICU's C interface refuses an empty pattern, which matches everywhere, as in its C++ interface.
    let units = source.string.isEmpty ? Array("(?:)".utf16) : Array(source.string.utf16)
    var status = icu_status(0)
    icu = icu_regex_open(units, Int32(units.count), &status)
    if let icu {
      icu_regex_limit(icu, context.limits.patternSteps, RegularExpression.stackLimit, &status)
      icu_regex_ask(
        icu, { context, _ in RegularExpression.goesOn(context) },
        { context, _ in RegularExpression.goesOn(context) }, Unmanaged.passUnretained(context).toOpaque(),
        &status)
    }
    super.init(source: source)
  }

  deinit { if let icu { icu_regex_close(icu) } }

  /// Whether a search may go on. ICU calls this with the context, which outlives its patterns.
  private static func goesOn(_ context: UnsafeRawPointer?) -> Int8 {
    guard let context else { return 1 }
    return Unmanaged<EvaluationContext>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.goesOn ? 1 : 0 }
  }
}

enum PatternFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("REGEXP_CONTAINS", 2...2, usesPattern: true) { arguments, context, site in
      find(arguments, context, site) { _, _, found in .bool(found != nil) }
    },
    QueryFunction("REGEXP_LIKE", 2...2, usesPattern: true) { arguments, context, site in
      find(arguments, context, site) { _, _, found in .bool(found != nil) }
    },
    QueryFunction("REGEXP_POSITION", 2...2, usesPattern: true) { arguments, context, site in
      find(arguments, context, site) { _, units, found in
        guard let found else { return .int(-1) }
        let before = UTF16Text.text(UnsafeBufferPointer(rebasing: units[..<found]), context.arena)
        return .int(Int64(before.count))
      }
    },
    QueryFunction("REGEXP_POSITION1", 2...2, usesPattern: true) { arguments, context, site in
      find(arguments, context, site) { _, units, found in
        guard let found else { return .int(0) }
        let before = UTF16Text.text(UnsafeBufferPointer(rebasing: units[..<found]), context.arena)
        return .int(Int64(before.count) + 1)
      }
    },
    QueryFunction("REGEXP_REPLACE", 3...4, usesPattern: true, replace),
    QueryFunction("REGEXP_MATCHES", 2...2, usesPattern: true) { arguments, context, site in
      parts(arguments, context, site) { units, found in
        found.map { .string(UTF16Text.text(UnsafeBufferPointer(rebasing: units[$0]), context.arena)) }
      }
    },
    QueryFunction("REGEXP_SPLIT", 2...2, usesPattern: true) { arguments, context, site in
      parts(arguments, context, site) { units, found in
        // An empty match at the start splits nothing off. Without a match there are no parts.
        let cuts = found.filter { !$0.isEmpty || $0.lowerBound > 0 }
        guard !cuts.isEmpty else { return [] }
        var start = 0
        var pieces = cuts.map { cut in
          defer { start = cut.upperBound }
          return units[start..<cut.lowerBound]
        }
        if start < units.count { pieces.append(units[start...]) }
        return pieces.map { .string(UTF16Text.text(UnsafeBufferPointer(rebasing: $0), context.arena)) }
      }
    },
  ]

  /// An array of what `body` makes of all matches.
  private static func parts(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite,
    _ body: (UnsafeBufferPointer<UInt16>, [Range<Int>]) -> [QueryValue]
  ) -> QueryValue {
    StringFunctions.texts2(arguments) { text, source in
      let units = UTF16Text.units(text, context.arena)
      guard let icu = prepare(source, units, context, site) else { return .missing }
      var status = icu_status(0)
      var found: [Range<Int>] = []
      while icu_regex_find_next(icu, &status) != 0, icu_failed(status) == 0, context.goesOn {
        found.append(Int(icu_regex_start(icu, 0))..<Int(icu_regex_end(icu, 0)))
        if found.count > context.limits.items { return context.tooManyItems(of: "a regular expression") }
      }
      if icu_failed(status) != 0 { return failed(status, context) }
      return context.array(body(units, found), of: "a regular expression")
    }
  }

  /// Whether a regular expression matches in a text. False after an error, which the context has.
  static func isMatch(
    _ text: String, _ source: TextSlice, _ context: EvaluationContext, _ site: CallSite
  ) -> Bool {
    context.arena.scope { position(of: source, in: context.arena.copy(text), context, site) != nil }
  }

  /// The position in code points where a regular expression first matches in a text. Nil when it doesn't, and
  /// after an error, which the context has.
  static func position(
    of source: TextSlice, in text: TextSlice, _ context: EvaluationContext, _ site: CallSite
  ) -> Int? {
    let units = UTF16Text.units(text, context.arena)
    guard let icu = prepare(source, units, context, site) else { return nil }
    var status = icu_status(0)
    let isFound = icu_regex_find(icu, 0, &status) != 0
    if icu_failed(status) != 0 { _ = failed(status, context) }
    guard isFound, icu_failed(status) == 0 else { return nil }
    let before = units[..<Int(icu_regex_start(icu, 0))]
    return UTF16Text.text(UnsafeBufferPointer(rebasing: before), context.arena).scalarCount
  }

  /// The result of a failed match. MISSING when the query has to stop, else an error such as ICU's time or
  /// stack limit.
  private static func failed(_ status: icu_status, _ context: EvaluationContext) -> QueryValue {
    guard context.goesOn else { return .missing }
    let name = icu_error_name(status).map { String(cString: $0) } ?? "unknown"
    return context.fail(QueryError(.evaluation, "a regular expression can't be matched: ICU says \(name)"))
  }

  /// Compiles the pattern and sets its text. Nil for an invalid pattern, after reporting the error.
  private static func prepare(
    _ source: TextSlice, _ units: UnsafeBufferPointer<UInt16>, _ context: EvaluationContext, _ site: CallSite
  ) -> OpaquePointer? {
    let pattern = context.pattern(site.pattern, for: source) { RegularExpression(source: $0, context) }
    guard let icu = (pattern as? RegularExpression)?.icu else {
      context.fail(QueryError(.evaluation, "\"\(source.string)\" isn't a valid regular expression"))
      return nil
    }
    var status = icu_status(0)
    icu_regex_set_text(icu, units.baseAddress, Int32(units.count), &status)
    return icu
  }

  /// Finds the first match. `body` gets its start offset in UTF-16 units.
  private static func find(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ context: EvaluationContext, _ site: CallSite,
    _ body: (OpaquePointer, UnsafeBufferPointer<UInt16>, Int?) -> QueryValue
  ) -> QueryValue {
    StringFunctions.texts2(arguments) { text, source in
      let units = UTF16Text.units(text, context.arena)
      guard let icu = prepare(source, units, context, site) else { return .missing }
      var status = icu_status(0)
      let found = icu_regex_find(icu, 0, &status) != 0
      if icu_failed(status) != 0 { return failed(status, context) }
      return body(icu, units, found ? Int(icu_regex_start(icu, 0)) : nil)
    }
  }

  /// `REGEXP_REPLACE(text, pattern, replacement[, times])`. In the replacement, `$1` … `$99` are groups, `$&`
  /// is the match and `$$` a dollar sign.
  private static func replace(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let text) = arguments[0], case .string(let source) = arguments[1],
      case .string(let replacement) = arguments[2]
    else { return .null }
    var left = Int.max
    if arguments.count > 3 {
      guard let times = StringFunctions.wholeNumber(arguments[3]) else { return .null }
      if times >= 0 { left = times }
    }
    let units = UTF16Text.units(text, context.arena)
    guard let icu = prepare(source, units, context, site) else { return .missing }
    let template = Array(UTF16Text.units(replacement, context.arena))
    let groups = Int(icu_regex_groups(icu))
    var status = icu_status(0)
    var result: [UInt16] = []
    var offset = 0
    while left > 0, icu_regex_find_next(icu, &status) != 0, icu_failed(status) == 0 {
      let (start, end) = (Int(icu_regex_start(icu, 0)), Int(icu_regex_end(icu, 0)))
      result.append(contentsOf: units[offset..<start])
      expand(template, icu, groups, units, into: &result)
      offset = end
      left -= 1
      if result.count > context.limits.textBytes { return StringFunctions.tooLong(context) }
    }
    if icu_failed(status) != 0 { return failed(status, context) }
    if offset == 0, result.isEmpty { return .string(text) }
    result.append(contentsOf: units[offset...])
    return result.withUnsafeBufferPointer { .string(UTF16Text.text($0, context.arena)) }
  }

  private static func expand(
    _ template: [UInt16], _ icu: OpaquePointer, _ groups: Int, _ units: UnsafeBufferPointer<UInt16>,
    into result: inout [UInt16]
  ) {
    func append(group: Int) {
      let (start, end) = (Int(icu_regex_start(icu, Int32(group))), Int(icu_regex_end(icu, Int32(group))))
      if start >= 0, end >= start { result.append(contentsOf: units[start..<end]) }
    }
    func digit(_ index: Int) -> Int? {
      index < template.count && template[index] >= 0x30 && template[index] <= 0x39
        ? Int(template[index]) - 0x30 : nil
    }
    var index = 0
    while index < template.count {
      let unit = template[index]
      index += 1
      guard unit == 0x24, index < template.count else {
        result.append(unit)
        continue
      }
      if template[index] == 0x24 {
        result.append(0x24)
        index += 1
      } else if template[index] == 0x26 {
        append(group: 0)
        index += 1
      } else if let first = digit(index), first <= groups {
        index += 1
        if let second = digit(index), first * 10 + second <= groups {
          index += 1
          append(group: first * 10 + second)
        } else {
          append(group: first)
        }
      } else {
        result.append(unit)
      }
    }
  }
}
