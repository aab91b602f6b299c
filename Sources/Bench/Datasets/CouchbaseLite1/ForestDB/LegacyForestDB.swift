/// How a database in ForestDB storage is written. Its contents are those of a `LegacyDatabase`.
package struct LegacyForestDB: Sendable {
  /// The version of the format: 1 for Couchbase Lite 1.2, 2 for 1.3 and 1.4.
  package var version = 1
  /// The number of saved revisions in a commit.
  package var commit = 40
  /// The number of commits after which the log is flushed into the trie; 0 for never.
  package var flush = 0
  /// Whether the last commit is flushed.
  package var endsFlushed = false
  /// How often blocks are used again. Version 2, with flushes. Bodies of replaced revisions are lost, as in a
  /// compacted database.
  package var reuses = 0
  /// Whether transactions are left unfinished: one that was aborted, and one at the end whose writer was killed.
  package var hasUnfinished = true
  /// How a compaction ended.
  package var compaction = Compaction.none

  /// How a compaction ended.
  package enum Compaction: String, Sendable, CaseIterable {
    /// There was none.
    case none
    /// It was interrupted: file 0 counts, file 1 is a part.
    case interrupted
    /// It was complete, but the meta file and the old file weren't brought up to date: file 1 counts.
    case unnoticed
  }

  /// A small file of version 1.
  package init() {}
}
