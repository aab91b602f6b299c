import CPostgres

/// A statement that connections prepare once. docs/storage-postgres.md lists them all.
///
/// The words of SQL are those that PostgreSQL and the servers that speak its wire share.
enum Statement: String, CaseIterable {
  // Reading
  case state, keyspaces, count, get, getMany
  case ascending, descending, ascendingKeys, descendingKeys
  case isKeyspace
  // Writing
  case lock, upsert, upsertCounted, delete, deleteRange, changeCount
  case addKeyspace, removeKeyspace, commit, noteCommit, notify, notedCommit, forgetOldWriters, forgetWriter
  // Beside the entries (Statement+Home.swift)
  case blobNames, blobFiles, blob, blobPiece, isBlob
  case addBlob, addPiece, endBlob, freeName, nameBlob, markBlob, unclaimBlob, dropBlob, removeName, dropUnused

  static let byteaType: Oid = 17
  private static let smallintType: Oid = 21
  static let integerType: Oid = 23
  static let bigintType: Oid = 20
  static let textType: Oid = 25
  private static let byteaArrayType: Oid = 1_001

  /// Values of at most this many bytes come with the scans. Larger ones are read when they are asked for.
  static let inlineBytes = 65_536

  /// The values of small entries, and NULL for large ones.
  private static let inlineValue = "CASE WHEN octet_length(value) <= \(inlineBytes) THEN value END"

  private static func page(_ columns: String, _ order: String, _ s: String) -> String {
    """
    SELECT \(columns) FROM \(s).entries WHERE keyspace = $1 AND key >= $2 AND key < $3 \
    ORDER BY keyspace\(order), key\(order) LIMIT $4
    """
  }

  /// The text. `s` is the quoted name of the schema.
  func sql(_ s: String) -> String {
    switch self {
    case .state: "SELECT commits, catalog, last_keyspace FROM \(s).touchstone WHERE id = 1"
    case .keyspaces: "SELECT number, name, shape FROM \(s).keyspaces"
    case .count: "SELECT entries FROM \(s).keyspaces WHERE number = $1"
    case .isKeyspace: "SELECT 1 FROM \(s).keyspaces WHERE number = $1"
    case .get: "SELECT value FROM \(s).entries WHERE keyspace = $1 AND key = $2"
    case .getMany:
      "SELECT key, \(Self.inlineValue) FROM \(s).entries WHERE keyspace = $1 AND key = ANY ($2)"
    case .ascending: Self.page("key, \(Self.inlineValue)", "", s)
    case .descending: Self.page("key, \(Self.inlineValue)", " DESC", s)
    case .ascendingKeys: Self.page("key", "", s)
    case .descendingKeys: Self.page("key", " DESC", s)
    case .lock:
      """
      SELECT commits, catalog, last_keyspace, CASE WHEN listened > now() THEN 1 ELSE 0 END \
      FROM \(s).touchstone WHERE id = 1 FOR UPDATE
      """
    case .notify: "SELECT pg_notify($1, '')"
    case .upsert:
      """
      INSERT INTO \(s).entries (keyspace, key, value) \
      SELECT $1, k, v FROM unnest($2, $3) AS new (k, v) \
      ON CONFLICT (keyspace, key) DO UPDATE SET value = excluded.value
      """
    case .upsertCounted:
      """
      WITH old AS (SELECT count(*) AS n FROM \(s).entries WHERE keyspace = $1 AND key = ANY ($2)), \
      put AS (INSERT INTO \(s).entries (keyspace, key, value) \
      SELECT $1, k, v FROM unnest($2, $3) AS new (k, v) \
      ON CONFLICT (keyspace, key) DO UPDATE SET value = excluded.value RETURNING 1) \
      UPDATE \(s).keyspaces SET entries = entries + (SELECT count(*) FROM put) - (SELECT n FROM old) \
      WHERE number = $1
      """
    case .delete:
      """
      WITH gone AS (DELETE FROM \(s).entries WHERE keyspace = $1 AND key = ANY ($2) RETURNING 1) \
      UPDATE \(s).keyspaces SET entries = entries - (SELECT count(*) FROM gone) WHERE number = $1
      """
    case .deleteRange:
      """
      WITH gone AS (DELETE FROM \(s).entries WHERE keyspace = $1 AND key >= $2 AND key < $3 RETURNING 1), \
      less AS (UPDATE \(s).keyspaces SET entries = entries - (SELECT count(*) FROM gone) \
      WHERE number = $1 RETURNING 1) \
      SELECT count(*) FROM gone
      """
    case .changeCount: "UPDATE \(s).keyspaces SET entries = entries + $2 WHERE number = $1"
    case .addKeyspace:
      "INSERT INTO \(s).keyspaces (number, name, shape, entries) VALUES ($1, $2, $3, 0)"
    case .removeKeyspace:
      """
      WITH gone AS (DELETE FROM \(s).entries WHERE keyspace = $1) \
      DELETE FROM \(s).keyspaces WHERE number = $1
      """
    case .commit:
      "UPDATE \(s).touchstone SET commits = $1, catalog = $2, last_keyspace = $3 WHERE id = 1"
    case .noteCommit:
      """
      INSERT INTO \(s).writers (id, commits, seen) VALUES ($1, $2, now()) \
      ON CONFLICT (id) DO UPDATE SET commits = excluded.commits, seen = excluded.seen
      """
    case .notedCommit: "SELECT commits FROM \(s).writers WHERE id = $1"
    case .forgetOldWriters: "DELETE FROM \(s).writers WHERE seen < now() - interval '30 days'"
    case .forgetWriter: "DELETE FROM \(s).writers WHERE id = $1"
    default: homeSQL(s)
    }
  }

  /// The types of the parameters.
  var types: [Oid] {
    let (number, key, keys) = (Self.integerType, Self.byteaType, Self.byteaArrayType)
    return switch self {
    case .state, .keyspaces, .lock, .forgetOldWriters: []
    case .notify: [Self.textType]
    case .count, .isKeyspace, .removeKeyspace: [number]
    case .get: [number, key]
    case .getMany, .delete: [number, keys]
    case .ascending, .descending, .ascendingKeys, .descendingKeys: [number, key, key, Self.bigintType]
    case .upsert, .upsertCounted: [number, keys, keys]
    case .deleteRange: [number, key, key]
    case .changeCount: [number, Self.bigintType]
    case .addKeyspace: [number, Self.textType, Self.smallintType]
    case .commit: [Self.bigintType, Self.bigintType, number]
    case .noteCommit: [key, Self.bigintType]
    case .notedCommit, .forgetWriter: [key]
    default: homeTypes
    }
  }

  /// The length of an integer parameter, in bytes.
  static func width(_ type: Oid) -> Int {
    switch type {
    case smallintType: 2
    case integerType: 4
    default: 8
    }
  }
}

/// What is sent to a server: a prepared statement with its parameters, a text without any, or the rows of a `COPY`.
enum Request {
  case copy(CopiedRows)
  case prepared(Statement, [Parameter])
  case text(String)
}
