// Functions of the 64 bits of signed integers. Bits are numbered from 1, the least significant one, to 64. A
// double without a fraction is an integer too. Other numbers and other types give null.

enum BitFunctions {
  static let table: [QueryFunction] = [
    combining("BITAND") { $0 & $1 }, combining("BITOR") { $0 | $1 }, combining("BITXOR") { $0 ^ $1 },
    QueryFunction("BITNOT", 1...1) { arguments, _, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      return integer(arguments[0]).map { .int(~$0) } ?? .null
    },
    QueryFunction("BITSHIFT", 2...3, shift),
    changing("BITSET") { $0 | $1 }, changing("BITCLEAR") { $0 & ~$1 },
    QueryFunction("BITTEST", 2...3, test),
  ]

  private static func integer(_ value: QueryValue) -> Int64? {
    StringFunctions.wholeNumber(value).map { Int64($0) }
  }

  private static func combining(
    _ name: String, _ combine: @escaping @Sendable (Int64, Int64) -> Int64
  ) -> QueryFunction {
    QueryFunction(name, 2...127) { arguments, _, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard var result = integer(arguments[0]) else { return .null }
      for argument in arguments.dropFirst() {
        guard let next = integer(argument) else { return .null }
        result = combine(result, next)
      }
      return .int(result)
    }
  }

  private static func changing(
    _ name: String, _ change: @escaping @Sendable (UInt64, UInt64) -> UInt64
  ) -> QueryFunction {
    QueryFunction(name, 2...2) { arguments, _, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard let value = integer(arguments[0]), let mask = mask(arguments[1]) else { return .null }
      return .int(Int64(bitPattern: change(UInt64(bitPattern: value), mask)))
    }
  }

  /// The bits at a position, or at each position of an array. Nil when one isn't a position.
  private static func mask(_ positions: QueryValue) -> UInt64? {
    guard positions.type == .array else { return bit(positions) }
    var mask: UInt64? = 0
    positions.forEachItem { item in
      if let bit = bit(item), let known = mask { mask = known | bit } else { mask = nil }
      return mask != nil
    }
    return mask
  }

  private static func bit(_ position: QueryValue) -> UInt64? {
    guard let position = integer(position), position >= 1, position <= 64 else { return nil }
    return 1 << UInt64(position - 1)
  }

  /// `BITSHIFT(value, amount[, rotates])`: to the left, or to the right by a negative amount. The sign is a bit
  /// like the others.
  @Sendable private static func shift(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard let value = integer(arguments[0]), let amount = integer(arguments[1]) else { return .null }
    var rotates = false
    if arguments.count > 2 {
      guard case .bool(let flag) = arguments[2] else { return .null }
      rotates = flag
    }
    let bits = UInt64(bitPattern: value)
    guard rotates else {
      return .int(Int64(bitPattern: amount < 0 ? bits >> amount.magnitude : bits << amount))
    }
    let left = UInt64(((amount % 64) + 64) % 64)
    return .int(Int64(bitPattern: left == 0 ? bits : bits << left | bits >> (64 - left)))
  }

  /// `BITTEST(value, positions[, all])`: whether one of the bits is set, or all of them.
  @Sendable private static func test(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard let value = integer(arguments[0]), let mask = mask(arguments[1]) else { return .null }
    var needsAll = false
    if arguments.count > 2 {
      guard case .bool(let flag) = arguments[2] else { return .null }
      needsAll = flag
    }
    let set = UInt64(bitPattern: value) & mask
    return .bool(needsAll ? set == mask : set != 0)
  }
}
