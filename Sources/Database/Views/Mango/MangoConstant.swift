import Bytes
import Fleece

/// The kinds of values, in the order of CouchDB's views.
enum MangoRank: Int, Sendable {
  case null, isFalse, isTrue, number, string, array, object

  /// What `$type` calls it.
  var typeName: String {
    switch self {
    case .null: "null"
    case .isFalse, .isTrue: "boolean"
    case .number: "number"
    case .string: "string"
    case .array: "array"
    case .object: "object"
    }
  }
}

/// A value of a selector, ready to be compared with values in place.
final class MangoConstant {
  private let operand: MangoOperand
  private let rank: MangoRank
  private let utf8: [UInt8]
  private let int: Int64?
  /// Whether text is compared by its bytes, and comes behind all other values.
  private let inBytes: Bool

  init(_ operand: MangoOperand, inBytes: Bool) {
    self.operand = operand
    self.inBytes = inBytes
    rank = MangoCollation.rank(operand.value)
    utf8 = operand.value.string.map { Array($0.utf8) } ?? []
    int = if case .int(let int) = operand.value { int } else { nil }
  }

  /// How a value comes: below 0 before this one, 0 as equal, above 0 behind it.
  func order(of value: MangoValue, _ run: MangoRun) -> Int {
    if inBytes {
      guard rank == .string, let text = value.utf8 else { return 1 }
      return utf8.withUnsafeBytes { compareBytes(text, $0) }
    }
    let rank = value.rank
    guard rank == self.rank else { return rank.rawValue - self.rank.rawValue }
    switch rank {
    case .null, .isFalse, .isTrue: return 0
    case .number:
      guard case .stored(let number) = value else { return 0 }
      if let int, let other = number.int { return other < int ? -1 : other > int ? 1 : 0 }
    case .string:
      if let text = value.utf8, let order = order(of: text, run) { return order }
    case .array, .object: break
    }
    return run.collation.compare(value.json(run), operand)
  }

  /// Nil if ICU has to compare it.
  @inline(__always)
  private func order(of text: UnsafeRawBufferPointer, _ run: MangoRun) -> Int? {
    utf8.withUnsafeBytes { own in
      if text.count == own.count, compareBytes(text, own) == 0 { return 0 }
      return run.text.compare(text, own)
    }
  }
}
