import Fleece

/// The total order of values. Types are ordered as in N1QL, numbers by value, arrays and objects element by
/// element, and strings by their bytes or by a collator. DISTINCT, GROUP BY and joins use its equality, in
/// which null equals null and missing equals missing.
///
/// The keys of `OrderedKeyEncoder` have the same order (docs/ordered-keys.md).
struct ValueOrder {
  /// The names of members in objects of bodies.
  unowned(unsafe) let sharedKeys: SharedKeys
  /// Nil compares strings by their bytes. It also applies to values inside arrays and objects, but never to
  /// names. The context of a run has it, and a comparison doesn't retain it.
  unowned(unsafe) let collator: Collator?

  init(_ sharedKeys: SharedKeys, _ collator: Collator? = nil) {
    self.sharedKeys = sharedKeys
    self.collator = collator
  }

  /// The order of two values: below, at or above 0.
  @inline(__always)
  func compare(_ left: QueryValue, _ right: QueryValue) -> Int {
    switch (left, right) {
    case (.string(let a), .string(let b)):
      if let collator { return collator.compare(a, b) }
      return a.compare(b)
    case (.int(let a), .int(let b)): return a < b ? -1 : a == b ? 0 : 1
    case (.double(let a), .double(let b)): return a < b ? -1 : a == b ? 0 : 1
    default: return compareMixed(left, right, depth: 0)
    }
  }

  /// Whether two values are equal.
  @inline(__always)
  func areEqual(_ left: QueryValue, _ right: QueryValue) -> Bool {
    if case (.string(let a), .string(let b)) = (left, right), collator == nil { return a.equals(b) }
    return compare(left, right) == 0
  }

  /// A number that is never less than that of a value before, so that most comparisons in a sort are ones of numbers. Values with the same
  /// number have to be compared.
  func prefix(of value: QueryValue) -> UInt64 {
    // Three bits tell the type.
    let rest: UInt64
    switch value {
    case .missing, .null, .array, .computedArray, .object, .computedObject: rest = 0
    case .bool(let value): rest = value ? 1 : 0
    case .int, .uint, .double:
      // Rounding doesn't change the order. There is no negative zero after the addition.
      let bits = ((value.number ?? 0) + 0).bitPattern
      rest = (bits >> 63 == 0 ? bits | 1 << 63 : ~bits) >> 3
    case .string(let text): rest = collator == nil ? Self.prefix(of: text) >> 3 : 0
    case .data(let bytes): rest = Self.prefix(of: bytes) >> 3
    }
    return UInt64(value.type.rawValue) << 61 | rest
  }

  /// The first eight bytes as a number. Zeros stand for those that there aren't.
  private static func prefix(of text: TextSlice) -> UInt64 {
    if text.count >= 8 {
      return UInt64(bigEndian: UnsafeRawPointer(text.start).loadUnaligned(as: UInt64.self))
    }
    var prefix: UInt64 = 0
    for index in 0..<text.count { prefix |= UInt64(text.start[index]) << UInt64(56 - index * 8) }
    return prefix
  }

  @inline(never)
  private func compareMixed(_ left: QueryValue, _ right: QueryValue, depth: Int) -> Int {
    let (leftType, rightType) = (left.type, right.type)
    guard leftType == rightType else { return leftType < rightType ? -1 : 1 }
    switch (left, right) {
    case (.bool(let a), .bool(let b)): return a == b ? 0 : b ? -1 : 1
    case (.data(let a), .data(let b)): return a.compare(b)
    case (.string(let a), .string(let b)): return collator?.compare(a, b) ?? a.compare(b)
    default: break
    }
    switch leftType {
    case .number: return compareNumbers(left, right)
    case .array: return compareArrays(left, right, depth)
    case .object: return compareObjects(left, right, depth)
    default: return 0
    }
  }

  private func compareArrays(_ left: QueryValue, _ right: QueryValue, _ depth: Int) -> Int {
    guard depth < FleeceLimits.depth else { return 0 }
    let (leftCount, rightCount) = (left.count, right.count)
    for index in 0..<min(leftCount, rightCount) {
      let order = compareMixed(left.itemOrNull(index), right.itemOrNull(index), depth: depth + 1)
      if order != 0 { return order }
    }
    return leftCount - rightCount
  }

  private func compareObjects(_ left: QueryValue, _ right: QueryValue, _ depth: Int) -> Int {
    guard depth < FleeceLimits.depth else { return 0 }
    let a = left.sortedMembers(sharedKeys)
    let b = right.sortedMembers(sharedKeys)
    for index in 0..<min(a.count, b.count) {
      let names = a[index].name.compare(b[index].name)
      if names != 0 { return names }
      let order = compareMixed(a[index].value, b[index].value, depth: depth + 1)
      if order != 0 { return order }
    }
    return a.count - b.count
  }
}

/// The order of two numbers. It is exact, also between integers and doubles.
func compareNumbers(_ left: QueryValue, _ right: QueryValue) -> Int {
  func order<Number: Comparable>(_ a: Number, _ b: Number) -> Int { a < b ? -1 : a == b ? 0 : 1 }
  switch (left, right) {
  case (.int(let a), .int(let b)): return order(a, b)
  case (.uint(let a), .uint(let b)): return order(a, b)
  case (.int, .uint): return -1
  case (.uint, .int): return 1
  case (.double(let a), .double(let b)): return order(a, b)
  case (.int(let a), .double(let b)): return compareExactly(a, b)
  case (.double(let a), .int(let b)): return -compareExactly(b, a)
  case (.uint(let a), .double(let b)): return compareExactly(a, b)
  case (.double(let a), .uint(let b)): return -compareExactly(b, a)
  default: return 0
  }
}

/// The order of an integer and a double, without rounding either.
private func compareExactly<Integer: FixedWidthInteger>(_ integer: Integer, _ double: Double) -> Int {
  let whole = double.rounded(.towardZero)
  guard let other = Integer(exactly: whole) else { return double > 0 ? -1 : 1 }
  if integer != other { return integer < other ? -1 : 1 }
  return double > whole ? -1 : double < whole ? 1 : 0
}

extension QueryValue {
  /// The item at an index. Null when it is damaged.
  func itemOrNull(_ index: Int) -> QueryValue {
    let value = item(index)
    return value.isMissing ? .null : value
  }

  /// The members of an object, in the order of their names' bytes. Of two members with the same name, the
  /// first one is kept.
  func sortedMembers(_ sharedKeys: SharedKeys) -> [ComputedObject.Member] {
    if case .computedObject(let object) = self {
      return Array(UnsafeBufferPointer(start: object.members, count: object.count))
    }
    var members: [ComputedObject.Member] = []
    members.reserveCapacity(count)
    forEachMember(sharedKeys) { name, value in
      if !value.isMissing { members.append(ComputedObject.Member(name: name, value: value)) }
    }
    // Swift's sort is stable, so the first member of a name stays first.
    members.sort { $0.name.compare($1.name) < 0 }
    var kept = 0
    for index in members.indices where index == 0 || !members[index].name.equals(members[kept - 1].name) {
      members[kept] = members[index]
      kept += 1
    }
    members.removeLast(members.count - kept)
    return members
  }
}
