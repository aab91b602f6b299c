import Documents
import FullText
import Query

@_exported import struct Query.QueryError
@_exported import struct Query.ValueIndexDefinition

/// An index of a database.
public struct DatabaseIndex: Sendable, Hashable {
  /// Its name, unique in the database.
  public let name: String
  /// What kind of index it is: `value` or `fulltext`.
  public let kind: String
  /// What it holds, as text for people.
  public let text: String
  /// What a value index holds; nil for other kinds.
  public let definition: ValueIndexDefinition?
  /// What a full-text index holds; nil for other kinds.
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

  /// Makes an index on the values of expressions, with which queries find documents instead of looking at all.
  ///
  /// ```swift
  /// try travel.createIndex("byType", on: ["type", "LOWER(name)"], where: "type IN ('hotel', 'airport')")
  /// ```
  ///
  /// An index of that name with another definition is replaced; when there is just this one, nothing is done and the
  /// result is false. All documents are looked at in one transaction. Throws a `QueryError` for expressions that
  /// can't be read or indexed.
  @discardableResult
  public func createIndex(_ name: String, on expressions: [String], where condition: String? = nil) throws
    -> Bool
  {
    try createIndex(name, ValueIndexDefinition(expressions, where: condition))
  }

  /// Makes an index with an entry for each item of an array, for UNNEST and ANY:
  ///
  /// ```swift
  /// try travel.createIndex("byRating", unnest: "reviews AS r", on: ["r.ratings.Overall"])
  /// ```
  ///
  /// Without expressions the items themselves are indexed.
  @discardableResult
  public func createIndex(
    _ name: String, unnest array: String, on expressions: [String] = [], where condition: String? = nil
  ) throws -> Bool {
    try createIndex(name, ValueIndexDefinition(expressions, where: condition, unnest: array))
  }

  /// Makes an index of a definition.
  @discardableResult
  public func createIndex(_ name: String, _ definition: ValueIndexDefinition) throws -> Bool {
    try definition.check()
    return try writable.createIndex(name, kind: ValueIndexKind.name, definition: definition.encoded)
  }

  /// Makes an index on the words in expressions, for MATCH:
  ///
  /// ```swift
  /// try travel.createFullTextIndex(
  ///   "text", on: ["name", "description"], options: .init(language: .english, ignoresAccents: true))
  /// let found = try travel.query("SELECT name FROM _ WHERE MATCH(text, 'castle') ORDER BY RANK(text) DESC LIMIT 10")
  /// ```
  ///
  /// Each expression is a column, whose name in queries is the expression as written; `weights` say how much each
  /// counts for RANK, 1 if none are given. An index of that name with another definition, of whatever kind, is
  /// replaced; when there is just this one, nothing is done and the result is false.
  @discardableResult
  public func createFullTextIndex(
    _ name: String, on expressions: [String], where condition: String? = nil,
    options: TextAnalysisOptions = TextAnalysisOptions(), weights: [Double]? = nil
  ) throws -> Bool {
    try createFullTextIndex(
      name, FullTextIndexDefinition(expressions, where: condition, options: options, weights: weights))
  }

  /// Makes a full-text index of a definition.
  @discardableResult
  public func createFullTextIndex(_ name: String, _ definition: FullTextIndexDefinition) throws -> Bool {
    try definition.check()
    return try writable.createIndex(name, kind: FullTextIndexKind.name, definition: definition.encoded)
  }

  /// All indexes, by name.
  public var indexes: [DatabaseIndex] { get throws { try store.indexes.map(DatabaseIndex.init) } }

  /// Removes an index. False when there is none of that name.
  @discardableResult
  public func deleteIndex(_ name: String) throws -> Bool { try writable.deleteIndex(name) }
}
