// The file of a blob in an encrypted database (docs/blobs.md). Version 1.
//
//   file   := header chunk* last
//   header := magic salt:32 sealed                     100 bytes
//   magic  := "TSBLOB" 0x00 version:u8=1
//   sealed := GCM(nonce(0, 0), length:u64 big-endian digest:20)   28 bytes and a tag of 16; magic and salt authenticated
//             zero bytes while the file is being written
//   chunk  := GCM(nonce(1, n), 65,536 bytes)           and a tag of 16
//   last   := GCM(nonce(2, n), 0 to 65,536 bytes)      and a tag of 16; 0 only when the blob is empty
//   nonce  := kind:u8 0:u24 number:u64 big-endian      number: of the chunk, from 0
//   GCM    := AES-256-GCM under the file's key
//   file's key := HKDF-SHA-256(blob key, salt, "touchstone blob file 1")
//   blob key   := HKDF-SHA-256(data key, 32 zero bytes, "touchstone blobs 1")
//   name key   := HKDF-SHA-256(data key, 32 zero bytes, "touchstone blob names 1")
//   file name  := base64url(HMAC-SHA-256(name key, digest)) without padding, ".sealed"
//
// The chunks are those of the STREAM construction (Hoang, Reyhanitabar, Rogaway and Vizár, 2015): each nonce
// contains the chunk's number and whether it is the last chunk. The header binds the salt to the digest and
// the length. The salt determines the key, so this also binds every chunk.

import CCrypto
import Encryption
import Storage

/// The sizes and nonces of the sealed format.
enum SealedFormat {
  static let magic: [UInt8] = Array("TSBLOB".utf8) + [0, 1]
  static let saltBytes = 32
  static let tagBytes = 16
  static let sealedBytes = 8 + BlobDigest.byteCount + tagBytes
  static let headerBytes = magic.count + saltBytes + sealedBytes
  static let chunkBytes = 65_536
  static let sealedChunkBytes = chunkBytes + tagBytes
  static let fileSuffix = ".sealed"
  /// The maximum length of a blob: more than any file system holds, and low enough that sums can't overflow.
  static let maximumLength: UInt64 = 1 << 56

  enum Kind: UInt8 {
    case header = 0
    case chunk = 1
    case lastChunk = 2
  }

  /// Returns the number of chunks of a blob with `length` bytes. There is always a last chunk.
  static func chunkCount(_ length: UInt64) -> UInt64 {
    max(1, (length + UInt64(chunkBytes) - 1) / UInt64(chunkBytes))
  }

  /// Returns the length of the file of a blob with `length` bytes.
  static func fileLength(_ length: UInt64) -> UInt64 {
    UInt64(headerBytes) + length + chunkCount(length) * UInt64(tagBytes)
  }

  /// Returns the length of the blob in a file of this length, nil if no blob's file has this length.
  static func blobLength(ofFile fileLength: UInt64) -> UInt64? {
    guard fileLength >= UInt64(headerBytes + tagBytes), fileLength <= maximumLength else { return nil }
    let content = fileLength - UInt64(headerBytes)
    let chunks = (content + UInt64(sealedChunkBytes) - 1) / UInt64(sealedChunkBytes)
    guard content >= chunks * UInt64(tagBytes) else { return nil }
    let length = content - chunks * UInt64(tagBytes)
    return SealedFormat.fileLength(length) == fileLength ? length : nil
  }
}

/// The keys for the blobs of one database.
final class BlobKeys: Sendable {
  private let blobKey: SecretBytes
  private let nameKey: SecretBytes

  init(dataKey: SecretBytes) throws {
    blobKey = try dataKey.subkey(for: "touchstone blobs 1")
    nameKey = try dataKey.subkey(for: "touchstone blob names 1")
  }

  func fileKey(salt: [UInt8]) throws -> SecretBytes {
    try blobKey.subkey(for: "touchstone blob file 1", salt: salt)
  }

  /// Returns the name of a blob's file. Without the key, no one can find out whether a known content is
  /// stored.
  func fileName(of digest: BlobDigest) throws -> String {
    var name = [UInt8](repeating: 0, count: 32)
    var count = 0
    let digest = digest.bytes
    let made = nameKey.withUnsafeBytes { key in
      EVP_Q_mac(
        nil, "HMAC", nil, "SHA256", nil, key.baseAddress, key.count, digest, digest.count, &name, name.count,
        &count) != nil
    }
    guard made, count == name.count else {
      throw StorageError(.engineFailure, "HMAC-SHA-256 failed in libcrypto")
    }
    return base64(name, plus: UInt8(ascii: "-"), slash: UInt8(ascii: "_"), padded: false)
      + SealedFormat.fileSuffix
  }
}

/// AES-256-GCM with one file's key, in one direction. Used on one thread at a time.
final class ChunkCipher {
  private let context: OpaquePointer
  private let encrypts: Bool

  init(key: SecretBytes, encrypts: Bool) throws {
    guard let context = EVP_CIPHER_CTX_new() else {
      throw StorageError(.engineFailure, "libcrypto can't create a cipher context")
    }
    self.context = context
    self.encrypts = encrypts
    let isSetUp = key.withUnsafeBytes { key in
      EVP_CipherInit_ex(
        context, EVP_aes_256_gcm(), nil, key.bindMemory(to: UInt8.self).baseAddress, nil, encrypts ? 1 : 0)
    }
    guard isSetUp == 1 else { throw StorageError(.engineFailure, "libcrypto doesn't provide AES-256-GCM") }
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  private func begin(_ kind: SealedFormat.Kind, _ number: UInt64, _ additionalData: [UInt8]) -> Bool {
    var nonce: InlineArray<12, UInt8> = .init(repeating: 0)
    nonce[0] = kind.rawValue
    for index in 0..<8 { nonce[4 + index] = UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * index)) }
    var written: Int32 = 0
    return nonce.span.withUnsafeBufferPointer {
      EVP_CipherInit_ex(context, nil, nil, nil, $0.baseAddress, encrypts ? 1 : 0) == 1
    }
      && (additionalData.isEmpty
        || EVP_CipherUpdate(context, nil, &written, additionalData, Int32(additionalData.count)) == 1)
  }

  /// Writes the ciphertext and its tag to `output`, which must have room for both.
  func seal(
    _ bytes: UnsafeRawBufferPointer, _ kind: SealedFormat.Kind, _ number: UInt64,
    additionalData: [UInt8] = [], into output: UnsafeMutableRawPointer
  ) throws {
    var written: Int32 = 0
    let target = output.assumingMemoryBound(to: UInt8.self)
    var place: UInt8 = 0
    let isSealed =
      begin(kind, number, additionalData)
      && (bytes.count == 0
        || EVP_CipherUpdate(
          context, target, &written, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
          Int32(bytes.count)) == 1)
      && EVP_CipherFinal_ex(context, &place, &written) == 1
      && EVP_CIPHER_CTX_ctrl(
        context, EVP_CTRL_AEAD_GET_TAG, Int32(SealedFormat.tagBytes), target + bytes.count) == 1
    guard isSealed else {
      throw StorageError(.engineFailure, "encryption with AES-256-GCM failed in libcrypto")
    }
  }

  /// Decrypts `sealed` to `output`, which must have room for the plaintext. Returns false if it isn't what
  /// was sealed as this chunk of this file. Then the contents of `output` must not be used.
  func open(
    _ sealed: UnsafeRawBufferPointer, _ kind: SealedFormat.Kind, _ number: UInt64,
    additionalData: [UInt8] = [], into output: UnsafeMutableRawPointer
  ) throws -> Bool {
    let count = sealed.count - SealedFormat.tagBytes
    guard count >= 0, let source = sealed.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
      return false
    }
    let target = output.assumingMemoryBound(to: UInt8.self)
    var written: Int32 = 0
    var place: UInt8 = 0
    guard begin(kind, number, additionalData),
      count == 0 || EVP_CipherUpdate(context, target, &written, source, Int32(count)) == 1,
      EVP_CIPHER_CTX_ctrl(
        context, EVP_CTRL_AEAD_SET_TAG, Int32(SealedFormat.tagBytes),
        UnsafeMutablePointer(mutating: source + count)) == 1
    else { throw StorageError(.engineFailure, "decryption with AES-256-GCM failed in libcrypto") }
    let isAuthentic = EVP_CipherFinal_ex(context, &place, &written) == 1
    if !isAuthentic { ERR_clear_error() }
    return isAuthentic
  }
}
