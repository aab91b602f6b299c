import Documents
import Fleece

// Runs with parameters of any type that has a JSON form: dates, blobs, binary data, integers above `Int64.max`,
// arrays and dictionaries of them. Literals alone, such as `["type": "hotel"]`, are JSON values.

extension Dictionary where Key == String, Value == any JSONConvertible {
  /// The parameters as JSON values.
  package var jsonValues: [String: JSONValue] { mapValues(\.jsonValue) }
}

extension Query {
  /// Runs the query with parameters of any type that has a JSON form.
  ///
  /// ```swift
  /// let since = try travel.query("SELECT name FROM _ WHERE opened >= $since AND stars >= $stars")
  /// let hotels = try since.run(["since": Date.now, "stars": 4])
  /// ```
  ///
  /// See `run(_:cancellation:)` for parameters that are JSON values.
  @_disfavoredOverload
  public func run(
    _ parameters: [String: any JSONConvertible], cancellation: QueryCancellation = QueryCancellation()
  ) throws -> QueryResults {
    try run(parameters.jsonValues, cancellation: cancellation)
  }

  /// Runs the query with parameters of any type that has a JSON form, and decodes each row.
  @_disfavoredOverload
  public func run<Row: Decodable>(
    as type: Row.Type, _ parameters: [String: any JSONConvertible],
    cancellation: QueryCancellation = QueryCancellation()
  ) throws -> [Row] {
    try run(as: type, parameters.jsonValues, cancellation: cancellation)
  }

  /// Runs the query with parameters of any type that has a JSON form, and calls `body` with each row until it
  /// returns false.
  @_disfavoredOverload
  public func forEach(
    _ parameters: [String: any JSONConvertible], cancellation: QueryCancellation = QueryCancellation(),
    _ body: (QueryRow) throws -> Bool
  ) throws {
    try forEach(parameters.jsonValues, cancellation: cancellation, body)
  }

  /// Explains how the query finds its rows, with parameters of any type that has a JSON form.
  @_disfavoredOverload
  public func explain(
    analyze: Bool = false, _ parameters: [String: any JSONConvertible],
    cancellation: QueryCancellation = QueryCancellation()
  ) throws -> QueryExplanation {
    try explain(analyze: analyze, parameters.jsonValues, cancellation: cancellation)
  }

  // MARK: Asynchronous

  /// Runs the query with parameters of any type that has a JSON form, on one of the database's threads for
  /// asynchronous reads.
  @_disfavoredOverload
  public func run(
    _ parameters: [String: any JSONConvertible], cancellation: QueryCancellation = QueryCancellation()
  ) async throws -> QueryResults {
    try await run(parameters.jsonValues, cancellation: cancellation)
  }

  /// Runs the query with parameters of any type that has a JSON form, and decodes each row, on one of the
  /// database's threads for asynchronous reads.
  @_disfavoredOverload
  public func run<Row: Decodable & Sendable>(
    as type: Row.Type, _ parameters: [String: any JSONConvertible],
    cancellation: QueryCancellation = QueryCancellation()
  ) async throws -> [Row] {
    try await run(as: type, parameters.jsonValues, cancellation: cancellation)
  }

  /// Runs the query with parameters of any type that has a JSON form, on one of the database's threads for
  /// asynchronous reads, and calls `body` there with each row until it returns false.
  @_disfavoredOverload
  public func forEach(
    _ parameters: [String: any JSONConvertible], cancellation: QueryCancellation = QueryCancellation(),
    _ body: @escaping @Sendable (QueryRow) throws -> Bool
  ) async throws {
    try await forEach(parameters.jsonValues, cancellation: cancellation, body)
  }

  /// Explains how the query finds its rows, with parameters of any type that has a JSON form, on one of the
  /// database's threads for asynchronous reads.
  @_disfavoredOverload
  public func explain(
    analyze: Bool = false, _ parameters: [String: any JSONConvertible],
    cancellation: QueryCancellation = QueryCancellation()
  ) async throws -> QueryExplanation {
    try await explain(analyze: analyze, parameters.jsonValues, cancellation: cancellation)
  }
}
