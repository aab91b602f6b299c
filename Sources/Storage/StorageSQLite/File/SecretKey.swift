import Bytes
import CSQLite

#if canImport(Glibc)
  import Glibc
#endif

/// The 32 bytes of a file's key. The engine keeps them, because readers are opened on demand. The memory is
/// locked against swapping and overwritten when the object is released.
final class SecretKey: @unchecked Sendable {
  static let count = 32
  private let memory: UnsafeMutableRawPointer

  /// Copies the key. Nil if it doesn't have 32 bytes.
  init?(_ key: [UInt8]) {
    guard key.count == Self.count else { return nil }
    memory = .allocate(byteCount: Self.count, alignment: 16)
    mlock(memory, Self.count)
    key.withUnsafeBytes {
      memory.copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(memory), byteCount: $0.count)
    }
  }

  deinit {
    csqlite_wipe(memory, Self.count)
    munlock(memory, Self.count)
    memory.deallocate()
  }

  /// Lends the bytes of the key.
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try body(UnsafeRawBufferPointer(start: memory, count: Self.count))
  }

  /// Lends the key in SQLCipher's form for keys without derivation, `x'hex'`. The text is wiped afterwards.
  func withText<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    let count = Self.count * 2 + 3
    return try withUnsafeTemporaryAllocation(byteCount: count, alignment: 1) { text in
      defer { csqlite_wipe(text.baseAddress, count) }
      text[0] = UInt8(ascii: "x")
      text[1] = UInt8(ascii: "'")
      text[count - 1] = UInt8(ascii: "'")
      withBytes { Hex.write($0, to: text.baseAddress.unsafelyUnwrapped + 2) }
      return try body(UnsafeRawBufferPointer(text))
    }
  }
}
