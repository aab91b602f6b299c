import Documents
import FullText
import Storage

extension PlanningContext {
  /// Reads the full-text indexes that a query names, and estimates how many documents its MATCHes find.
  ///
  /// - Throws: `index` for an index that doesn't exist or is of another kind, `syntax` for an invalid text of
  ///   MATCH, with its column, and the errors of `cancellation`.
  mutating func addFullText(
    of query: ResolvedQuery, _ snapshot: DocumentSnapshot, text: String?, _ cancellation: QueryCancellation,
    _ budget: QueryMemoryBudget
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
          // A run may never reach this MATCH. If it does, the run reports the error.
          estimate = Double(documentCount)
        }
      }
      matchEstimates[match.expression] = estimate
    }
    for subquery in query.subqueries.flatMap(\.queries) {
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
        .index, "the index \"\(reference.name)\" isn't a full-text index, but MATCH needs one",
        at: reference.position, in: text)
    }
    return try FullTextIndexInfo(record)
  }
}

extension ResolvedQuery {
  /// Whether the query or one of its subqueries has a MATCH.
  var usesFullText: Bool {
    !matches.isEmpty || subqueries.contains { $0.queries.contains(where: \.usesFullText) }
  }
}
