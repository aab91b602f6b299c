import Documents
import Storage

/// Which entries an array index has.
///
/// ANY and EVERY look through the items of an array and through the values of an object, UNNEST through arrays only. So an
/// array index has entries for the values of an object, too. Indexes that were made before had none: they have no mark in
/// their keyspace of statistics, serve UNNEST only, and are made anew when the database is opened for writing.
///
///     index.….statistics   "o" → nothing     the values of objects have entries
enum ValueIndexContents {
  private static let key = Array("o".utf8)

  /// Whether the values of objects have entries. False for an index that is of no array.
  static func hasObjects(
    _ index: IndexRecord, _ definition: ValueIndexDefinition, in transaction: any ReadTransaction
  ) throws -> Bool {
    guard definition.unnest != nil,
      let keyspace = try transaction.keyspace(named: index.keyspaceName + ".statistics")
    else { return false }
    return try transaction.contains(key.span.bytes, in: keyspace)
  }

  /// Notes that the values of objects have entries.
  static func note(_ statistics: Keyspace, _ transaction: any WriteTransaction) throws {
    try transaction.put(key, [], in: statistics)
  }
}
