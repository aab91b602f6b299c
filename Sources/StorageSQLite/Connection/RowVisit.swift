import CSQLite
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A scan whose rows the library hands over from inside of one step, by a function in the scan's WHERE that says of each
/// row that it isn't wanted. A row costs a fifth less than one that is stepped to.
final class RowVisit {
  typealias Body = (_ key: RawSpan, _ value: RawSpan) throws -> Bool

  private let body: Body
  private let end: ScanEnd
  /// The bytes of rows so far, how many make the scan a long one, and what is done then.
  @exclusivity(unchecked) private var bytes = 0
  @exclusivity(unchecked) private var limit = Int.max
  private var whenLong: () -> Void = {}
  /// Whether it was done.
  private(set) var isLong = false
  /// What the body threw.
  private(set) var error: (any Error)?

  init(until end: ScanEnd, _ body: @escaping Body) {
    self.end = end
    self.body = body
  }

  /// Has something done when so many bytes were visited.
  func noteLong(after limit: Int, _ body: @escaping () -> Void) {
    self.limit = limit
    whenLong = body
  }

  @inline(never)
  private func becomeLong() {
    limit = .max
    isLong = true
    whenLong()
  }

  /// Calls the body with each row until it returns false or throws. Returns the library's code: that of a row when the
  /// body ended it.
  func run(_ statement: OpaquePointer, _ functions: UnsafePointer<CSQLiteFunctions>) -> Int32 {
    withExtendedLifetime(self) {
      csqlite_visit(
        functions, statement,
        { visit, key, keyBytes, value, valueBytes in
          Unmanaged<RowVisit>.fromOpaque(visit.unsafelyUnwrapped)._withUnsafeGuaranteedRef {
            $0.take(
              UnsafeRawBufferPointer(start: key, count: Int(truncatingIfNeeded: keyBytes)),
              UnsafeRawBufferPointer(start: value, count: Int(truncatingIfNeeded: valueBytes)))
              ? 1 : 0
          }
        }, Unmanaged.passUnretained(self).toOpaque())
    }
  }

  @inline(__always)
  private func take(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
    if end.isBefore(key) { return false }
    bytes &+= key.count &+ value.count
    if _slowPath(bytes > limit) { becomeLong() }
    do { return try body(key.bytes, value.bytes) } catch {
      self.error = error
      return false
    }
  }
}

/// Where a scan ends whose rows are visited: its statement has a bound on the side that it begins at, and no more. To look at
/// a key here costs a third of what it costs the library.
struct ScanEnd {
  private let bound: UnsafeRawBufferPointer?
  private let isDescending: Bool

  /// No end.
  static var none: ScanEnd { ScanEnd(bound: nil, isDescending: false) }

  /// Calls `body` with the end of a scan between `bounds`, which is valid until it returns. Without bounds it has none.
  static func with<Result>(
    _ bounds: ScanBounds?, isDescending: Bool, _ body: (ScanEnd) throws -> Result
  ) rethrows -> Result {
    guard let bounds, let bound = isDescending ? (bounds.hasLower ? bounds.lower : nil) : bounds.upper else {
      return try body(.none)
    }
    return try bound.withUnsafeBytes { try body(ScanEnd(bound: $0, isDescending: isDescending)) }
  }

  /// Whether a key lies behind it.
  @inline(__always)
  func isBefore(_ key: UnsafeRawBufferPointer) -> Bool {
    guard let bound else { return false }
    var order = 0
    if let left = key.baseAddress, let right = bound.baseAddress {
      order = Int(memcmp(left, right, min(key.count, bound.count)))
    }
    if order == 0 { order = key.count - bound.count }
    return isDescending ? order < 0 : order >= 0
  }
}
