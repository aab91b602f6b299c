/// The result of a condition. AND gives the least of its operands and OR the greatest, in the order FALSE,
/// MISSING, NULL, TRUE.
enum Truth: UInt8, BitwiseCopyable {
  case `false`, missing, null, `true`

  @inline(__always)
  init(_ value: Bool) { self = value ? .true : .false }

  @inline(__always)
  func and(_ other: Truth) -> Truth { rawValue < other.rawValue ? self : other }

  @inline(__always)
  func or(_ other: Truth) -> Truth { rawValue > other.rawValue ? self : other }

  /// NOT. Null stays null, and missing stays missing.
  @inline(__always)
  var negated: Truth {
    switch self {
    case .true: .false
    case .false: .true
    default: self
    }
  }

  /// The value: a boolean, null or missing.
  @inline(__always)
  var value: QueryValue {
    switch self {
    case .true: .bool(true)
    case .false: .bool(false)
    case .null: .null
    case .missing: .missing
    }
  }
}

extension QueryValue {
  /// The value as a condition. Numbers are true unless they are 0. Strings are true when they begin with a
  /// number that isn't 0. Arrays, objects and binary data are false.
  @inline(__always)
  var truth: Truth {
    switch self {
    case .bool(let value): Truth(value)
    case .null: .null
    case .missing: .missing
    default: Truth(isTrueWithoutBeingBoolean)
    }
  }

  @inline(never)
  private var isTrueWithoutBeingBoolean: Bool {
    switch self {
    case .int(let value): return value != 0
    case .uint: return true
    case .double(let value): return value != 0
    case .string(let text):
      var index = 0
      while index < text.count, [0x20, 0x09, 0x0A, 0x0B, 0x0C, 0x0D].contains(text.start[index]) {
        index += 1
      }
      if index < text.count, text.start[index] == 0x2B || text.start[index] == 0x2D { index += 1 }
      var hasPoint = false
      while index < text.count {
        let byte = text.start[index]
        if byte >= 0x31 && byte <= 0x39 { return true }
        if byte == 0x2E && !hasPoint { hasPoint = true } else if byte != 0x30 { return false }
        index += 1
      }
      return false
    default: return false
    }
  }
}
