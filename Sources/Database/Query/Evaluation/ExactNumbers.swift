import Fleece

// Sums of doubles that don't depend on the order of rows: they are exact, and rounded once at the end.

/// A sum of doubles, as three doubles whose sum it is exactly: an expansion as in J. R. Shewchuk, "Adaptive Precision Floating-Point
/// Arithmetic" (1997), but of a fixed length.
struct DoubleExpansion: BitwiseCopyable {
  private var high = 0.0
  private var middle = 0.0
  private var low = 0.0

  /// Zero.
  init() {}

  /// The sum of doubles that are the parts of an expansion.
  init(parts: [Double]) { (high, middle, low) = (parts[0], parts[1], parts[2]) }

  /// The three doubles, whose sum it is exactly.
  var parts: [Double] { [high, middle, low] }

  /// A sum of multiples, which has at most 126 bits.
  init(_ units: Int128, _ scale: FixedScale) {
    high = scale.double(units)
    var rest = units - scale.units(high)
    middle = scale.double(rest)
    rest -= scale.units(middle)
    low = scale.double(rest)
  }

  /// The rounded sum of two doubles, and what rounding has lost (D. E. Knuth). Not a number if they are too large.
  @inline(__always)
  private static func sum(_ left: Double, _ right: Double) -> (rounded: Double, lost: Double) {
    let rounded = left + right
    let share = rounded - left
    return (rounded, (left - (rounded - share)) + (right - share))
  }

  /// Adds a double. False, without a change, if three doubles can't hold the sum.
  @inline(__always)
  mutating func add(_ value: Double) -> Bool {
    let first = Self.sum(high, value)
    if first.lost == 0 {
      high = first.rounded
      return true
    }
    let second = Self.sum(middle, first.lost)
    let third = Self.sum(low, second.lost)
    // Not a number isn't 0 either.
    guard third.lost == 0 else { return false }
    (high, middle, low) = (first.rounded, second.rounded, third.rounded)
    return true
  }

  /// Adds the square of a double. False, without a change, if three doubles can't hold the sum.
  @inline(__always)
  mutating func addSquare(_ value: Double) -> Bool {
    let square = value * value
    // Outside of this range a square or what rounding has lost of it is no normal number.
    guard square > 0x1p-900, square < 0x1p1000 else { return value == 0 }
    var sum = self
    guard sum.add(square), sum.add((-square).addingProduct(value, value)) else { return false }
    self = sum
    return true
  }

  /// Adds the doubles to an exact sum.
  func add(to sum: inout ExactSum) {
    sum.add(high)
    sum.add(middle)
    sum.add(low)
  }

  /// The sum with an integer, rounded once; infinite beyond all doubles.
  func plus(_ integer: Int128) -> Double {
    var sum = self
    if integer.magnitude <= 1 << 53, sum.add(Double(Int64(truncatingIfNeeded: integer))), sum.low == 0 {
      return sum.high + sum.middle
    }
    var exact = ExactSum()
    add(to: &exact)
    exact.add(integer)
    return exact.double
  }
}

/// Exact sums of the numbers of a group that three doubles can't hold, and the sums that variances need.
///
/// Their memory counts towards the budget of the run. One thread uses it.
final class ExactMoments {
  private(set) var sum = ExactSum()
  private(set) var squares = ExactSum()
  // What came first, and fits.
  @exclusivity(unchecked) private(set) var smallSum = DoubleExpansion()
  @exclusivity(unchecked) private(set) var smallSquares = DoubleExpansion()
  private let budget: QueryMemoryBudget
  private var counted = 0
  private static let ownBytes = 256

  init(_ budget: QueryMemoryBudget) {
    self.budget = budget
    count()
  }

  deinit { budget.giveBack(counted) }

  private func count() {
    let bytes = Self.ownBytes + sum.allocatedBytes + squares.allocatedBytes
    if bytes != counted { budget.take(bytes - counted) }
    counted = bytes
  }

  /// Adds doubles.
  func add(_ doubles: DoubleExpansion) {
    doubles.add(to: &sum)
    count()
  }

  /// Adds the sums of other numbers: those that fit, and what `body` adds to the exact ones.
  func add(
    _ numbers: DoubleExpansion, squares others: DoubleExpansion,
    _ body: (inout ExactSum, inout ExactSum) throws -> Void
  ) rethrows {
    numbers.add(to: &sum)
    others.add(to: &squares)
    defer { count() }
    try body(&sum, &squares)
  }

  /// Adds a finite double.
  @inline(__always)
  func add(_ value: Double) { if !smallSum.add(value) { addLarge(value) } }

  @inline(never)
  private func addLarge(_ value: Double) {
    sum.add(value)
    count()
  }

  /// Adds a number and its square.
  func add(withSquare number: QueryValue) {
    switch number {
    case .int(let value) where value.magnitude > 1 << 53: add(large: Int128(value))
    case .uint(let value): add(large: Int128(value))
    default:
      guard let value = number.number else { return }
      add(value)
      if !smallSquares.addSquare(value) {
        squares.addSquare(value)
        count()
      }
    }
  }

  @inline(never)
  private func add(large value: Int128) {
    sum.add(value)
    squares.addSquare(value)
    count()
  }

  /// The sum with an integer, rounded once; infinite beyond all doubles.
  func total(_ integer: Int128) -> Double {
    var total = sum
    smallSum.add(to: &total)
    total.add(integer)
    return total.double
  }

  /// (n · squares - sum²) / (n · divisor) of n numbers, or the root of it. The dividend is exact. Infinite beyond all doubles.
  func variance(_ count: Int, divisor: Int, isRoot: Bool) -> Double {
    var total = sum
    var allSquares = squares
    smallSum.add(to: &total)
    smallSquares.add(to: &allSquares)
    let sum = total.magnitude.value
    let dividend = (Magnitude(UInt64(count)) * allSquares.magnitude.value - sum * sum).scaled
    var (quotient, exponent) = (
      dividend.significand / (Double(count) * Double(divisor)), dividend.exponent
    )
    guard isRoot else { return Double(sign: .plus, exponent: exponent, significand: quotient) }
    if exponent & 1 != 0 {
      quotient *= 2
      exponent -= 1
    }
    return Double(sign: .plus, exponent: exponent / 2, significand: quotient.squareRoot())
  }
}
