import CCrypto
import Storage

/// Computes the IDs of new revisions: SHA-1 over the parent's ID, the deleted flag and the canonical body.
/// The same parent and body give the same ID in every database on every engine.
///
///   digest := SHA1( min(length of parent ID, 255):u8  parent ID as text  deleted:u8  canonical JSON )
///
/// LiteCore has used this rule since 3.3. Revisions of clients of CouchDB have the first 16 bytes: CouchDB compares revision IDs of 32
/// digits by their bytes and others as text, so only with 32 digits it finds the same winner of a conflict. Use it on one thread at a time.
final class RevisionDigest {
  static let byteCount = 20
  static let shortByteCount = 16

  private let context: OpaquePointer
  private let algorithm: OpaquePointer
  private let result: UnsafeMutablePointer<UInt8>

  init() throws {
    guard let context = EVP_MD_CTX_new() else {
      throw StorageError(.engineFailure, "libcrypto can't create a digest context")
    }
    guard let algorithm = EVP_MD_fetch(nil, "SHA1", nil) else {
      EVP_MD_CTX_free(context)
      throw StorageError(.engineFailure, "libcrypto doesn't provide SHA-1")
    }
    self.context = context
    self.algorithm = algorithm
    result = .allocate(capacity: RevisionDigest.byteCount)
  }

  deinit {
    EVP_MD_CTX_free(context)
    EVP_MD_free(algorithm)
    result.deallocate()
  }

  /// Returns 20 bytes, valid until the next call. `parent` is the parent's ID as text, empty if there is
  /// none.
  func digest(parent: UnsafeRawBufferPointer, deleted: Bool, body: UnsafeRawBufferPointer) throws
    -> UnsafeRawBufferPointer
  {
    // Hash the length, the parent and the flag in one update, before the body.
    let head = withUnsafeTemporaryAllocation(byteCount: 257, alignment: 1) { head in
      let length = min(parent.count, 255)
      head[0] = UInt8(length)
      if length > 0 {
        UnsafeMutableRawBufferPointer(rebasing: head[1...]).copyMemory(
          from: UnsafeRawBufferPointer(rebasing: parent[..<length]))
      }
      head[1 + length] = deleted ? 1 : 0
      return EVP_DigestInit_ex2(context, algorithm, nil) == 1
        && EVP_DigestUpdate(context, head.baseAddress, length + 2) == 1
    }
    guard head, EVP_DigestUpdate(context, body.baseAddress, body.count) == 1,
      EVP_DigestFinal_ex(context, result, nil) == 1
    else { throw StorageError(.engineFailure, "SHA-1 failed in libcrypto") }
    return UnsafeRawBufferPointer(start: result, count: RevisionDigest.byteCount)
  }
}
