import Query

extension Database {
  /// Prepares a query of N1QL, to be run any number of times (docs/query.md).
  ///
  /// ```swift
  /// let hotels = try travel.query("SELECT name FROM _ WHERE type = $type ORDER BY name LIMIT 10")
  /// for row in try hotels.run(["type": "hotel"]) { print(row["name"].string ?? "-") }
  /// ```
  ///
  /// - Throws: a `QueryError` that says what is wrong with the text, where, and what was expected.
  public func query(_ text: String, options: Query.Options = Query.Options()) throws -> Query {
    try Query(text, in: querySource, options: options)
  }

  /// Prepares a query that was built.
  public func query(_ statement: SelectStatement, options: Query.Options = Query.Options()) throws -> Query {
    try Query(statement, in: querySource, options: options)
  }

  /// The database as queries see it. They keep it open.
  var querySource: QuerySource {
    QuerySource(name: name, knowledge: open.planning) { [self] body in try read(body) }
  }
}
