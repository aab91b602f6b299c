import Documents
import FullText
import Storage

/// A full-text index as the planner knows it. Any thread may use it.
final class FullTextIndexInfo: Sendable {
  let record: IndexRecord
  let definition: FullTextIndexDefinition
  let columns: [String]

  private struct Pool: @unchecked Sendable {
    var analyzers: [TextAnalyzer] = []
  }

  /// Analyzers that aren't in use. Creating one is expensive.
  private let pool = Lock(Pool())

  init(_ record: IndexRecord) throws {
    self.record = record
    definition = try FullTextIndexDefinition(record)
    columns = definition.columns
  }

  /// Runs `body` with an analyzer for the index's options. Only this thread uses the analyzer meanwhile.
  func withAnalyzer<Result>(_ body: (TextAnalyzer) throws -> Result) throws -> Result {
    let known = pool.withLock { Borrowed(analyzer: $0.analyzers.popLast()) }.analyzer
    let analyzer = try known ?? TextAnalyzer(definition.options)
    let returned = Borrowed(analyzer: analyzer)
    defer {
      pool.withLock { pool in
        if pool.analyzers.count < 4, let analyzer = returned.analyzer { pool.analyzers.append(analyzer) }
      }
    }
    return try body(analyzer)
  }

  private struct Borrowed: @unchecked Sendable {
    let analyzer: TextAnalyzer?
  }

  /// Parses the text of a MATCH.
  ///
  /// - Throws: a `QueryError` with the column of the mistake in the text.
  func query(_ text: String, _ reference: IndexReference, in queryText: String?) throws -> MatchQuery {
    do {
      return try withAnalyzer { try MatchQuery(parsing: text, columns: columns, analyzer: $0) }
    } catch let error as MatchError {
      throw QueryError(
        .syntax, "MATCH(\(record.name), …): \(error)", at: reference.position, in: queryText)
    }
  }

  func reader(in transaction: any ReadTransaction) throws -> InvertedIndexReader {
    try InvertedIndexReader(named: record.keyspaceName, in: transaction)
  }
}
