import Documents
import FullText
import Query

/// An index of a database.
public struct DatabaseIndex: Sendable, Hashable {
  /// Its name, unique in the database.
  public let name: String
  /// What kind of index it is: `value` or `fulltext`.
  public let kind: String
  /// A readable description of what it indexes.
  public let text: String
  /// The definition of a value index; nil for other kinds.
  public let definition: ValueIndexDefinition?
  /// The definition of a full-text index; nil for other kinds.
  public let fullText: FullTextIndexDefinition?

  init(_ record: IndexRecord) {
    name = record.name
    kind = record.kind
    definition = record.kind == ValueIndexKind.name ? try? ValueIndexDefinition(record) : nil
    fullText = record.kind == FullTextIndexKind.name ? try? FullTextIndexDefinition(record) : nil
    text = definition?.text ?? fullText?.text ?? record.kind
  }
}

extension Database {
  // MARK: Indexes

  /// Makes an index on the values of expressions. Queries use it to find documents without reading all of
  /// them.
  ///
  /// ```swift
  /// try travel.createIndex("byType", on: ["type", "LOWER(name)"], where: "type IN ('hotel', 'airport')")
  /// ```
  ///
  /// Replaces an index of the same name with another definition. If the same index exists already, nothing
  /// changes and the result is false. Otherwise all documents are indexed in one transaction. Throws a
  /// `QueryError` for expressions that can't be parsed or indexed.
  @discardableResult
  public func createIndex(_ name: String, on expressions: [String], where condition: String? = nil) throws
    -> Bool
  {
    try createIndex(name, ValueIndexDefinition(expressions, where: condition))
  }

  /// Makes an index with an entry for each item of an array, for UNNEST and ANY.
  ///
  /// ```swift
  /// try travel.createIndex("byRating", unnest: "reviews AS r", on: ["r.ratings.Overall"])
  /// ```
  ///
  /// Without expressions, the items themselves are indexed.
  @discardableResult
  public func createIndex(
    _ name: String, unnest array: String, on expressions: [String] = [], where condition: String? = nil
  ) throws -> Bool {
    try createIndex(name, ValueIndexDefinition(expressions, where: condition, unnest: array))
  }

  /// Makes a value index from a definition.
  @discardableResult
  public func createIndex(_ name: String, _ definition: ValueIndexDefinition) throws -> Bool {
    try definition.check()
    return try writable.createIndex(name, kind: ValueIndexKind.name, definition: definition.encoded)
  }

  /// Makes a full-text index on the words in expressions, for MATCH.
  ///
  /// ```swift
  /// try travel.createFullTextIndex(
  ///   "text", on: ["name", "description"], options: .init(language: .english, ignoresAccents: true))
  /// let found = try travel.query("SELECT name FROM _ WHERE MATCH(text, 'castle') ORDER BY RANK(text) DESC LIMIT 10")
  /// ```
  ///
  /// Each expression is a column. Its name in queries is the expression as written. `weights` has one number
  /// per column, which RANK uses; the default is 1 each. Replaces an index of the same name with another
  /// definition, of any kind. If the same index exists already, nothing changes and the result is false.
  @discardableResult
  public func createFullTextIndex(
    _ name: String, on expressions: [String], where condition: String? = nil,
    options: TextAnalysisOptions = TextAnalysisOptions(), weights: [Double]? = nil
  ) throws -> Bool {
    try createFullTextIndex(
      name, FullTextIndexDefinition(expressions, where: condition, options: options, weights: weights))
  }

  /// Makes a full-text index from a definition.
  @discardableResult
  public func createFullTextIndex(_ name: String, _ definition: FullTextIndexDefinition) throws -> Bool {
    try definition.check()
    return try writable.createIndex(name, kind: FullTextIndexKind.name, definition: definition.encoded)
  }

  /// All indexes, sorted by name.
  public var indexes: [DatabaseIndex] { get throws { try store.indexes.map(DatabaseIndex.init) } }

  /// Removes an index. Returns false if there is none of that name.
  @discardableResult
  public func deleteIndex(_ name: String) throws -> Bool { try writable.deleteIndex(name) }
}
