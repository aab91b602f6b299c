import FoundationEssentials
import Limits
import Storage

/// The PostgreSQL server of a run, on which engines without files make their databases. Each has a schema, whose name begins with
/// `bench_` and is that of a directory of the run.
struct BenchServer: Sendable {
  /// The location without a name of a database: `postgres://host/db`.
  private let location: String
  private let prefix = "bench_" + UUID().uuidString.prefix(8).lowercased() + "_"

  /// Throws `invalidArgument` for a location with a name.
  init(_ location: String) throws {
    guard location.contains("://"), !location.contains("#") else {
      throw StorageError(
        .invalidArgument, "--location isn't a location such as postgres://host/db, without a # and a name")
    }
    self.location = location
  }

  /// The name of the schema of a directory: the FNV-1a hash of its path.
  private func schema(of directory: String) -> String {
    let hash = directory.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) {
      ($0 ^ UInt64($1)) &* 0x100_0000_01B3
    }
    return prefix + String(hash, radix: 16)
  }

  /// The location of the database that stands for the one in a directory.
  func location(of directory: String) -> String { "\(location)#\(schema(of: directory))" }

  /// Copies a database that is closed, with all its tables.
  func copy(_ source: String, to target: String) throws {
    let (from, to) = (schema(of: source), schema(of: target))
    try execute(
      """
      DO $$ DECLARE name text; BEGIN
        CREATE SCHEMA \(to);
        FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = '\(from)' LOOP
          EXECUTE format('CREATE TABLE \(to).%I (LIKE \(from).%I INCLUDING ALL)', name, name);
          EXECUTE format('INSERT INTO \(to).%I SELECT * FROM \(from).%I', name, name);
        END LOOP;
      END $$
      """)
    try settle(target)
  }

  /// Leaves no work of the server for the runs: the first reads of new entries would mark them, and autovacuum comes when it likes.
  func settle(_ directory: String) throws { try execute("VACUUM ANALYZE \(schema(of: directory)).entries") }

  /// The size of a database's tables and indexes, in bytes.
  func bytes(of directory: String) throws -> Int {
    let outcome = try execute(
      """
      SELECT coalesce(sum(pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass)), 0)::bigint \
      FROM pg_tables WHERE schemaname = '\(schema(of: directory))'
      """)
    return Int(clamping: outcome.count)
  }

  /// Removes a database, if there is one.
  func remove(_ directory: String) throws {
    try execute("DROP SCHEMA IF EXISTS \(schema(of: directory)) CASCADE")
  }

  /// Removes all databases of the run.
  func removeAll() throws {
    let names = "SELECT nspname FROM pg_namespace WHERE starts_with(nspname, '\(prefix)')"
    // Each in a transaction: they take locks of all their tables.
    while try execute("SELECT count(*) FROM (\(names)) AS found").count > 0 {
      try execute(
        """
        DO $$ DECLARE name text; BEGIN
          FOR name IN \(names) LIMIT 1 LOOP EXECUTE format('DROP SCHEMA %I CASCADE', name); END LOOP;
        END $$
        """)
    }
  }

  @discardableResult
  private func execute(_ text: String) throws -> limit_outcome {
    // The server tells of each table that is dropped with its schema.
    try LimitDatabase.run { limit_postgres_execute(location, "SET client_min_messages = warning", text, &$0) }
  }
}
