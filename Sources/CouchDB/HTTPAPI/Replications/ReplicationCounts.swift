import Fleece

/// What a replication has done, over all its runs.
struct ReplicationCounts: Sendable, Equatable {
  /// Revisions that the target was asked about.
  var checked = 0
  /// Those of them that it didn't have.
  var missing = 0
  var read = 0
  var written = 0
  /// Revisions that the target refused.
  var failures = 0
  /// Documents that came in bulk. CouchDB counts those; a source without HTTP has none.
  var bulkDocuments = 0
  var bulkAttempts = 0

  init() {}

  /// Reads those of an entry of a history.
  init(_ entry: JSONValue) {
    func count(_ name: String) -> Int { Int(clamping: max(0, entry[name].int ?? 0)) }
    checked = count("missing_checked")
    missing = count("missing_found")
    read = count("docs_read")
    written = count("docs_written")
    failures = count("doc_write_failures")
    bulkDocuments = count("bulk_get_docs")
    bulkAttempts = count("bulk_get_attempts")
  }

  /// The members of an entry of a history.
  var entry: [(String, JSONValue)] {
    [
      ("missing_checked", JSONValue(checked)), ("missing_found", JSONValue(missing)),
      ("docs_read", JSONValue(read)), ("docs_written", JSONValue(written)),
      ("doc_write_failures", JSONValue(failures)), ("bulk_get_docs", JSONValue(bulkDocuments)),
      ("bulk_get_attempts", JSONValue(bulkAttempts)),
    ]
  }

  /// The members of a state.
  var state: [(String, JSONValue)] {
    [
      ("revisions_checked", JSONValue(checked)), ("missing_revisions_found", JSONValue(missing)),
      ("docs_read", JSONValue(read)), ("docs_written", JSONValue(written)), ("changes_pending", .null),
      ("doc_write_failures", JSONValue(failures)), ("bulk_get_docs", JSONValue(bulkDocuments)),
      ("bulk_get_attempts", JSONValue(bulkAttempts)),
    ]
  }
}
