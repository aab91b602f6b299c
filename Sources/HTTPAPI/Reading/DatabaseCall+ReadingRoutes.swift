import Views

extension DatabaseCall {
  /// The answer to what reads many documents: `_all_docs`, `_design_docs`, `_local_docs`, `_changes`, views, `_query`. Nil for anything
  /// else.
  func readingAnswer() throws -> APIAnswer? { nil }
}
