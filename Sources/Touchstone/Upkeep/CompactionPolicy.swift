/// When a database is compacted by itself, in the background.
///
/// It is looked at after some thousands of changes, purges and expirations included. Dropping the bodies of replaced
/// revisions goes in small transactions, between those of writers; their pages are used again for what is written
/// later. Making the file smaller (`freePages`) keeps writers waiting while what is in use is copied. So it is done only
/// when that is less than what it gives back, not too much, and nothing was written for a while (docs/documents.md).
public struct CompactionPolicy: Sendable, Hashable {
  /// Bodies of replaced revisions are dropped when they are more than this share of all documents and bodies: above
  /// 0, below 1. Nil: never.
  public var replacedBodies: Double?
  /// Revisions that were saved in so many of the latest sequences keep their bodies all the same: a common ancestor's
  /// body is what a merge needs.
  public var keepsLatestSequences: Int
  /// The file is made smaller when its unused pages are more than this share: above 0, below 1. Nil: never.
  public var freePages: Double?
  /// Below so many bytes of unused pages it isn't.
  public var minimumFreeBytes: Int
  /// Nor when more bytes than these are in use: they are copied, and writers wait for it.
  public var maximumCopiedBytes: Int
  /// And not before nothing was written for so many seconds.
  public var quietSeconds: Double
  /// Blobs that no revision names are removed when enough bodies went for that: an eighth of those that are left.
  public var collectsBlobs: Bool

  /// A policy; see the properties.
  public init(
    replacedBodies: Double? = 0.5, keepsLatestSequences: Int = 10_000, freePages: Double? = 0.5,
    minimumFreeBytes: Int = 16 << 20, maximumCopiedBytes: Int = 256 << 20, quietSeconds: Double = 2,
    collectsBlobs: Bool = true
  ) {
    self.replacedBodies = replacedBodies
    self.keepsLatestSequences = max(0, keepsLatestSequences)
    self.freePages = freePages
    self.minimumFreeBytes = minimumFreeBytes
    self.maximumCopiedBytes = maximumCopiedBytes
    self.quietSeconds = quietSeconds
    self.collectsBlobs = collectsBlobs
  }

  /// Drops replaced bodies older than the latest 10,000 sequences when they outnumber the documents, makes the file smaller
  /// when more than half of it, and 16 MiB, are unused and at most 256 MiB are in use, and collects blobs.
  public static let standard = CompactionPolicy()
  /// Nothing happens by itself.
  public static let off = CompactionPolicy(
    replacedBodies: nil, freePages: nil, collectsBlobs: false)
}
