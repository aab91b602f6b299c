import Storage

/// The names of the databases that a location without a name has: the schemas with a table `database` whose description is there.
struct PostgresNames {
  private let settings: PostgresSettings
  private let location: String

  /// - Parameter location: a connection string of libpq, without `#` and a name.
  init(_ location: String) throws {
    // The name isn't used.
    var settings = PostgresSettings(location: try PostgresLocation(location + "#public"))
    settings.isReadOnly = true
    self.settings = settings
    self.location = LocationText.withoutSecrets(location)
  }

  func read() throws -> [String] {
    try reporting("the databases on the server can't be listed", location) {
      let connection = try PostgresEngine.connect(settings)
      defer { connection.close() }
      var attempts = 0
      while true {
        do { return try names(connection) } catch let error as PostgresError
          where error.state == "42P01" || error.state == "3F000"
        {
          // A database was removed between the two statements.
          attempts += 1
          guard attempts < 10 else { throw error }
        }
      }
    }
  }

  private func names(_ connection: Connection) throws -> [String] {
    let found = try connection.exchange([
      .text(
        """
        SELECT table_schema::text FROM information_schema.columns \
        WHERE table_name = 'database' AND column_name = 'makes_schema'
        """)
    ])[0]
    let schemas = (0..<found.count).map { found.text($0, 0) }
    guard !schemas.isEmpty else { return [] }
    let answers = try connection.exchange(
      schemas.map { schema in
        let quoted =
          "\"" + schema.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"")
          + "\""
        return .text("SELECT 1 FROM \(quoted).database WHERE id = 1 AND description IS NOT NULL")
      })
    return zip(schemas, answers).filter { $0.1.count == 1 }.map { $0.0 }
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }
}
