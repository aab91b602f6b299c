import Blobs
import Bytes
import CCrypto
import Documents
import Touchstone
import Views

/// Stores the bytes of a new attachment while they arrive, in constant memory.
///
/// Types that compress well are stored as gzip, as in CouchDB, but not those of revisions that were made elsewhere: replicas of a revision
/// have the same bytes. The new blob is kept until a document that refers to it is saved; if none
/// is, whoever has finished the writer discards it.
final class AttachmentWriter {
  private let name: String
  private let contentType: String
  private let revpos: UInt64?
  private let limit: Int
  private let blob: BlobWriter
  /// Compresses the bytes.
  private let encoder: GzipEncoder?
  /// Counts the decoded bytes of what comes as gzip.
  private let decoder: GzipDecoder?
  /// The expected MD5 of the bytes as they arrive, and its computation.
  private let expected: [UInt8]?
  private let md5: MD5Stream?
  private var received: UInt64 = 0
  private var decoded: UInt64 = 0

  /// Begins to store an attachment. `isCompressed`: the bytes come as gzip, and are stored as they come. `digest` is what the client says
  /// of the bytes; one that begins with `md5-` is checked. `isForeign`: the revision was made elsewhere.
  init(
    _ call: DatabaseCall, name: String, contentType: String, revpos: UInt64? = nil,
    isCompressed: Bool = false, isForeign: Bool = false,
    digest: String? = nil
  ) throws {
    self.name = name
    self.contentType = contentType
    self.revpos = revpos
    limit = call.service.configuration.maximumAttachmentBytes
    blob = try call.database.makeBlobWriter()
    decoder = isCompressed ? try GzipDecoder() : nil
    encoder = isCompressed || isForeign || !Self.compresses(contentType) ? nil : GzipEncoder()
    var expected: [UInt8]?
    if let digest, digest.utf8.starts(with: "md5-".utf8) {
      var bytes: [UInt8] = []
      let text = Array(digest.utf8.dropFirst(4))
      if text.withUnsafeBytes({ Base64Decoder.decode($0) { bytes.append(contentsOf: $0) } }) {
        expected = bytes
      }
    }
    self.expected = expected
    md5 = expected == nil ? nil : try MD5Stream()
  }

  /// Whether bytes of this media type are stored as gzip: those of CouchDB's default setting `compressible_types`.
  static func compresses(_ contentType: String) -> Bool {
    let type = contentType.prefix { $0 != ";" && $0 != " " }.lowercased()
    return type.hasPrefix("text/")
      || ["application/javascript", "application/json", "application/xml"].contains(type)
  }

  /// Adds bytes as they arrive. Throws 413 for too many, and 400 for what isn't gzip but should be.
  func write(_ bytes: UnsafeRawBufferPointer) throws {
    received += UInt64(bytes.count)
    guard received <= UInt64(limit) else { throw tooLarge }
    try md5?.update(bytes)
    if let encoder {
      let encoded = encoder.encode([UInt8](bytes), isLast: false)
      if !encoded.isEmpty { try encoded.withUnsafeBytes { try blob.write($0) } }
      return
    }
    do {
      try decoder?.decode(bytes) { piece in
        decoded += UInt64(piece.count)
        if decoded > UInt64(limit) { throw tooLarge }
      }
    } catch is GzipDecoder.Malformed { throw malformed }
    try blob.write(bytes)
  }

  private var tooLarge: CouchDBError { CouchDBError(413, "attachment_too_large", name) }
  private var malformed: CouchDBError {
    CouchDBError(400, "bad_request", "the attachment \(name) isn't gzip")
  }

  /// The attachment is whole. Throws 400 if its bytes aren't those that were announced.
  func finish() throws -> StoredAttachment {
    if let decoder, !decoder.isAtEnd { throw malformed }
    if let md5, let expected, try md5.finish() != expected {
      throw CouchDBError(400, "content_md5_mismatch", "Possible message corruption.")
    }
    if let encoder { try encoder.encode([], isLast: true).withUnsafeBytes { try blob.write($0) } }
    let stored = try blob.finish()
    return StoredAttachment(
      name: name, digest: stored.digest, length: decoder == nil ? received : decoded,
      contentType: contentType,
      revpos: revpos, isCompressed: encoder != nil || decoder != nil, storedLength: stored.length)
  }
}

/// Computes the MD5 of a stream of bytes. Used on one thread at a time.
final class MD5Stream {
  private let context: OpaquePointer

  init() throws {
    guard let context = EVP_MD_CTX_new(), EVP_DigestInit_ex(context, EVP_md5(), nil) == 1 else {
      throw CouchDBError(500, "internal_server_error", "libcrypto doesn't provide MD5")
    }
    self.context = context
  }

  deinit { EVP_MD_CTX_free(context) }

  func update(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.isEmpty || EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1 else {
      throw CouchDBError(500, "internal_server_error", "MD5 failed in libcrypto")
    }
  }

  /// The MD5. No bytes may be added afterwards.
  func finish() throws -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 16)
    guard EVP_DigestFinal_ex(context, &digest, nil) == 1 else {
      throw CouchDBError(500, "internal_server_error", "MD5 failed in libcrypto")
    }
    return digest
  }
}
