/// What a request takes of a server. Each kind has threads of its own, so that requests of one kind never wait for those of another.
package enum HTTPWorkload: Sendable, CaseIterable {
  /// It reads little: one document, or what is known of a database.
  case reading
  /// It writes little: one document.
  case writing
  /// It reads or writes much, mostly as fast as files and the client allow.
  case long
  /// It may compute for as long as it is let: queries, functions of design documents.
  case computing
  /// It waits until an index is up to date, which is made to its end, whoever waits for it.
  case indexing
}
