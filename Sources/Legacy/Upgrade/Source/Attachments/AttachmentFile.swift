// The file of an attachment. Its name is the SHA-1 of its decrypted contents:
//
//   plain      the bytes; or a gzip stream of them, when the attachment says "encoding": "gzip"
//   encrypted  IV (16 bytes)  AES-256-CBC of the same, padded as PKCS#7 says

import Blobs
import CCrypto
import CZlib
import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Reads the file of an attachment in pieces, and decrypts and decodes it.
struct AttachmentFile {
  let path: String
  /// The key, or nil if the file isn't encrypted.
  let key: SecretBytes?
  let isCompressed: Bool

  /// A fault in the contents of a file.
  struct Fault: Error { let message: String }

  /// Calls `sink` with the decoded bytes. Returns the SHA-1 of the stored bytes after decryption if `hashes`
  /// is true.
  ///
  /// Throws a `Fault` if the contents can't be decrypted or decoded, or if they have more than `limit` bytes.
  func read(hashes: Bool, limit: UInt64, _ sink: (UnsafeRawBufferPointer) throws -> Void) throws
    -> BlobDigest?
  {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw StorageError.system(errno, "can't open an attachment", path) }
    defer { close(file) }
    let digest = hashes ? try BlobHash() : nil
    let inflater = isCompressed ? try Inflater() : nil
    var count: UInt64 = 0
    func decoded(_ bytes: UnsafeRawBufferPointer) throws {
      count += UInt64(bytes.count)
      guard count <= limit else { throw Fault(message: "it is longer than its length says") }
      try sink(bytes)
    }
    func stored(_ bytes: UnsafeRawBufferPointer) throws {
      try digest?.update(bytes)
      if let inflater { try inflater.add(bytes, decoded) } else { try decoded(bytes) }
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 64)
    defer { buffer.deallocate() }
    let cipher = try key.map { try Decryption($0) }
    while true {
      let count = Glibc.read(file, buffer.baseAddress, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw StorageError.system(errno, "can't read an attachment", path) }
      guard count > 0 else { break }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      if let cipher { try cipher.add(bytes, stored) } else { try stored(bytes) }
    }
    try cipher?.finish(stored)
    try inflater?.finish()
    return try digest?.finish().digest
  }

  private static let pieceBytes = 1 << 17

  // MARK: Decryption and decoding

  private static func libraryFailure(_ message: String) -> StorageError {
    ERR_clear_error()
    return StorageError(.engineFailure, "\(message) in libcrypto")
  }

  /// Decrypts AES-256-CBC as a stream. The IV comes first.
  private final class Decryption {
    private let context: OpaquePointer
    private let key: SecretBytes
    private var iv: [UInt8] = []
    private var output = [UInt8](repeating: 0, count: AttachmentFile.pieceBytes + 64)

    init(_ key: SecretBytes) throws {
      guard let context = EVP_CIPHER_CTX_new() else {
        throw AttachmentFile.libraryFailure("can't create a cipher context")
      }
      self.context = context
      self.key = key
    }

    deinit { EVP_CIPHER_CTX_free(context) }

    func add(_ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
      var rest = bytes
      if iv.count < 16 {
        let count = min(16 - iv.count, rest.count)
        iv.append(contentsOf: rest[..<count])
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        guard iv.count == 16 else { return }
        let code = key.withUnsafeBytes { key in
          EVP_DecryptInit_ex(
            context, EVP_aes_256_cbc(), nil, key.baseAddress?.assumingMemoryBound(to: UInt8.self), iv)
        }
        guard code == 1 else { throw AttachmentFile.libraryFailure("no AES-256-CBC") }
      }
      guard !rest.isEmpty else { return }
      var count: Int32 = 0
      guard
        EVP_DecryptUpdate(
          context, &output, &count, rest.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(rest.count))
          == 1
      else { throw AttachmentFile.libraryFailure("decryption failed") }
      try hand(count, sink)
    }

    func finish(_ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
      guard iv.count == 16 else { throw Fault(message: "it is too short to be encrypted") }
      var count: Int32 = 0
      guard EVP_DecryptFinal_ex(context, &output, &count) == 1 else {
        ERR_clear_error()
        throw Fault(message: "it can't be decrypted")
      }
      try hand(count, sink)
    }

    private func hand(_ count: Int32, _ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
      guard count > 0 else { return }
      try output.withUnsafeBytes { try sink(UnsafeRawBufferPointer(rebasing: $0[..<Int(count)])) }
    }
  }

  /// Decodes gzip as a stream.
  private final class Inflater {
    private let stream: UnsafeMutablePointer<z_stream>
    private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 17, alignment: 64)
    private var isEnded = false

    init() throws {
      stream = .allocate(capacity: 1)
      stream.initialize(to: z_stream())
      // 16 plus the window bits selects gzip.
      let code = inflateInit2_(stream, 15 + 16, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
      guard code == Z_OK else { throw StorageError(.engineFailure, "zlib can't decode gzip (code \(code))") }
    }

    deinit {
      inflateEnd(stream)
      stream.deallocate()
      output.deallocate()
    }

    func add(_ bytes: UnsafeRawBufferPointer, _ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
      stream.pointee.next_in = UnsafeMutablePointer(
        mutating: bytes.baseAddress?.assumingMemoryBound(to: UInt8.self))
      stream.pointee.avail_in = UInt32(bytes.count)
      while stream.pointee.avail_in > 0 {
        if isEnded {
          // Another gzip member can follow.
          guard inflateReset(stream) == Z_OK else {
            throw Fault(message: "its gzip data continues with invalid bytes")
          }
          isEnded = false
        }
        try step(sink)
      }
    }

    private func step(_ sink: (UnsafeRawBufferPointer) throws -> Void) throws {
      repeat {
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(output.count)
        let code = inflate(stream, Z_NO_FLUSH)
        guard code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR else {
          throw Fault(message: "it is marked as gzip, but isn't valid gzip data")
        }
        isEnded = code == Z_STREAM_END
        let count = output.count - Int(stream.pointee.avail_out)
        if count > 0 { try sink(UnsafeRawBufferPointer(rebasing: output[..<count])) }
        if code == Z_BUF_ERROR { return }
      } while !isEnded && stream.pointee.avail_out == 0
    }

    func finish() throws {
      guard isEnded else { throw Fault(message: "its gzip data is cut off") }
    }
  }
}
