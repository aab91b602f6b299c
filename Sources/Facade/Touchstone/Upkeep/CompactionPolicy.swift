/// When a database compacts itself in the background.
///
/// The database considers it every 4,096 changes and every 1,024 removed bodies (`FinishedTransaction`). Bodies of
/// replaced revisions are dropped in small transactions between those of other writers. Later writes reuse
/// their pages. Making the file smaller (`freePages`) blocks writers while the used pages are copied. It
/// therefore happens only if it frees enough, copies not too much, and nothing was written for a while
/// (docs/documents.md).
public struct CompactionPolicy: Sendable, Hashable {
  /// Bodies of replaced revisions are dropped if they are more than this share of all bodies: above 0, below
  /// 1. The total is the number of documents, tombstones and replaced bodies. Nil: never.
  public var replacedBodies: Double?
  /// Revisions saved in this many of the latest sequences keep their bodies even if they were replaced. A
  /// merge needs the body of the common ancestor.
  public var keepsLatestSequences: Int
  /// The file is made smaller if its unused pages are more than this share: above 0, below 1. Nil: never.
  public var freePages: Double?
  /// The file isn't made smaller below this number of unused bytes.
  public var minimumFreeBytes: Int
  /// The file isn't made smaller if more than this number of bytes is in use. They have to be copied while
  /// writers wait.
  public var maximumCopiedBytes: Int
  /// The file isn't made smaller until nothing was written for this number of seconds.
  public var quietSeconds: Double
  /// Whether blobs that no revision has are removed. It happens when the number of bodies removed since the
  /// last time is at least an eighth of those that are left.
  public var collectsBlobs: Bool

  /// Makes a policy. See the properties.
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

  /// The default policy. It drops replaced bodies older than the latest 10,000 sequences if they outnumber
  /// the documents. It makes the file smaller if more than half of it, and at least 16 MiB, is unused, and at
  /// most 256 MiB are in use. It removes unused blobs.
  public static let standard = CompactionPolicy()
  /// A policy that does nothing.
  public static let off = CompactionPolicy(
    replacedBodies: nil, freePages: nil, collectsBlobs: false)
}
