import CCrypto

/// Bytes that are wiped when their last owner lets go of them, and that are never printed.
///
/// They lie in memory of their own, never in an array that a copy or a growth leaves traces of. Immutable, so
/// any thread may read them.
public final class SecretBytes: @unchecked Sendable {
  private let memory: UnsafeMutableRawBufferPointer
  private let release: (UnsafeMutableRawBufferPointer) -> Void

  /// `count` bytes, zero until `fill` has written them. When it throws they are wiped.
  public init(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
    memory = .allocate(byteCount: count, alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 0)
    release = { $0.deallocate() }
    do { try fill(memory) } catch {
      // The class is whole by now, so deinit wipes and frees.
      throw error
    }
  }

  /// A copy of `bytes`; wiping the original is the caller's.
  public convenience init(_ bytes: some Collection<UInt8>) {
    self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
  }

  /// Takes memory over that `release` gives back after it was wiped.
  init(
    adopting memory: UnsafeMutableRawBufferPointer,
    release: @escaping (UnsafeMutableRawBufferPointer) -> Void
  ) {
    self.memory = memory
    self.release = release
  }

  deinit {
    OPENSSL_cleanse(memory.baseAddress, memory.count)
    release(memory)
  }

  /// `count` bytes from the cryptographic random generator.
  public static func random(count: Int) throws -> SecretBytes {
    try SecretBytes(count: count) { try fillRandomly($0) }
  }

  /// How many bytes there are.
  public var count: Int { memory.count }

  /// Lends the bytes; they are valid until `body` returns.
  public func withUnsafeBytes<Result>(
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    // Without this the optimiser may end the object's life, and wipe the bytes, before `body` returns.
    try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(memory)) }
  }

  /// Lends a copy as an array, for interfaces that take one, and wipes it after `body`. What `body` copies
  /// from it is for `body` to wipe.
  public func withArray<Result>(_ body: ([UInt8]) throws -> Result) rethrows -> Result {
    var copy = withUnsafeBytes { [UInt8]($0) }
    defer { Self.wipe(&copy) }
    return try body(copy)
  }

  /// Overwrites an array with zeros in a way that no optimiser removes. An array that something else holds as
  /// well is copied first, and the other's bytes stay: wipe before sharing ends.
  public static func wipe(_ bytes: inout [UInt8]) {
    bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
  }
}

extension SecretBytes: Equatable {
  /// Whether both hold the same bytes, in time that depends on their number alone.
  public static func == (left: SecretBytes, right: SecretBytes) -> Bool {
    left.withUnsafeBytes { left in
      right.withUnsafeBytes { right in
        left.count == right.count && CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
      }
    }
  }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// How many bytes there are, and nothing of them.
  public var description: String { "SecretBytes(\(count) bytes)" }
  /// The same as `description`.
  public var debugDescription: String { description }
  /// Nothing: `dump` shows no memory.
  public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Fills memory from the cryptographic random generator.
func fillRandomly(_ memory: UnsafeMutableRawBufferPointer) throws {
  guard memory.count == 0 || RAND_bytes(memory.baseAddress, Int32(memory.count)) == 1 else {
    throw libraryFailure("the random generator gave no bytes")
  }
}

/// What the library's error queue says, and an empty queue afterwards.
func libraryFailure(_ message: String) -> EncryptionError {
  let number = ERR_get_error()
  ERR_clear_error()
  guard number != 0 else { return EncryptionError(.libraryFailure, message) }
  var text = [CChar](repeating: 0, count: 256)
  ERR_error_string_n(number, &text, text.count)
  let reason = text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  return EncryptionError(.libraryFailure, "\(message) (\(reason))")
}
