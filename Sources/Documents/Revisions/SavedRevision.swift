/// The result of a local write.
public struct SavedRevision: Sendable {
  /// The sequence of the change.
  public let sequence: UInt64
  /// The revision's generation, 1 for the first revision of a document.
  public let generation: UInt64
  private var digest = InlineArray<20, UInt8>(repeating: 0)
  private let digestBytes: Int

  /// `suffix` are the bytes of the revision's ID, at most 20.
  init(sequence: UInt64, generation: UInt64, suffix: UnsafeRawBufferPointer) {
    self.sequence = sequence
    self.generation = generation
    digestBytes = suffix.count
    var bytes = digest.mutableSpan
    bytes.withUnsafeMutableBytes { $0.copyMemory(from: suffix) }
  }

  /// The revision's ID.
  public var revisionID: RevisionID {
    let suffix = digest.span.withUnsafeBytes {
      StoredSuffix(bytes: UnsafeRawBufferPointer(rebasing: $0[..<digestBytes]), isText: false).text
    }
    return RevisionID(generation: generation, suffix: suffix)
  }
}
