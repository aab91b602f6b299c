import CICU

/// What LIKE and CONTAINS don't tell apart.
struct LikeOptions {
  var ignoresCase: Bool
  var ignoresDiacritics: Bool

  /// LIKE ignores case, unless a COLLATE around it says otherwise.
  init(_ collation: Collation?) {
    ignoresCase = collation?.ignoresCase ?? true
    ignoresDiacritics = collation?.ignoresDiacritics ?? false
  }

  init(ignoresCase: Bool, ignoresDiacritics: Bool) {
    self.ignoresCase = ignoresCase
    self.ignoresDiacritics = ignoresDiacritics
  }

  /// A code point as it is compared, by simple folding.
  @inline(__always)
  func folded(_ scalar: UInt32) -> UInt32 {
    if !ignoresCase { return scalar }
    if scalar < 0x80 { return scalar &- 0x41 < 26 ? scalar | 0x20 : scalar }
    return UInt32(bitPattern: icu_fold(Int32(bitPattern: scalar)))
  }
}

/// A pattern of LIKE: `%` stands for any run of characters, `_` for one, and `\` takes its meaning from the next.
final class LikePattern: Pattern, @unchecked Sendable {
  /// Stand for `%` and `_` among folded code points.
  private static let anyRun: UInt32 = 0x8000_0000
  private static let anyOne: UInt32 = 0x8000_0001

  private let options: LikeOptions
  private let tokens: [UInt32]
  /// The tokens as bytes for text of ASCII only, 0xFF for `%` and 0xFE for `_`; nil when the pattern has others.
  private let ascii: [UInt8]?
  /// The folded bytes between the two `%` of `%text%`, when there is nothing else.
  private let infix: [UInt8]?

  /// What text has to begin with, as it was written, before the first `%` or `_`; case and accents may differ.
  let prefix: String
  /// Whether nothing but the prefix and one `%` at the end is in the pattern.
  let isPrefixOnly: Bool
  /// Whether there is neither `%` nor `_`.
  let isLiteral: Bool

  /// Reads a pattern.
  init(_ source: TextSlice, _ options: LikeOptions) {
    self.options = options
    var tokens: [UInt32] = []
    var prefix = String.UnicodeScalarView()
    var wildcards = 0
    var isEscaped = false
    for scalar in source.string.unicodeScalars {
      if !isEscaped {
        if scalar == "\\" {
          isEscaped = true
          continue
        }
        if scalar == "%" || scalar == "_" {
          wildcards += 1
          let token = scalar == "%" ? LikePattern.anyRun : LikePattern.anyOne
          if token == LikePattern.anyOne || tokens.last != token { tokens.append(token) }
          continue
        }
      }
      isEscaped = false
      if wildcards == 0 { prefix.append(scalar) }
      tokens.append(scalar.value)
    }
    if isEscaped { tokens.append(0x5C) }
    isLiteral = wildcards == 0
    isPrefixOnly = wildcards > 0 && tokens.last == LikePattern.anyRun && tokens.count == prefix.count + 1
    self.prefix = String(prefix)
    tokens = LikePattern.folded(tokens, options)
    self.tokens = tokens
    let isASCII = tokens.allSatisfy { $0 < 0x80 || $0 >= LikePattern.anyRun }
    ascii =
      isASCII
      ? tokens.map { $0 == LikePattern.anyRun ? 0xFF : $0 == LikePattern.anyOne ? 0xFE : UInt8($0) } : nil
    if let ascii, ascii.count > 2, ascii[0] == 0xFF, ascii[ascii.count - 1] == 0xFF,
      ascii[1..<(ascii.count - 1)].allSatisfy({ $0 < 0x80 })
    {
      infix = Array(ascii[1..<(ascii.count - 1)])
    } else {
      infix = nil
    }
    super.init(source: source)
  }

  /// Code points as they are compared: decomposed and without marks if accents are ignored.
  private static func folded(_ scalars: [UInt32], _ options: LikeOptions) -> [UInt32] {
    guard options.ignoresDiacritics else { return scalars.map { $0 >= anyRun ? $0 : options.folded($0) } }
    return scalars.flatMap { scalar -> [UInt32] in
      if scalar < 0x80 || scalar >= anyRun { return [scalar >= anyRun ? scalar : options.folded(scalar)] }
      var status: [UInt16] = Array(repeating: 0, count: 32)
      let units = Array(String(Unicode.Scalar(scalar) ?? "\u{FFFD}").utf16)
      let count = icu_nfd(units, Int32(units.count), &status, 32)
      let text = String(decoding: status.prefix(Int(max(0, min(count, 32)))), as: UTF16.self)
      return text.unicodeScalars.filter { icu_is_mark(Int32(bitPattern: $0.value)) == 0 }
        .map { options.folded($0.value) }
    }
  }

  /// Code points of text as they are compared.
  static func folded(_ text: TextSlice, _ options: LikeOptions) -> [UInt32] {
    folded(text.string.unicodeScalars.map(\.value), options)
  }

  /// Whether the whole text is of the pattern.
  func matches(_ text: TextSlice) -> Bool {
    if text.isASCII {
      // Folded code points of ASCII are ASCII.
      guard let ascii else { return false }
      if let infix { return infix.withUnsafeBufferPointer { find($0, in: text) } }
      return ascii.withUnsafeBufferPointer { match($0, text) }
    }
    let scalars = LikePattern.folded(text, options)
    return scalars.withUnsafeBufferPointer { text in
      tokens.withUnsafeBufferPointer { pattern in
        LikePattern.match(
          pattern.count, text.count,
          isRun: { pattern[$0] == LikePattern.anyRun },
          isSame: { pattern[$0] == LikePattern.anyOne || pattern[$0] == text[$1] })
      }
    }
  }

  private func match(_ pattern: UnsafeBufferPointer<UInt8>, _ text: TextSlice) -> Bool {
    let folds = options.ignoresCase
    return LikePattern.match(
      pattern.count, text.count, isRun: { pattern[$0] == 0xFF },
      isSame: {
        let byte = text.start[$1]
        return pattern[$0] == 0xFE || pattern[$0] == (folds ? asciiFolded(byte) : byte)
      })
  }

  /// Whether the bytes occur in a text of ASCII.
  private func find(_ bytes: UnsafeBufferPointer<UInt8>, in text: TextSlice) -> Bool {
    guard text.count >= bytes.count else { return false }
    let folds = options.ignoresCase
    let first = bytes[0]
    var position = text.start
    let last = text.start + (text.count - bytes.count)
    while position <= last {
      if (folds ? asciiFolded(position[0]) : position[0]) == first {
        var index = 1
        while index < bytes.count, (folds ? asciiFolded(position[index]) : position[index]) == bytes[index] {
          index += 1
        }
        if index == bytes.count { return true }
      }
      position += 1
    }
    return false
  }

  /// After a `%` the shortest run is tried first, and a longer one whenever the rest doesn't fit; only the last `%`
  /// has to be returned to.
  @inline(__always)
  private static func match(
    _ patternCount: Int, _ textCount: Int, isRun: (Int) -> Bool, isSame: (Int, Int) -> Bool
  ) -> Bool {
    var (pattern, text) = (0, 0)
    var (run, resumed) = (-1, 0)
    while text < textCount {
      if pattern < patternCount, isRun(pattern) {
        run = pattern
        resumed = text
        pattern += 1
      } else if pattern < patternCount, isSame(pattern, text) {
        pattern += 1
        text += 1
      } else if run >= 0 {
        resumed += 1
        text = resumed
        pattern = run + 1
      } else {
        return false
      }
    }
    while pattern < patternCount, isRun(pattern) { pattern += 1 }
    return pattern == patternCount
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

/// `x LIKE pattern`. What isn't a string is NULL.
final class LikeNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let operand: CompiledExpression
  private let pattern: CompiledExpression
  /// The pattern when it is constant.
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
      return Truth(fixed.matches(text) != negated)
    }
    let other = pattern.evaluate(context)
    if value.isMissing || other.isMissing { return .missing }
    guard case .string(let text) = value, case .string(let source) = other else { return .null }
    let pattern = context.pattern(number, for: source) { LikePattern($0, options) }
    guard let pattern = pattern as? LikePattern else { return .null }
    return Truth(pattern.matches(text) != negated)
  }
}
