import Documents
import FullText
import Storage

extension PlanningContext {
  /// Learns of the full-text indexes that a query names.
  ///
  /// - Throws: `index` for one that isn't there, `syntax` for a text that can't be parsed, with its column, and what
  ///   `cancellation` throws.
  mutating func addFullText(
    of query: ResolvedQuery, _ snapshot: DocumentSnapshot, text: String?, _ cancellation: QueryCancellation,
    _ budget: MemoryBudget
  ) throws {
    for match in query.matches {
      let info = try fullTextIndex(match.index, snapshot, text)
      fullText[match.index.name] = info
      var estimate = Double(documentCount) * 0.01
      if case .literal(.string(let pattern)) = match.text {
        let parsed = try info.query(pattern.string, match.index, in: text)
        let reader = try info.reader(in: try snapshot.storage, cancellation, budget)
        do {
          estimate = Double(try MatchSearch(parsed, in: reader).estimate)
        } catch let error as QueryError where error.code == .memoryLimit {
          // A run may never get to this MATCH; when it does, it says so itself.
          estimate = Double(documentCount)
        }
      }
      matchEstimates[match.expression] = estimate
    }
    for subquery in query.subqueries {
      try addFullText(of: subquery, snapshot, text: text, cancellation, budget)
    }
  }

  private func fullTextIndex(
    _ reference: IndexReference, _ snapshot: DocumentSnapshot, _ text: String?
  ) throws -> FullTextIndexInfo {
    if let known = fullText[reference.name] { return known }
    let records = try snapshot.indexes
    guard let record = records.first(where: { ByteString($0.name) == reference.name }) else {
      let names = records.filter { $0.kind == FullTextIndexKind.name }.map(\.name)
      throw QueryError(
        .index,
        "there is no full-text index \"\(reference.name)\""
          + Suggestions.hint(for: reference.name.string, among: names),
        at: reference.position, in: text)
    }
    guard record.kind == FullTextIndexKind.name else {
      throw QueryError(
        .index, "the index \"\(reference.name)\" is no full-text index, as MATCH needs",
        at: reference.position, in: text)
    }
    return try FullTextIndexInfo(record)
  }
}

extension ResolvedQuery {
  /// Whether it, or a query inside, has a MATCH.
  var usesFullText: Bool { !matches.isEmpty || subqueries.contains { $0.usesFullText } }
}
