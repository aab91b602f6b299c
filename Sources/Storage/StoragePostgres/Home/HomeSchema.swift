import Storage

/// The tables of what stands beside the entries. docs/storage-postgres.md draws them.
struct HomeSchema {
  /// The version of the layout.
  static let version = 1
  /// The tables of an engine, and those that blobs are in.
  private static let engineTables = ["touchstone", "keyspaces", "entries", "writers"]
  private static let blobTables = ["blobs", "pieces"]

  let connection: Connection
  let location: PostgresLocation

  private var schema: String { location.quotedSchema }

  // MARK: What is there

  /// What the server has. Throws `unsupportedVersion` and `notADatabase`.
  func state() throws -> ServerHomeState {
    if let found = try stored() { return found }
    guard let name = try foundTable() else { return .missing }
    // Another process may have made the database since.
    if let found = try stored() { return found }
    throw StorageError(
      .notADatabase,
      "the schema has a table \"\(name)\" but no database: it belongs to a program that uses the engine alone, "
        + "or to something else; choose another name", path: location.shown)
  }

  /// What the table of the description says; nil if there is none.
  private func stored() throws -> ServerHomeState? {
    let answer: Answer?
    do {
      answer = try connection.exchange([
        .text("SELECT version, description FROM \(schema).database WHERE id = 1")
      ]).first
    } catch let error as PostgresError where error.state == "42P01" || error.state == "3F000" {
      return nil
    } catch let error as PostgresError where error.state == "42703" {
      throw StorageError(
        .notADatabase, "the schema has a table \"database\" of something else", path: location.shown)
    }
    guard let answer, answer.count == 1 else {
      throw StorageError(
        .damaged, "the table \"database\" has \(answer?.count ?? 0) rows instead of one", path: location.shown
      )
    }
    let version = answer.integer(0, 0)
    guard version == Self.version else {
      throw StorageError(
        .unsupportedVersion,
        "the schema has version \(version) of the tables of a database, and this release knows version \(Self.version)",
        path: location.shown)
    }
    return answer.isNull(0, 1) ? .unfinished : .complete(answer.text(0, 1))
  }

  /// The name of a table that the schema has and that a database would have.
  private func foundTable() throws -> String? {
    let names = (Self.engineTables + Self.blobTables).map { "'\($0)'" }.joined(separator: ", ")
    let found = try connection.exchange([
      .text(
        """
        SELECT table_name::text FROM information_schema.tables \
        WHERE table_schema = \(literal(location.schema)) AND table_name IN (\(names))
        """)
    ])
    return found.first.flatMap { $0.count > 0 ? $0.text(0, 0) : nil }
  }

  // MARK: Making and removing

  /// Makes the tables of an unfinished database, or empties those of one. In one transaction.
  func begin(_ state: ServerHomeState) throws {
    var texts = ["BEGIN"]
    if state == .missing {
      let found = try connection.exchange([
        .text("SELECT 1 FROM information_schema.schemata WHERE schema_name = \(literal(location.schema))")
      ])
      // A role without the right to make schemas gets one that is there.
      let makesSchema = found.first?.count == 0
      if makesSchema { texts.append("CREATE SCHEMA \(schema)") }
      texts.append(
        """
        CREATE TABLE \(schema).database (id integer PRIMARY KEY, version integer NOT NULL, \
        makes_schema boolean NOT NULL, description text)
        """)
      texts.append(
        "INSERT INTO \(schema).database (id, version, makes_schema) VALUES (1, \(Self.version), \(makesSchema))"
      )
    } else {
      texts += dropping(Self.engineTables + Self.blobTables)
    }
    try run(texts + blobTables + ["COMMIT"])
  }

  private var blobTables: [String] {
    let tables = [
      """
      CREATE TABLE \(schema).blobs (id bytea PRIMARY KEY, name text UNIQUE, bytes bigint NOT NULL, \
      stamp bigint NOT NULL, claimed timestamptz)
      """,
      """
      CREATE TABLE \(schema).pieces (blob bytea NOT NULL, number integer NOT NULL, bytes bytea NOT NULL, \
      PRIMARY KEY (blob, number))
      """,
    ]
    // Most large blobs are compressed already.
    let external = ["ALTER TABLE \(schema).pieces ALTER COLUMN bytes SET STORAGE EXTERNAL"]
    return connection.hasSettings ? tables + external : tables
  }

  /// Removes all tables, in one transaction, and then the schema if it was made with them.
  func remove() throws {
    let answer = try connection.exchange([
      .text("SELECT makes_schema::integer FROM \(schema).database WHERE id = 1")
    ])
    let madeSchema = answer.first.map { $0.count == 1 && $0.integer(0, 0) == 1 } ?? false
    try run(["BEGIN"] + dropping(Self.engineTables + Self.blobTables + ["database"]) + ["COMMIT"])
    // Something else may be in it by now.
    if madeSchema { _ = try? connection.exchange([.text("DROP SCHEMA \(schema)")]) }
  }

  /// Renames the schema, unless it has tables of something else.
  func rename(to name: String) throws {
    let own = (Self.engineTables + Self.blobTables + ["database"]).map { "'\($0)'" }.joined(separator: ", ")
    let others = try connection.exchange([
      .text(
        """
        SELECT table_name::text FROM information_schema.tables \
        WHERE table_schema = \(literal(location.schema)) AND table_name NOT IN (\(own))
        """)
    ])
    if let others = others.first, others.count > 0 {
      throw StorageError(
        .unsupported,
        "the schema also has the table \"\(others.text(0, 0))\", which isn't the database's, so it isn't renamed; "
          + "move that table, or copy the database", path: location.shown)
    }
    let quoted = PostgresLocation.quoted(name)
    do {
      _ = try connection.exchange([.text("ALTER SCHEMA \(schema) RENAME TO \(quoted)")])
    } catch let error as PostgresError where error.state == "42P06" {
      throw StorageError(
        .alreadyExists, "the server has a schema of the new name, \(name)", path: location.shown)
    }
  }

  private func dropping(_ tables: [String]) -> [String] {
    tables.map { "DROP TABLE IF EXISTS \(schema).\($0)" }
  }

  private func run(_ texts: [String]) throws {
    do { _ = try connection.exchange(texts.map { .text($0) }) } catch {
      connection.sendEnding("ROLLBACK")
      throw error
    }
  }

  private func literal(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
  }
}
