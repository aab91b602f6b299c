import Bytes
import CSQLite
import Storage

/// A scan in which the library passes all rows to a callback within a single step.
///
/// The callback is a function in the scan's WHERE clause. It rejects every row, so the step goes on to the
/// next one. A row costs a fifth less than with one step per row.
final class RowVisit {
  typealias Body = (_ key: RawSpan, _ value: RawSpan) throws -> Bool

  private let body: Body
  private let end: ScanEnd
  /// The bytes of the rows so far, the number of bytes that makes the scan a long one, and the action to take
  /// then.
  @exclusivity(unchecked) private var bytes = 0
  @exclusivity(unchecked) private var limit = Int.max
  private var whenLong: () -> Void = {}
  /// Whether the scan has become long.
  private(set) var isLong = false
  /// The error that the body threw.
  private(set) var error: (any Error)?

  init(until end: ScanEnd, _ body: @escaping Body) {
    self.end = end
    self.body = body
  }

  /// Calls `body` when more than `limit` bytes were visited.
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

  /// Calls the body with each row until it returns false or throws. Returns the library's result code.
  /// `SQLITE_ROW` means that the body ended the scan.
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

/// The end of a visiting scan.
///
/// In keyspaces of entries, SQL checks only the bound at which the scan starts. The callback checks the other
/// one, at a third of the cost in the library.
struct ScanEnd {
  private let bound: UnsafeRawBufferPointer?
  private let isDescending: Bool

  /// No end.
  static var none: ScanEnd { ScanEnd(bound: nil, isDescending: false) }

  /// Calls `body` with the end of a scan over `bounds`. The end is valid until `body` returns. Nil bounds
  /// give no end.
  static func with<Result>(
    _ bounds: ScanBounds?, isDescending: Bool, _ body: (ScanEnd) throws -> Result
  ) rethrows -> Result {
    guard let bounds, let bound = isDescending ? (bounds.hasLower ? bounds.lower : nil) : bounds.upper else {
      return try body(.none)
    }
    return try bound.withUnsafeBytes { try body(ScanEnd(bound: $0, isDescending: isDescending)) }
  }

  /// Returns whether a key is behind the end.
  @inline(__always)
  func isBefore(_ key: UnsafeRawBufferPointer) -> Bool {
    guard let bound else { return false }
    let order = compareBytes(key, bound)
    return isDescending ? order < 0 : order >= 0
  }
}
