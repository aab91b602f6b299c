import Views

extension DatabaseCall {
  /// The answer to what concerns single documents and lists of them: `DOC`, `DOC/ATTACHMENT`, `_local/…`, `_bulk_docs`, `_bulk_get`,
  /// `_revs_diff`, `_missing_revs`, `_purge`, and `POST` to the database. Nil for anything else.
  func documentAnswer() throws -> APIAnswer? { nil }
}
