import CCrypto
import Encryption
import Glibc
import Storage

/// Encrypts and decrypts records. Its cipher contexts keep their keys. One thread at a time.
final class RecordCipher {
  private struct Context {
    var handle: OpaquePointer?
    var session = SessionID(high: 0, low: 0)
    var encrypts = false
  }

  private static let contextCount = 4
  private let keys: SessionKeys
  private let contexts: UnsafeMutablePointer<Context>
  private var nextVictim = 0

  init(_ keys: SessionKeys) {
    self.keys = keys
    contexts = .allocate(capacity: Self.contextCount)
    contexts.initialize(repeating: Context(), count: Self.contextCount)
  }

  deinit {
    for index in 0..<Self.contextCount { EVP_CIPHER_CTX_free(contexts[index].handle) }
    contexts.deallocate()
  }

  /// Decrypts a record of `count` bytes followed by its tag. Returns false if it isn't authentic under its
  /// reference.
  func open(
    _ record: UnsafeRawPointer, count: Int, _ reference: Reference, _ kind: RecordKind,
    into output: UnsafeMutableRawPointer
  ) throws -> Bool {
    let context = try context(reference.seal.sessionID, encrypts: false)
    var written: Int32 = 0
    var end: UInt8 = 0
    let isAuthentic = withHeader(reference, kind) { nonce, additional in
      EVP_DecryptInit_ex(context, nil, nil, nil, nonce) == 1
        && EVP_DecryptUpdate(context, nil, &written, additional, Int32(Self.additionalBytes)) == 1
        && EVP_DecryptUpdate(
          context, output.assumingMemoryBound(to: UInt8.self), &written,
          record.assumingMemoryBound(to: UInt8.self), Int32(count)) == 1
        && EVP_CIPHER_CTX_ctrl(
          context, EVP_CTRL_AEAD_SET_TAG, Int32(RecordFormat.tagBytes),
          UnsafeMutableRawPointer(mutating: record + count)) == 1
        && EVP_DecryptFinal_ex(context, &end, &written) == 1
    }
    if !isAuthentic {
      // Erases the output, because it isn't authentic.
      explicit_bzero(output, count)
      ERR_clear_error()
    }
    return isAuthentic
  }

  /// Encrypts `count` bytes into `output`, followed by the tag.
  func seal(
    _ plaintext: UnsafeRawPointer, count: Int, _ reference: Reference, _ kind: RecordKind,
    into output: UnsafeMutableRawPointer
  ) throws {
    let context = try context(reference.seal.sessionID, encrypts: true)
    var written: Int32 = 0
    let isSealed = withHeader(reference, kind) { nonce, additional in
      let end = (output + count).assumingMemoryBound(to: UInt8.self)
      return EVP_EncryptInit_ex(context, nil, nil, nil, nonce) == 1
        && EVP_EncryptUpdate(context, nil, &written, additional, Int32(Self.additionalBytes)) == 1
        && EVP_EncryptUpdate(
          context, output.assumingMemoryBound(to: UInt8.self), &written,
          plaintext.assumingMemoryBound(to: UInt8.self), Int32(count)) == 1
        && EVP_EncryptFinal_ex(context, end, &written) == 1
        && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(RecordFormat.tagBytes), end) == 1
    }
    if !isSealed { throw Self.failure("a record could not be encrypted") }
  }

  private static let additionalBytes = 16

  /// Calls `body` with the nonce and the additional data of a record.
  @inline(__always)
  private func withHeader(
    _ reference: Reference, _ kind: RecordKind,
    _ body: (_ nonce: UnsafePointer<UInt8>, _ additional: UnsafePointer<UInt8>) -> Bool
  ) -> Bool {
    var header: (UInt32, UInt32, UInt64, Seal) = (
      RecordFormat.version.littleEndian, kind.rawValue.littleEndian, reference.number.littleEndian,
      Seal(session: 0, middle: 0, nonce: 0)
    )
    return withUnsafeMutableBytes(of: &header) { bytes in
      let start = bytes.baseAddress.unsafelyUnwrapped
      reference.seal.write(to: start + Self.additionalBytes)
      let pointer = start.assumingMemoryBound(to: UInt8.self)
      return body(pointer + Self.additionalBytes + Seal.nonceOffset, pointer)
    }
  }

  /// Returns a context with the key of a session.
  @inline(__always)
  private func context(_ session: SessionID, encrypts: Bool) throws -> OpaquePointer {
    for index in 0..<Self.contextCount where contexts[index].session == session {
      if contexts[index].encrypts == encrypts, let handle = contexts[index].handle { return handle }
    }
    return try makeContext(session, encrypts: encrypts)
  }

  @inline(never)
  private func makeContext(_ session: SessionID, encrypts: Bool) throws -> OpaquePointer {
    let key = try keys.key(of: session)
    let index = nextVictim
    nextVictim = (nextVictim + 1) % Self.contextCount
    let known = contexts[index].handle
    contexts[index].handle = nil
    guard let handle = known ?? EVP_CIPHER_CTX_new() else {
      throw Self.failure("libcrypto can't create a cipher context")
    }
    // The context keeps its cipher if only the key changes.
    let hasCipher = known != nil && contexts[index].encrypts == encrypts
    let isSet = key.withUnsafeBytes { key in
      EVP_CipherInit_ex(
        handle, hasCipher ? nil : EVP_aes_256_gcm(), nil, key.bindMemory(to: UInt8.self).baseAddress, nil,
        encrypts ? 1 : 0) == 1
    }
    guard isSet else {
      EVP_CIPHER_CTX_free(handle)
      throw Self.failure("libcrypto can't create a cipher context with a key")
    }
    contexts[index] = Context(handle: handle, session: session, encrypts: encrypts)
    return handle
  }

  static func fillRandomly(_ memory: UnsafeMutableRawBufferPointer) throws {
    guard RAND_bytes(memory.baseAddress, Int32(memory.count)) == 1 else {
      throw failure("the random generator of the system failed")
    }
  }

  static func failure(_ what: String) -> StorageError {
    let number = ERR_get_error()
    ERR_clear_error()
    var text = [CChar](repeating: 0, count: 256)
    ERR_error_string_n(number, &text, text.count)
    let reason = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
    return StorageError(.engineFailure, what, engineCode: Int(number), engineMessage: reason)
  }
}
