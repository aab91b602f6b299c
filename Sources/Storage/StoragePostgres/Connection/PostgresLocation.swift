import CPostgres
import Storage

/// The address of a database on a server: a connection string of libpq, `#`, and the name of a schema.
///
///     location = ("postgres://" | "postgresql://") rest "#" name
///
/// libpq reads everything before the last `#`, and so knows hosts, TLS and service files
/// (`postgres:///?service=travel#travel`). The name is percent-encoded UTF-8 of 1 to 63 bytes.
struct PostgresLocation: Sendable {
  /// What libpq gets. It may hold a password: it goes nowhere else.
  let connection: String
  /// The name of the schema.
  let schema: String
  /// The location without passwords, for people.
  let shown: String

  /// The longest name of a schema, in bytes. PostgreSQL cuts longer names.
  static let maximumNameBytes = 63

  /// Whether a text is meant as the location of a database on a server.
  static func isLocation(_ text: String) -> Bool {
    text.hasPrefix("postgres://") || text.hasPrefix("postgresql://")
  }

  /// Reads a location. Throws `invalidArgument`, with a message that repeats nothing secret.
  init(_ text: String) throws {
    guard Self.isLocation(text) else {
      throw StorageError(
        .invalidArgument, "a database on PostgreSQL has a location such as postgres://host/db#name")
    }
    shown = LocationText.withoutSecrets(text)
    guard let (connection, encoded) = LocationText.split(text) else {
      throw StorageError(
        .invalidArgument, "the location has no name of a schema; it ends as in postgres://host/db#name",
        path: shown)
    }
    self.connection = connection
    guard let name = LocationText.decoded(encoded), Self.isName(name) else {
      throw StorageError(
        .invalidArgument,
        """
        a schema has a name of 1 to \(Self.maximumNameBytes) bytes that doesn't begin with "pg_", \
        not \"\(encoded.prefix(2 * Self.maximumNameBytes))\"
        """, path: shown)
    }
    schema = name
    try Self.check(connection, shown)
  }

  private static func isName(_ name: String) -> Bool {
    1...maximumNameBytes ~= name.utf8.count && !name.hasPrefix("pg_") && name != "information_schema"
      && !name.utf8.contains(0)
  }

  /// Lets libpq read the connection string. Its message isn't passed on: it may repeat a part of the password.
  private static func check(_ connection: String, _ shown: String) throws {
    var message: UnsafeMutablePointer<CChar>?
    let options = PQconninfoParse(connection, &message)
    PQfreemem(message)
    guard options != nil else {
      throw StorageError(.invalidArgument, "libpq can't read this connection string", path: shown)
    }
    PQconninfoFree(options)
  }

  /// The name of the schema as SQL has it.
  var quotedSchema: String { Self.quoted(schema) }

  /// A name as SQL has it.
  static func quoted(_ name: String) -> String {
    "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
  }
}
