import Storage

// Converts conditions to key ranges. Index keys are described in docs/ordered-keys.md. Document IDs are plain
// UTF-8.

/// The keys from `lower` (included) to `upper` (excluded). Without `upper` the range has no end.
struct ByteRange {
  var lower: [UInt8]
  var upper: [UInt8]?

  var isEmpty: Bool { upper.map { !lower.lexicographicallyPrecedes($0) } ?? false }

  var keyRange: KeyRange {
    KeyRange(
      lower: lower.isEmpty ? .unbounded : .inclusive(lower), upper: upper.map { .exclusive($0) } ?? .unbounded
    )
  }

  /// The least key above all keys with a prefix. Nil when there is none.
  static func successor(_ prefix: [UInt8]) -> [UInt8]? {
    if case .exclusive(let bound) = KeyRange.upperBound(ofPrefix: prefix) { return bound }
    return nil
  }

  /// Sorts the ranges, and joins those that overlap or touch.
  static func merged(_ ranges: [ByteRange]) -> [ByteRange] {
    guard ranges.count > 1 else { return ranges.filter { !$0.isEmpty } }
    var merged: [ByteRange] = []
    for range in ranges.filter({ !$0.isEmpty })
      .sorted(by: { $0.lower.lexicographicallyPrecedes($1.lower) })
    {
      guard let last = merged.last else {
        merged.append(range)
        continue
      }
      guard let end = last.upper else { break }
      if end.lexicographicallyPrecedes(range.lower) {
        merged.append(range)
      } else if let upper = range.upper {
        if end.lexicographicallyPrecedes(upper) { merged[merged.count - 1].upper = upper }
      } else {
        merged[merged.count - 1].upper = nil
      }
    }
    return merged
  }
}

extension ByteRange {
  /// All keys with a prefix.
  init(prefix: [UInt8]) { self.init(lower: prefix, upper: ByteRange.successor(prefix)) }
}

/// Lists of conditions on the keys of an index, and the ranges in which they hold. When all compared values
/// are constants, only the first run computes the ranges.
final class IndexRanges: @unchecked Sendable {
  struct Made: Sendable {
    let ranges: [ByteRange]
    /// The result of `KeyRanges.sharedPrefix`.
    let prefix: (bytes: [UInt8], count: Int)
    /// Whether most of the ranges are probably empty, because they are all spellings of one LIKE prefix.
    let areSparse: Bool
  }

  let lists: [[CompiledCondition]]
  private let areConstant: Bool
  private let known = Lock<Made?>(nil)

  init(_ lists: [[CompiledCondition]]) {
    self.lists = lists
    areConstant = lists.allSatisfy { $0.allSatisfy(\.isConstant) }
  }

  /// The ranges for the current values of parameters and rows. Throws as `KeyRanges.ofIndex` does.
  func made(_ context: EvaluationContext) throws -> Made {
    if areConstant, let known = known.withLock({ $0 }) { return known }
    let ranges = KeyRanges(context: context)
    let made = Made(
      ranges: try ranges.ofIndex(lists), prefix: ranges.sharedPrefix(lists),
      areSparse: lists.contains { $0.contains { if case .like = $0 { true } else { false } } })
    try context.check()
    if areConstant { known.withLock { $0 = made } }
    return made
  }
}

/// Converts conditions to ranges, with the current values of parameters and rows.
struct KeyRanges {
  let context: EvaluationContext

  // MARK: Index keys

  /// The ranges of index keys in which at least one list of conditions holds.
  ///
  /// - Throws: an error of evaluating the compared values, `cancelled` and `timedOut`.
  func ofIndex(_ lists: [[CompiledCondition]]) throws -> [ByteRange] {
    var ranges: [ByteRange] = []
    for list in lists { append(list[...], after: [], to: &ranges) }
    try context.check()
    return ByteRange.merged(ranges)
  }

  /// The bytes that all keys in the ranges of one list begin with, and the number of values they encode.
  /// Empty when there are several lists.
  func sharedPrefix(_ lists: [[CompiledCondition]]) -> (bytes: [UInt8], count: Int) {
    guard lists.count == 1 else { return ([], 0) }
    var key = OrderedKeyEncoder(capacity: 64)
    var count = 0
    for condition in lists[0] {
      guard case .equal(let expression) = condition else { break }
      let value = expression.evaluate(context)
      if value.isUnknown { break }
      key.append(value, context.order(nil))
      count += 1
    }
    return (key.bytes, count)
  }

  private func append(
    _ list: ArraySlice<CompiledCondition>, after prefix: [UInt8], to ranges: inout [ByteRange]
  ) {
    guard let condition = list.first else {
      ranges.append(ByteRange(prefix: prefix))
      return
    }
    let rest = list.dropFirst()
    switch condition {
    case .equal(let expression):
      let value = expression.evaluate(context)
      if !value.isUnknown { append(rest, after: prefix + encoded(value), to: &ranges) }
    case .anyOf(let expression):
      let items = expression.evaluate(context)
      guard items.type == .array else { return }
      items.forEachItem { item in
        if !item.isUnknown { append(rest, after: prefix + encoded(item), to: &ranges) }
        return context.goesOn
      }
    case .isNull: append(rest, after: prefix + [KeyCode.null], to: &ranges)
    case .isMissing: append(rest, after: prefix + [KeyCode.missing], to: &ranges)
    case .isValued:
      ranges.append(ByteRange(lower: prefix + KeyRanges.afterNull, upper: ByteRange.successor(prefix)))
    case .isThere:
      ranges.append(ByteRange(lower: prefix + [KeyCode.null], upper: ByteRange.successor(prefix)))
    case .range(let lower, let upper):
      // Comparisons with null are never true, so ranges begin after null.
      var range = ByteRange(lower: prefix + KeyRanges.afterNull, upper: ByteRange.successor(prefix))
      if let lower {
        let value = lower.value.evaluate(context)
        if value.isUnknown { return }
        let key = prefix + encoded(value)
        guard let start = lower.isInclusive ? key : ByteRange.successor(key) else { return }
        range.lower = start
      }
      if let upper {
        let value = upper.value.evaluate(context)
        if value.isUnknown { return }
        let key = prefix + encoded(value)
        range.upper = upper.isInclusive ? ByteRange.successor(key) : key
      }
      ranges.append(range)
    case .like(let expression):
      guard case .string(let pattern) = expression.evaluate(context) else { return }
      let text = prefix + [KeyCode.string]
      for start in LikePrefix.starts(of: pattern) { ranges.append(ByteRange(prefix: text + start)) }
    }
  }

  private static let afterNull = [KeyCode.null + 1]

  private func encoded(_ value: QueryValue) -> [UInt8] {
    var key = OrderedKeyEncoder(capacity: 64)
    key.append(value, context.order(nil))
    return key.bytes
  }

  // MARK: Document IDs

  /// The ranges of document IDs in which at least one of the conditions holds. Throws as `ofIndex` does.
  func ofIdentifiers(_ lists: [[CompiledCondition]]) throws -> [ByteRange] {
    var ranges: [ByteRange] = []
    for condition in lists.compactMap(\.first) {
      switch condition {
      case .equal(let expression): exact(expression.evaluate(context), &ranges)
      case .anyOf(let expression):
        let items = expression.evaluate(context)
        guard items.type == .array else { continue }
        items.forEachItem { item in
          exact(item, &ranges)
          return context.goesOn
        }
      case .isNull, .isMissing: break
      case .isValued, .isThere: ranges.append(ByteRange(lower: [], upper: nil))
      case .range(let lower, let upper):
        var range = ByteRange(lower: [], upper: nil)
        if let lower {
          let value = lower.value.evaluate(context)
          guard !value.isUnknown, value.type <= .string else { continue }
          if case .string(let text) = value {
            // The next key after a key is the same key with a zero byte appended.
            range.lower = Array(text.utf8) + (lower.isInclusive ? [] : [0])
          }
        }
        if let upper {
          let value = upper.value.evaluate(context)
          guard !value.isUnknown, value.type >= .string else { continue }
          if case .string(let text) = value {
            range.upper = Array(text.utf8) + (upper.isInclusive ? [0] : [])
          }
        }
        ranges.append(range)
      case .like(let expression):
        guard case .string(let pattern) = expression.evaluate(context) else { continue }
        for start in LikePrefix.starts(of: pattern) { ranges.append(ByteRange(prefix: start)) }
      }
    }
    try context.check()
    return ByteRange.merged(ranges)
  }

  private func exact(_ value: QueryValue, _ ranges: inout [ByteRange]) {
    guard case .string(let text) = value, text.count > 0 else { return }
    let key = Array(text.utf8)
    ranges.append(ByteRange(lower: key, upper: key + [0]))
  }
}

/// The prefixes of the texts that a LIKE pattern matches.
enum LikePrefix {
  private static let mostStarts = 16

  /// The possible prefixes of all matching texts, in any case of letters. It is one empty prefix when the
  /// pattern doesn't begin with text.
  ///
  /// A prefix ends before the number of spellings exceeds `mostStarts`, and before a character that isn't
  /// ASCII.
  static func starts(of pattern: TextSlice) -> [[UInt8]] {
    var starts: [[UInt8]] = [[]]
    var index = 0
    while index < pattern.count {
      var byte = pattern.start[index]
      if byte == UInt8(ascii: "%") || byte == UInt8(ascii: "_") { break }
      if byte == UInt8(ascii: "\\") {
        index += 1
        guard index < pattern.count else { break }
        byte = pattern.start[index]
      }
      guard byte >= 0x02, byte < 0x80 else { break }
      let spellings = LikePrefix.spellings(of: byte)
      guard starts.count * spellings.count <= mostStarts else { break }
      starts = starts.flatMap { start in spellings.map { start + $0 } }
      index += 1
    }
    return starts
  }

  /// The spellings of an ASCII byte when case is ignored, as UTF-8.
  private static func spellings(of byte: UInt8) -> [[UInt8]] {
    let lower = byte | 0x20
    guard lower >= UInt8(ascii: "a"), lower <= UInt8(ascii: "z") else { return [[byte]] }
    var spellings = [[lower & 0xDF], [lower]]
    // Two characters outside ASCII fold to ASCII letters: the Kelvin sign and the long s.
    if lower == UInt8(ascii: "k") { spellings.append([0xE2, 0x84, 0xAA]) }
    if lower == UInt8(ascii: "s") { spellings.append([0xC5, 0xBF]) }
    return spellings
  }
}

/// Type codes at the start of values in keys (docs/ordered-keys.md).
private enum KeyCode {
  static let missing: UInt8 = 0x08
  static let null: UInt8 = 0x10
  static let string: UInt8 = 0x50
}
