import CICU

/// The differences that LIKE and CONTAINS ignore.
struct LikeOptions {
  var ignoresCase: Bool
  var ignoresDiacritics: Bool

  /// LIKE ignores case, unless a COLLATE around it says otherwise.
  init(_ collation: Collation?) {
    ignoresCase = collation?.ignoresCase ?? true
    ignoresDiacritics = collation?.ignoresDiacritics ?? false
  }

  /// A code point after simple case folding.
  @inline(__always)
  func folded(_ scalar: UInt32) -> UInt32 {
    if !ignoresCase { return scalar }
    if scalar < 0x80 { return scalar &- 0x41 < 26 ? scalar | 0x20 : scalar }
    return UInt32(bitPattern: icu_fold(Int32(bitPattern: scalar)))
  }
}

/// A LIKE pattern: `%` is any text, `_` is one character, and `\` makes the next character stand for itself.
///
/// The pattern is split at each `%`. The first part has to be at the start of the text, and the last part at
/// its end. Each part between has to follow the previous one, at its first occurrence. So no part is searched
/// twice, and the time doesn't grow with pattern length times text length (`LikePart`).
final class LikePattern: Pattern, @unchecked Sendable {
  private let options: LikeOptions
  private let first: LikePart
  private let between: [LikePart]
  /// Nil for a pattern without `%`.
  private let last: LikePart?
  /// The middle part of a pattern of the form `%text%`.
  private let infix: LikePart?
  /// Whether all characters of the pattern are ASCII.
  private let isASCII: Bool

  /// Parses a pattern.
  init(_ source: TextSlice, _ options: LikeOptions) {
    self.options = options
    var parts: [[UInt8]] = [[]]
    var offset = 0
    while offset < source.count {
      let (scalar, length) = source.scalarOrReplacement(at: offset)
      offset += length
      switch scalar {
      case 0x25: parts.append([])
      case 0x5F: parts[parts.count - 1].append(LikePart.anyOne)
      case 0x5C where offset < source.count:
        let (next, length) = source.scalarOrReplacement(at: offset)
        offset += length
        options.append(next, to: &parts[parts.count - 1])
      default: options.append(scalar, to: &parts[parts.count - 1])
      }
    }
    isASCII = parts.allSatisfy { $0.allSatisfy { $0 < 0x80 || $0 == LikePart.anyOne } }
    first = LikePart(parts[0])
    last = parts.count > 1 ? LikePart(parts[parts.count - 1]) : nil
    between = parts.dropFirst().dropLast().filter { !$0.isEmpty }.map { LikePart($0) }
    infix = parts[0].isEmpty && parts[parts.count - 1].isEmpty && between.count == 1 ? between[0] : nil
    super.init(source: source)
  }

  /// Whether the whole text matches the pattern. Also false when the query has to stop
  /// (`EvaluationContext.goesOn`).
  func matches(_ text: TextSlice, _ context: EvaluationContext) -> Bool {
    if text.isASCII {
      // ASCII text stays ASCII when it is folded.
      guard isASCII else { return false }
      let text = LikeText(text: text, foldsASCII: options.ignoresCase)
      if let infix, !infix.isLongSearch(text.count) {
        return infix.find(in: text, 0, text.count, context) != nil
      }
      return context.arena.scope { matches(text, context) }
    }
    return context.arena.scope {
      matches(LikeText(text: options.folded(text, context.arena), foldsASCII: false), context)
    }
  }

  private func matches(_ text: LikeText, _ context: EvaluationContext) -> Bool {
    guard var from = first.end(in: text, from: 0) else { return false }
    guard let last else { return from == text.count }
    guard let to = last.start(in: text, from: from) else { return false }
    var text = text
    for part in between {
      if text.foldsASCII, part.isLongSearch(to - from) { text = text.folded(context.arena) }
      guard let end = part.find(in: text, from, to, context) else { return false }
      from = end
    }
    return true
  }
}

extension LikeOptions {
  /// Appends a character in its compared form: folded, and without marks if diacritics are ignored.
  fileprivate func append(_ scalar: UInt32, to bytes: inout [UInt8]) {
    forEachFolded(scalar) { scalar in
      withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4) { buffer in
        guard let start = buffer.baseAddress else { return }
        bytes.append(contentsOf: buffer[..<scalar.writeUTF8(to: start)])
      }
    }
  }

  /// The text in its compared form. It is the same memory when nothing is ignored, else a copy in the arena.
  func folded(_ text: TextSlice, _ arena: EvaluationArena) -> TextSlice {
    if !ignoresCase, !ignoresDiacritics { return text }
    if ignoresDiacritics {
      var bytes: [UInt8] = []
      bytes.reserveCapacity(text.count)
      var offset = 0
      while offset < text.count {
        let (scalar, length) = text.scalarOrReplacement(at: offset)
        offset += length
        append(scalar, to: &bytes)
      }
      return bytes.withUnsafeBytes { arena.copy(TextSlice($0)) }
    }
    // Each byte gives at most three bytes: U+FFFD for a byte that is not UTF-8.
    let bytes = arena.allocate(text.count * 3, of: UInt8.self)
    var (offset, count) = (0, 0)
    while offset < text.count {
      let (scalar, length) = text.scalarOrReplacement(at: offset)
      offset += length
      count += folded(scalar).writeUTF8(to: bytes + count)
    }
    return TextSlice(start: UnsafePointer(bytes), count: count)
  }

  private func forEachFolded(_ scalar: UInt32, _ body: (UInt32) -> Void) {
    guard ignoresDiacritics, scalar >= 0x80 else { return body(folded(scalar)) }
    var decomposed: [UInt16] = Array(repeating: 0, count: 32)
    let units = Array(String(Unicode.Scalar(scalar) ?? "\u{FFFD}").utf16)
    let count = icu_nfd(units, Int32(units.count), &decomposed, 32)
    let text = String(decoding: decomposed.prefix(Int(max(0, min(count, 32)))), as: UTF16.self)
    for part in text.unicodeScalars where icu_is_mark(Int32(bitPattern: part.value)) == 0 {
      body(folded(part.value))
    }
  }
}

extension TextSlice {
  /// Whether all bytes are below 0x80.
  @inline(__always)
  var isASCII: Bool {
    var index = 0
    let raw = UnsafeRawPointer(start)
    while index &+ 8 <= count {
      if raw.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 {
        return false
      }
      index &+= 8
    }
    while index < count {
      if start[index] >= 0x80 { return false }
      index &+= 1
    }
    return true
  }
}

/// `x LIKE pattern`. NULL when an operand is not a string.
final class LikeNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let operand: CompiledExpression
  private let pattern: CompiledExpression
  /// The compiled pattern when it is constant.
  private let fixed: LikePattern?
  private let options: LikeOptions
  private let number: Int
  private let negated: Bool

  init(
    _ operand: CompiledExpression, _ pattern: CompiledExpression, _ options: LikeOptions,
    pattern number: Int, negated: Bool
  ) {
    self.operand = operand
    self.pattern = pattern
    self.options = options
    self.number = number
    self.negated = negated
    if case .string(let text)? = pattern.constant {
      fixed = LikePattern(text, options)
    } else {
      fixed = nil
    }
  }

  var parts: [CompiledExpression] { [operand, pattern] }
  override func truth(_ context: EvaluationContext) -> Truth {
    let value = operand.evaluate(context)
    if let fixed {
      guard case .string(let text) = value else { return value.isMissing ? .missing : .null }
      return Truth(fixed.matches(text, context) != negated)
    }
    let other = pattern.evaluate(context)
    if value.isMissing || other.isMissing { return .missing }
    guard case .string(let text) = value, case .string(let source) = other else { return .null }
    let pattern = context.pattern(number, for: source) { LikePattern($0, options) }
    guard let pattern = pattern as? LikePattern else { return .null }
    return Truth(pattern.matches(text, context) != negated)
  }
}
