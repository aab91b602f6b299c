import Bytes
import Storage

// Keys of the library's one map:
//
//   key      = number bytes                     an entry of a keyspace
//            / 00000000 record
//   record   = "k" name                         a keyspace: number and shape (1 byte)
//            / "c" number                       the number of its entries: 8 bytes, big-endian
//            / "n"                              the last number that was given out
//            / "d" number                       a dropped keyspace whose entries may still be there: empty
//   number   = 4 bytes, big-endian, from 1
//
// A keyspace is a range of keys and not a table of the library, because it must be made, dropped and rolled back
// within a transaction, a thousand of them must cost nothing, and all must be seen by one snapshot.

/// Keys of keyspaces and of records.
enum FlatKey {
  static let prefixBytes = 4
  static let maximumNumber = Int(UInt32.max) - 1

  /// The four bytes before the keys of a keyspace.
  static func prefix(_ number: Int) -> [UInt8] {
    withUnsafeBytes(of: UInt32(truncatingIfNeeded: number).bigEndian) { [UInt8]($0) }
  }

  static func record(_ kind: Unicode.Scalar, _ rest: [UInt8] = []) -> [UInt8] {
    prefix(0) + [UInt8(ascii: kind)] + rest
  }
  static func keyspace(_ name: String) -> [UInt8] { record("k", Array(name.utf8)) }
  static func count(_ number: Int) -> [UInt8] { record("c", prefix(number)) }
  static var lastNumber: [UInt8] { record("n") }
  static func dropped(_ number: Int) -> [UInt8] { record("d", prefix(number)) }

  /// Calls `body` with the library's key of an entry.
  @inline(__always)
  static func with<Result>(
    _ key: RawSpan, _ number: Int, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    let count = key.byteCount
    return try withUnsafeTemporaryAllocation(byteCount: prefixBytes + count, alignment: 8) { buffer in
      buffer.storeBytes(of: UInt32(truncatingIfNeeded: number).bigEndian, as: UInt32.self)
      key.withUnsafeBytes {
        UnsafeMutableRawBufferPointer(rebasing: buffer[prefixBytes...]).copyMemory(from: $0)
      }
      return try body(UnsafeRawBufferPointer(buffer))
    }
  }

  static func isLess(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.withUnsafeBytes { left in right.withUnsafeBytes { compareBytes(left, $0) < 0 } }
  }

  /// The first key of a range and the first behind it.
  static func bounds(_ range: KeyRange, _ number: Int) -> (lower: [UInt8], upper: [UInt8]) {
    let prefix = prefix(number)
    let lower =
      switch range.lower {
      case .unbounded: prefix
      case .inclusive(let key): prefix + key
      case .exclusive(let key): prefix + key + [0]
      }
    let upper =
      switch range.upper {
      case .unbounded: self.prefix(number + 1)
      case .inclusive(let key): prefix + key + [0]
      case .exclusive(let key): prefix + key
      }
    return (lower, upper)
  }
}

extension UnsafeRawBufferPointer {
  /// The entry's own key, behind the prefix of its keyspace.
  @inline(__always)
  var ownKey: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: self[Swift.min(FlatKey.prefixBytes, count)...])
  }

  /// A big-endian number of as many bytes as it has; nil if the length differs.
  func number<Integer: FixedWidthInteger>(_ type: Integer.Type, at offset: Int = 0) -> Integer? {
    guard count >= offset + MemoryLayout<Integer>.size else { return nil }
    return Integer(bigEndian: loadUnaligned(fromByteOffset: offset, as: Integer.self))
  }
}
