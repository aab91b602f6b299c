/// Top-level names that begin with an underscore and that documents may have. All others are refused in documents that are
/// saved here, unless the revision before, which came from elsewhere, has them.
enum ReservedNames {
  /// Attachments, and what CouchDB writes into documents that describe replications.
  private static let allowed = [
    Attachment.property, "_replication_state", "_replication_state_time", "_replication_state_reason",
    "_replication_id", "_replication_stats",
  ]

  /// Whether documents may have a name.
  static func isAllowed(_ name: some Sequence<UInt8>) -> Bool {
    allowed.contains { name.elementsEqual($0.utf8) }
  }
}
