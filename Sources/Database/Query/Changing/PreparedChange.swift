import Storage

/// A statement that changes documents, ready to be carried out.
package struct PreparedChange: Sendable {
  package let plan: ChangePlan
  /// The query that finds what to change.
  package let selection: Query
  /// The query for the results of RETURNING.
  package let returning: Query?

  /// Prepares a statement from its text.
  ///
  /// - Throws: a `QueryError` with the mistake and its position. `invalidUse` for a query that changes nothing.
  package init(_ text: String, in source: QuerySource, options: Query.Options) throws {
    guard case .change(let statement) = try QueryStatement(parsing: text) else {
      throw QueryError(
        .invalidUse, "this statement changes no document; run it as a query", at: SourcePosition(0), in: text)
    }
    plan = try ChangePlan(statement, text: text)
    selection = try Query(plan.selection, text: text, in: source, options: options)
    returning = try plan.returning.map { try Query($0, text: text, in: source, options: options) }
  }
}
