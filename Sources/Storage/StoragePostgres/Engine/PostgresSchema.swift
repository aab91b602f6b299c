import Storage

/// The tables of a database. docs/storage-postgres.md draws them.
struct PostgresSchema {
  /// The version of the layout.
  static let version = 1

  let connection: Connection
  let location: PostgresLocation

  private var schema: String { location.quotedSchema }

  /// Finds the database, or makes it.
  func open(_ creation: FileCreation, isReadOnly: Bool) throws {
    while true {
      if let version = try storedVersion() {
        guard creation != .createNew || isReadOnly else { throw exists }
        guard version == Self.version else {
          throw StorageError(
            .unsupportedVersion,
            "the schema has the layout \(version), and this release knows the layout \(Self.version)",
            path: location.shown)
        }
        return
      }
      guard creation != .openExisting, !isReadOnly else {
        throw StorageError(.notFound, "the server has no database in this schema", path: location.shown)
      }
      do {
        try create()
        // This process has made it.
        return
      } catch let error as PostgresError where Self.isRace(error) {
        // Another process makes it at the same time.
        connection.sendEnding("ROLLBACK")
        if creation == .createNew { throw exists }
      } catch {
        connection.sendEnding("ROLLBACK")
        throw error
      }
    }
  }

  private var exists: StorageError {
    StorageError(.alreadyExists, "the server has a database in this schema", path: location.shown)
  }

  /// What two processes that make one schema get from each other.
  private static func isRace(_ error: PostgresError) -> Bool {
    ["23505", "42P06", "42P07", "40001", "40P01", "42710"].contains(error.state)
  }

  /// The version of the layout, or nil if there is no database. Throws `notADatabase` if the table isn't the engine's.
  private func storedVersion() throws -> Int? {
    do {
      let answer = try connection.exchange([.text("SELECT version FROM \(schema).touchstone WHERE id = 1")])
      return answer.first.flatMap { $0.count == 1 ? $0.integer(0, 0) : nil }
    } catch let error as PostgresError where error.state == "42P01" || error.state == "3F000" {
      return nil
    } catch let error as PostgresError where error.state == "42703" {
      throw StorageError(
        .notADatabase, "the schema has a table \"touchstone\" of something else", path: location.shown)
    }
  }

  /// Makes the schema and its tables, in one transaction.
  private func create() throws {
    let found = try connection.exchange([
      .text("SELECT 1 FROM information_schema.schemata WHERE schema_name = \(literal(location.schema))")
    ])
    // A role without the right to make schemas gets one that is there.
    let makesSchema = found.first?.count == 0
    _ = try connection.exchange(
      [.text("BEGIN")] + (makesSchema ? [.text("CREATE SCHEMA \(schema)")] : [])
        + Self.tables(schema).map { .text($0) } + [.text("COMMIT")])
  }

  private func literal(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
  }

  static func tables(_ schema: String) -> [String] {
    [
      """
      CREATE TABLE \(schema).touchstone (id integer PRIMARY KEY, version integer NOT NULL, \
      commits bigint NOT NULL, catalog bigint NOT NULL, last_keyspace integer NOT NULL, \
      listened timestamptz)
      """,
      """
      CREATE TABLE \(schema).keyspaces (number integer PRIMARY KEY, name text NOT NULL UNIQUE, \
      shape smallint NOT NULL, entries bigint NOT NULL)
      """,
      """
      CREATE TABLE \(schema).entries (keyspace integer NOT NULL, key bytea NOT NULL, value bytea NOT NULL, \
      PRIMARY KEY (keyspace, key))
      """,
      """
      CREATE TABLE \(schema).writers (id bytea PRIMARY KEY, commits bigint NOT NULL, \
      seen timestamptz NOT NULL)
      """,
      """
      INSERT INTO \(schema).touchstone (id, version, commits, catalog, last_keyspace) \
      VALUES (1, \(version), 0, 0, 0)
      """,
    ]
  }
}
