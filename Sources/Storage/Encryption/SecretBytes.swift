import CCrypto

/// Bytes that are wiped when their last owner releases them, and that are never printed.
///
/// They are in separate memory, never in an array, whose copies or growth would leave traces. They are
/// immutable, so any thread may read them.
package final class SecretBytes: @unchecked Sendable {
  private let memory: UnsafeMutableRawBufferPointer
  private let release: (UnsafeMutableRawBufferPointer) -> Void

  /// Creates `count` bytes, which are zero until `fill` has written them. If `fill` throws, they are wiped.
  package init(count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
    memory = .allocate(byteCount: count, alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 0)
    release = { $0.deallocate() }
    do { try fill(memory) } catch {
      // The object is initialized now, so deinit wipes and frees the memory.
      throw error
    }
  }

  /// Creates a copy of `bytes`. The caller must wipe the original.
  package convenience init(_ bytes: some Collection<UInt8>) {
    self.init(count: bytes.count) { $0.copyBytes(from: bytes) }
  }

  /// Takes over memory. `release` frees it after it was wiped.
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

  /// Returns `count` bytes from the cryptographic random generator.
  package static func random(count: Int) throws -> SecretBytes {
    try SecretBytes(count: count) { try fillRandomly($0) }
  }

  /// The number of bytes.
  package var count: Int { memory.count }

  /// Lends the bytes, which are valid until `body` returns.
  package func withUnsafeBytes<Result>(
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    // Without this, the optimizer may end the object's life, and wipe the bytes, before `body` returns.
    try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(memory)) }
  }

  /// Lends a copy as an array, for interfaces that need one, and wipes it after `body`. `body` must wipe its
  /// own copies.
  package func withArray<Result>(_ body: ([UInt8]) throws -> Result) rethrows -> Result {
    var copy = withUnsafeBytes { [UInt8]($0) }
    defer { Self.wipe(&copy) }
    return try body(copy)
  }

  /// Overwrites an array with zeros in a way that the optimizer doesn't remove. The array must have no other
  /// owner: a shared array is copied first, and the other owner's bytes remain.
  package static func wipe(_ bytes: inout [UInt8]) {
    bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
  }
}

extension SecretBytes: Equatable {
  /// Returns whether both contain the same bytes. The time depends only on their number.
  package static func == (left: SecretBytes, right: SecretBytes) -> Bool {
    left.withUnsafeBytes { left in
      right.withUnsafeBytes { right in
        left.count == right.count && CRYPTO_memcmp(left.baseAddress, right.baseAddress, left.count) == 0
      }
    }
  }
}

extension SecretBytes: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  /// The number of bytes, and none of their values.
  package var description: String { "SecretBytes(\(count) bytes)" }
  /// The same as `description`.
  package var debugDescription: String { description }
  /// An empty mirror, so that `dump` shows no memory.
  package var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// Fills memory from the cryptographic random generator.
func fillRandomly(_ memory: UnsafeMutableRawBufferPointer) throws {
  guard memory.count == 0 || RAND_bytes(memory.baseAddress, Int32(memory.count)) == 1 else {
    throw libraryFailure("the random generator of the system failed")
  }
}

/// Returns an error with the first entry of the library's error queue, and clears the queue.
func libraryFailure(_ message: String) -> EncryptionError {
  let number = ERR_get_error()
  ERR_clear_error()
  guard number != 0 else { return EncryptionError(.libraryFailure, message) }
  var text = [CChar](repeating: 0, count: 256)
  ERR_error_string_n(number, &text, text.count)
  let reason = text.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
  return EncryptionError(.libraryFailure, "\(message) (\(reason))")
}
