import Fleece
import Query

extension Database {
  /// Prepares a N1QL query, which can be run any number of times (docs/query.md).
  ///
  /// ```swift
  /// let hotels = try travel.query("SELECT name FROM _ WHERE type = $type ORDER BY name LIMIT 10")
  /// for row in try hotels.run(["type": "hotel"]) { print(row["name"].string ?? "-") }
  /// ```
  ///
  /// Without `options`, it has those of this open (`DatabaseOptions.queryOptions`).
  ///
  /// - Throws: a `QueryError` with the fault in the text, its position, and what was expected.
  public func query(_ text: String, options: Query.Options? = nil) throws -> Query {
    try Query(text, in: querySource, options: options ?? queryOptions)
  }

  /// Prepares a query that was made with the query builder.
  public func query(_ statement: SelectStatement, options: Query.Options? = nil) throws -> Query {
    try Query(statement, in: querySource, options: options ?? queryOptions)
  }

  /// What a statement stands for: for EXECUTE the statement that PREPARE has named, and the values of its parameters.
  package func expanded(
    _ text: String, _ parameters: [String: JSONValue] = [:], options: Query.Options? = nil
  ) throws -> GivenStatement {
    try querySource.expanded(GivenStatement(text, parameters), options ?? queryOptions)
  }

  /// Whether a text is a statement that changes documents or indexes, or EXECUTE of one.
  package func changes(_ text: String, options: Query.Options? = nil) throws -> Bool {
    try expanded(text, options: options).changes
  }

  /// The database as a source of queries. A query keeps it open.
  var querySource: QuerySource {
    QuerySource(
      name: name, knowledge: open.planning, readers: open.asyncReaders, log: open.queryLog,
      slowThreshold: slowQueryThreshold
    ) { [self] body in try read(body) }
  }
}
