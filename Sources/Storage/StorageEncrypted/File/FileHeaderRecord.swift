// Record 0, the header. It is read before anything is decrypted:
//
//   header := magic:8 format:u32 nodePages:u32 fileID:16 nonce:12 tag:16 checksum:32
//
// `magic` is "TSLMDBEN". `tag` is that of AES-256-GCM without plaintext. Its key is HKDF-SHA-256 of the data
// key ("touchstone lmdb header 1", with the file's ID as salt). The bytes before the nonce are the additional
// data. The tag proves the key. `checksum` is SHA-256 of all bytes before it. It tells damage from a wrong
// key, and protects only against accidents.

import CCrypto
import Encryption
import Storage

struct FileHeaderRecord {
  static let magic = Array("TSLMDBEN".utf8)
  static let fileIDBytes = 16
  private static let tagged = 32
  private static let nonceBytes = 12
  private static let digestBytes = 32
  static let byteCount = tagged + nonceBytes + RecordFormat.tagBytes + digestBytes

  let nodePages: Int
  let fileID: [UInt8]

  /// Makes the header of a new file.
  init(nodePages: Int) throws {
    self.nodePages = nodePages
    fileID = try Self.random(Self.fileIDBytes)
  }

  /// Reads a header and proves the key. Throws `damaged`, `unsupportedVersion` and `wrongKey`.
  init(_ bytes: [UInt8], dataKey: SecretBytes, path: String) throws {
    func damaged(_ what: String) -> StorageError {
      StorageError(.damaged, "the header of the encrypted file \(what)", path: path)
    }
    guard bytes.count == Self.byteCount else { throw damaged("has \(bytes.count) bytes") }
    let body = Array(bytes.dropLast(Self.digestBytes))
    guard Array(bytes[..<8]) == Self.magic, try Self.digest(body) == Array(bytes.suffix(Self.digestBytes))
    else {
      throw damaged("was changed")
    }
    let numbers = bytes.withUnsafeBytes { bytes in
      (
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self)),
        UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
      )
    }
    guard numbers.0 == RecordFormat.version else {
      throw StorageError(
        .unsupportedVersion,
        "the encrypted file has format \(numbers.0); this release reads format \(RecordFormat.version)",
        path: path)
    }
    guard RecordFormat.nodePages.contains(Int(numbers.1)) else {
      throw damaged("has an impossible node size of \(numbers.1) pages")
    }
    nodePages = Int(numbers.1)
    fileID = Array(bytes[16..<Self.tagged])
    let nonce = Array(body[Self.tagged..<(Self.tagged + Self.nonceBytes)])
    let tag = try Self.tag(of: Array(body[..<Self.tagged]), nonce, dataKey, fileID)
    let isRight = tag.withUnsafeBytes { tag in
      body.suffix(RecordFormat.tagBytes).withUnsafeBytes {
        CRYPTO_memcmp(tag.baseAddress, $0.baseAddress, RecordFormat.tagBytes) == 0
      }
    }
    guard isRight else {
      throw StorageError(.wrongKey, "the key isn't the one that the file was encrypted with", path: path)
    }
  }

  /// Returns the bytes of the record.
  func bytes(dataKey: SecretBytes) throws -> [UInt8] {
    var bytes = Self.magic
    withUnsafeBytes(of: RecordFormat.version.littleEndian) { bytes += $0 }
    withUnsafeBytes(of: UInt32(nodePages).littleEndian) { bytes += $0 }
    bytes += fileID
    let nonce = try Self.random(Self.nonceBytes)
    let tag = try Self.tag(of: bytes, nonce, dataKey, fileID)
    bytes += nonce
    bytes += tag
    return bytes + (try Self.digest(bytes))
  }

  /// Returns the tag, which only the owner of the key can make. The same key and nonce never seal anything
  /// else.
  private static func tag(
    of bytes: [UInt8], _ nonce: [UInt8], _ dataKey: SecretBytes, _ fileID: [UInt8]
  ) throws -> [UInt8] {
    let key = try dataKey.subkey(for: "touchstone lmdb header 1", salt: fileID)
    guard let context = EVP_CIPHER_CTX_new() else {
      throw RecordCipher.failure("libcrypto can't create a cipher context")
    }
    defer { EVP_CIPHER_CTX_free(context) }
    var tag = [UInt8](repeating: 0, count: RecordFormat.tagBytes)
    var written: Int32 = 0
    let isMade =
      key.withUnsafeBytes { key in
        EVP_EncryptInit_ex(
          context, EVP_aes_256_gcm(), nil, key.bindMemory(to: UInt8.self).baseAddress, nonce) == 1
      } && EVP_EncryptUpdate(context, nil, &written, bytes, Int32(bytes.count)) == 1
      && EVP_EncryptFinal_ex(context, &tag, &written) == 1
      && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tag.count), &tag) == 1
    guard isMade else { throw RecordCipher.failure("the key can't be checked") }
    return tag
  }

  private static func digest(_ bytes: [UInt8]) throws -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: digestBytes)
    var count = 0
    guard EVP_Q_digest(nil, "SHA256", nil, bytes, bytes.count, &digest, &count) == 1, count == digestBytes
    else {
      throw RecordCipher.failure("libcrypto doesn't provide SHA-256")
    }
    return digest
  }

  private static func random(_ count: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    try bytes.withUnsafeMutableBytes { try RecordCipher.fillRandomly($0) }
    return bytes
  }
}
