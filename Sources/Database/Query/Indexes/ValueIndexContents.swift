import Documents
import Storage

/// The entries that an array index has.
///
/// ANY and EVERY search the items of an array and the member values of an object. UNNEST searches arrays
/// only. So an array index also has entries for the member values of objects. Older indexes don't have them,
/// and have no mark in their statistics keyspace. They serve UNNEST only, and are rebuilt when the database
/// is opened for writing.
///
///     index.….statistics   "o" → nothing     the values of objects have entries
enum ValueIndexContents {
  private static let key = Array("o".utf8)

  /// Whether the member values of objects have entries. False for an index that isn't an array index.
  static func hasObjects(
    _ index: IndexRecord, _ definition: ValueIndexDefinition, in transaction: any ReadTransaction
  ) throws -> Bool {
    guard definition.unnest != nil,
      let keyspace = try transaction.keyspace(named: index.keyspaceName + ".statistics")
    else { return false }
    return try transaction.contains(key.span.bytes, in: keyspace)
  }

  /// Marks the index: the member values of objects have entries.
  static func note(_ statistics: Keyspace, _ transaction: any WriteTransaction) throws {
    try transaction.put(key, [], in: statistics)
  }
}
