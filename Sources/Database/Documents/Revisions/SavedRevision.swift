/// The result of a local write.
public struct SavedRevision: Sendable {
  /// The sequence of the change.
  public let sequence: UInt64
  /// The revision's generation, 1 for the first revision of a document.
  public let generation: UInt64
  let digest: InlineArray<20, UInt8>

  /// The revision's ID.
  public var revisionID: RevisionID { revisionID(digestBytes: RevisionDigest.byteCount) }

  /// The revision's ID, if it has so many bytes of the digest.
  func revisionID(digestBytes: Int) -> RevisionID {
    let suffix = digest.span.withUnsafeBytes {
      StoredSuffix(bytes: UnsafeRawBufferPointer(rebasing: $0[..<digestBytes]), isText: false).text
    }
    return RevisionID(generation: generation, suffix: suffix)
  }
}
