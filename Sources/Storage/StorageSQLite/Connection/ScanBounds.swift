import CSQLite
import Storage

/// A range of keys in the form that SQL compares.
///
/// Byte keys use `lower` (inclusive) and `upper` (exclusive). The successor of a key is the key followed by a
/// zero byte. Keys of `sequences` use `lowest` and `highest`, both inclusive.
struct ScanBounds {
  let isSequence: Bool
  /// Empty if there is no lower bound.
  var lower: [UInt8] = []
  /// Nil if there is no upper bound.
  var upper: [UInt8]?
  var lowest: sqlite3_int64 = 0
  var highest = sqlite3_int64.max

  /// A bound greater than every key.
  nonisolated(unsafe) static let aboveAll: UnsafeRawBufferPointer = {
    let bytes = UnsafeMutableRawBufferPointer.allocate(
      byteCount: StorageLimits.maximumKeyBytes + 1, alignment: 8)
    bytes.initializeMemory(as: UInt8.self, repeating: 0xFF)
    return UnsafeRawBufferPointer(bytes)
  }()

  /// The bounds of all keys.
  init(isSequence: Bool) { self.isSequence = isSequence }

  /// The bounds of a range, or nil if no key can be in it.
  init?(_ range: KeyRange, _ shape: KeyspaceShape) {
    isSequence = shape == .sequences
    if isSequence {
      guard let lowest = Self.lowest(range.lower), let highest = Self.highest(range.upper), lowest <= highest
      else { return nil }
      self.lowest = lowest
      self.highest = highest
    } else {
      switch range.lower {
      case .unbounded: break
      case .inclusive(let key): lower = key
      case .exclusive(let key): lower = key + [0]
      }
      switch range.upper {
      case .unbounded: break
      case .exclusive(let key): upper = key
      case .inclusive(let key): upper = key + [0]
      }
    }
  }

  var hasLower: Bool { isSequence ? lowest > 0 : !lower.isEmpty }
  var hasUpper: Bool { isSequence ? highest < .max : upper != nil }

  /// Binds the bounds and runs `body`. The bound bytes stay valid while `body` runs.
  @inline(__always)
  func bound<Result>(
    to statement: OpaquePointer, _ functions: UnsafePointer<CSQLiteFunctions>, lower bindsLower: Bool,
    upper bindsUpper: Bool, _ body: () throws -> Result
  ) rethrows -> Result {
    if isSequence {
      if bindsLower { _ = csqlite_bind_int64(functions, statement, 1, lowest) }
      if bindsUpper { _ = csqlite_bind_int64(functions, statement, 2, highest) }
      return try body()
    }
    return try lower.withUnsafeBytes { lower in
      // A null pointer would bind NULL. Any other pointer binds an empty blob.
      let start = lower.isEmpty ? Self.aboveAll.baseAddress : lower.baseAddress
      if bindsLower {
        _ = csqlite_bind_static_blob(functions, statement, 1, start, Int32(truncatingIfNeeded: lower.count))
      }
      guard bindsUpper else { return try body() }
      guard let upper else {
        _ = csqlite_bind_static_blob(
          functions, statement, 2, Self.aboveAll.baseAddress, Int32(Self.aboveAll.count))
        return try body()
      }
      return try upper.withUnsafeBytes { upper in
        let start = upper.isEmpty ? Self.aboveAll.baseAddress : upper.baseAddress
        _ = csqlite_bind_static_blob(functions, statement, 2, start, Int32(truncatingIfNeeded: upper.count))
        return try body()
      }
    }
  }

  /// Returns the smallest sequence at or above a lower bound. Shorter bytes sort before the keys that they
  /// begin.
  private static func lowest(_ bound: KeyRange.Bound) -> sqlite3_int64? {
    switch bound {
    case .unbounded: return 0
    case .inclusive(let key): return key.withUnsafeBytes { SequenceKey.ceiling($0) }
    case .exclusive(let key):
      guard let least = key.withUnsafeBytes({ SequenceKey.ceiling($0) }) else { return nil }
      guard key.count == 8 else { return least }
      return least == .max ? nil : least + 1
    }
  }

  /// Returns the greatest sequence within an upper bound: the one before the smallest sequence beyond it.
  private static func highest(_ bound: KeyRange.Bound) -> sqlite3_int64? {
    switch bound {
    case .unbounded: return .max
    case .inclusive(let key) where key.count == 8:
      return key.withUnsafeBytes { SequenceKey.ceiling($0) } ?? .max
    case .inclusive(let key), .exclusive(let key):
      guard let beyond = key.withUnsafeBytes({ SequenceKey.ceiling($0) }) else { return .max }
      return beyond == 0 ? nil : beyond - 1
    }
  }
}

/// Conversion of `sequences` keys: 8 bytes, big-endian, below 2^63, stored as that integer.
enum SequenceKey {
  @inline(__always)
  static func isValid(_ key: UnsafeRawBufferPointer) -> Bool { key.count == 8 && key[0] < 0x80 }

  @inline(__always)
  static func number(_ key: UnsafeRawBufferPointer) -> sqlite3_int64 {
    sqlite3_int64(bitPattern: UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)))
  }

  /// Returns the smallest sequence whose key is `bytes` or greater, or nil if there is none.
  static func ceiling(_ bytes: UnsafeRawBufferPointer) -> sqlite3_int64? {
    var number: UInt64 = 0
    for index in 0..<8 { number = number << 8 | (index < bytes.count ? UInt64(bytes[index]) : 0) }
    guard let least = sqlite3_int64(exactly: number) else { return nil }
    // Longer bytes sort after the key at their beginning.
    if bytes.count <= 8 { return least }
    return least == .max ? nil : least + 1
  }
}
