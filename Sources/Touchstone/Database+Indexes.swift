import Documents
import Query

@_exported import struct Query.QueryError
@_exported import struct Query.ValueIndexDefinition

/// An index of a database.
public struct DatabaseIndex: Sendable, Hashable {
  /// Its name, unique in the database.
  public let name: String
  /// What kind of index it is: `value`.
  public let kind: String
  /// What it holds, as text for people.
  public let text: String
  /// What it holds; nil for other kinds.
  public let definition: ValueIndexDefinition?

  init(_ record: IndexRecord) {
    name = record.name
    kind = record.kind
    definition = record.kind == ValueIndexKind.name ? try? ValueIndexDefinition(record) : nil
    text = definition?.text ?? record.kind
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
    return try store.createIndex(name, kind: ValueIndexKind.name, definition: definition.encoded)
  }

  /// All indexes, by name.
  public var indexes: [DatabaseIndex] { get throws { try store.indexes.map(DatabaseIndex.init) } }

  /// Removes an index. False when there is none of that name.
  @discardableResult
  public func deleteIndex(_ name: String) throws -> Bool { try store.deleteIndex(name) }
}
