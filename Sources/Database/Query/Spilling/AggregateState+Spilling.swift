import Bytes
import Fleece

//   state  := flags count:varint value integers:16 expansion sums?
//   flags  := 1 if a number is above 2^63 - 1 | 2 if all numbers are integers | 4 if sums follow
//   value  := of MIN and MAX (RowCoding)
//   sums   := expansion expansion sum sum           of numbers and of squares (ExactMoments)
//   expansion := double:8 double:8 double:8         (DoubleExpansion)
//   sum    := isNegative:1 place:varint count:varint digit:4*      of base 2^32 (Magnitude)

extension Aggregator {
  /// Whether the aggregate keeps values of many rows.
  var keepsItems: Bool {
    switch kind {
    case .minimum, .maximum: false
    case .median, .arrayAggregate: true
    default: isDistinct
    }
  }

  /// The order in which its values are needed. Nil for that in which they came.
  func itemOrder(_ context: EvaluationContext) -> ValueOrder? {
    keepsItems && kind != .arrayAggregate ? context.order(collation) : nil
  }
}

extension AggregateState {
  /// The values of many rows that the state keeps: the different ones, or all.
  var keptItems: [QueryValue] {
    if let values { return (0..<values.count).map { values[$0] } }
    guard let items else { return [] }
    return Array(UnsafeBufferPointer(start: items, count: count))
  }

  /// Writes the state without the values that it keeps.
  func write(_ aggregator: Aggregator, to bytes: inout ByteBuffer, _ sharedKeys: SharedKeys) {
    // What a sum of different numbers, or a variance of them, is made of comes again with them.
    let isWhole = !aggregator.keepsItems
    bytes.append((hasUnsigned ? 1 : 0) | (isInteger ? 2 : 0) | (isWhole && moments != nil ? 4 : 0))
    bytes.append(varint: UInt64(isWhole ? count : 0))
    RowCoding.append(value, to: &bytes, sharedKeys)
    let sum = isWhole ? integers : 0
    bytes.append(littleEndian: UInt64(truncatingIfNeeded: sum))
    bytes.append(littleEndian: UInt64(truncatingIfNeeded: sum >> 64))
    (isWhole ? doubles : DoubleExpansion()).write(to: &bytes)
    if isWhole { moments?.write(to: &bytes) }
  }

  /// Adds a state that came later, and was written. Returns whether it has a new least or greatest value.
  ///
  /// - Throws: `StorageError` (`damaged`).
  mutating func merge(
    _ aggregator: Aggregator, _ bytes: UnsafeRawBufferPointer, _ context: EvaluationContext,
    _ arena: EvaluationArena
  ) throws -> Bool {
    var reader = StateReader(bytes, arena, context)
    let flags = try reader.byte()
    let other = try reader.count()
    let value = try reader.value()
    let integers = try reader.integer()
    let doubles = try reader.expansion()
    hasUnsigned = hasUnsigned || flags & 1 != 0
    isInteger = isInteger && flags & 2 != 0
    if aggregator.keepsItems { return false }
    switch aggregator.kind {
    case .minimum, .maximum:
      guard other > 0 else { return false }
      let order = count == 0 ? -1 : context.order(aggregator.collation).compare(value, self.value)
      guard count == 0 || (aggregator.kind == .minimum ? order < 0 : order > 0) else { return false }
      self.value = arena.copy(value, context.sharedKeys)
      count = 1
      return true
    default:
      count += other
      self.integers &+= integers
      add(doubles, context)
      guard flags & 4 != 0 else { return false }
      let sums = moments ?? ExactMoments(context.budget)
      if moments == nil {
        sums.add(self.doubles)
        self.doubles = DoubleExpansion()
      }
      try sums.merge(&reader)
      moments = sums
      return false
    }
  }

  /// Adds the doubles of another sum.
  private mutating func add(_ other: DoubleExpansion, _ context: EvaluationContext) {
    if let moments { return moments.add(other) }
    var sum = doubles
    if other.parts.allSatisfy({ sum.add($0) }) {
      doubles = sum
      return
    }
    let moments = ExactMoments(context.budget)
    moments.add(doubles)
    moments.add(other)
    doubles = DoubleExpansion()
    self.moments = moments
  }

  /// Adds a value that is different from all before.
  mutating func add(new value: QueryValue, _ aggregator: Aggregator, _ context: EvaluationContext) {
    switch aggregator.kind {
    case .count, .countNumbers: countRow()
    case .sum, .average: add(distinctNumber: value, isNew: true, context)
    default: add(toVariance: value, context)
    }
  }
}

/// Reads what `AggregateState.write` wrote.
struct StateReader {
  private let bytes: UnsafeRawBufferPointer
  private var offset = 0
  private let arena: EvaluationArena
  private let context: EvaluationContext

  init(_ bytes: UnsafeRawBufferPointer, _ arena: EvaluationArena, _ context: EvaluationContext) {
    self.bytes = bytes
    self.arena = arena
    self.context = context
  }

  private func found<Value>(_ value: Value?) throws -> Value {
    guard let value else { throw RowKeeping(context).files.damaged }
    return value
  }

  mutating func byte() throws -> UInt8 {
    guard offset < bytes.count else { return try found(nil) }
    defer { offset += 1 }
    return bytes[offset]
  }

  mutating func count() throws -> Int { try found(bytes.varint(at: &offset).flatMap { Int(exactly: $0) }) }

  mutating func value() throws -> QueryValue { try found(RowCoding.value(bytes, at: &offset, arena)) }

  mutating func word() throws -> UInt64 { try found(RowCoding.word(bytes, at: &offset)) }

  mutating func integer() throws -> Int128 {
    let low = try word()
    return Int128(Int64(bitPattern: try word())) << 64 | Int128(low)
  }

  mutating func expansion() throws -> DoubleExpansion {
    DoubleExpansion(
      parts: [
        Double(bitPattern: try word()), Double(bitPattern: try word()), Double(bitPattern: try word()),
      ])
  }

  /// Adds the digits of an exact sum to another one.
  mutating func addSum(to sum: inout ExactSum) throws {
    let isNegative = try byte() != 0
    let place = try count()
    for index in 0..<(try count()) {
      guard bytes.count - offset >= 4 else { return try found(nil) }
      let digit = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
      offset += 4
      sum.add(digit: digit, at: place + index, isNegative)
    }
  }
}

extension DoubleExpansion {
  fileprivate func write(to bytes: inout ByteBuffer) {
    for part in parts { bytes.append(littleEndian: part.bitPattern) }
  }
}

extension ExactMoments {
  fileprivate func write(to bytes: inout ByteBuffer) {
    smallSum.write(to: &bytes)
    smallSquares.write(to: &bytes)
    Self.write(sum, to: &bytes)
    Self.write(squares, to: &bytes)
  }

  private static func write(_ sum: ExactSum, to bytes: inout ByteBuffer) {
    let (magnitude, isNegative) = sum.magnitude
    bytes.append(isNegative ? 1 : 0)
    bytes.append(varint: UInt64(magnitude.digits.isEmpty ? 0 : magnitude.place + ExactSum.digitsBelowPoint))
    bytes.append(varint: UInt64(magnitude.digits.count))
    for digit in magnitude.digits { bytes.append(littleEndian: digit) }
  }

  /// Adds sums that were written.
  fileprivate func merge(_ reader: inout StateReader) throws {
    let (numbers, squares) = (try reader.expansion(), try reader.expansion())
    try add(numbers, squares: squares) { sum, allSquares in
      try reader.addSum(to: &sum)
      try reader.addSum(to: &allSquares)
    }
  }
}
