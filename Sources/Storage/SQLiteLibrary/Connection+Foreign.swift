import CSQLite

/// Precautions for a file that another program made. It may come from anybody.
extension Connection {
  /// What the schema of a foreign file has that would run its author's code when the file is read.
  package struct ForeignObject: Sendable, Hashable, CustomStringConvertible {
    /// `view`, `virtual table`, `computed column`.
    package let kind: String
    /// The name of the view or the table.
    package let name: String

    /// The kind and the name, which is cut after 64 characters.
    package var description: String { "\(kind) \"\(name.prefix(64))\"" }
  }

  /// Turns off what a file can make the library do: triggers, views, functions in its schema, changes of the schema's
  /// own table. Checks the cells of each page that is read. Limits the work of a single step (`fileBytes` is the size of the
  /// file), so that a page tree that leads back into itself comes to an end.
  ///
  /// Old libraries ignore the switches that they don't know. `foreignObject(_:)` finds the same in the schema.
  package func distrust(fileBytes: Int) throws {
    for (option, value) in [
      (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    ] as [(Int32, Int32)] {
      _ = csqlite_db_config_int(functions, handle, option, value, nil)
    }
    limitSteps(to: 100_000_000 + 100 * fileBytes)
    try execute("PRAGMA cell_size_check = ON; PRAGMA trusted_schema = OFF")
  }

  /// Returns the first object of the schema that runs its author's code when one of `tables` is read: a view or a virtual
  /// table under such a name, or a computed column. Returns nil if there is none. Reading the schema runs nothing.
  ///
  /// Triggers run at writes, and expressions of an index when a row is written. A file that is only read needs neither.
  package func foreignObject(_ tables: (String) -> Bool) throws -> ForeignObject? {
    let statement = try prepare("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view')")
    defer { statement.finalize() }
    var names: [String] = []
    while try statement.step() {
      let name = statement.string(1) ?? ""
      guard tables(name) else { continue }
      if statement.string(0) == "view" { return ForeignObject(kind: "view", name: name) }
      if (statement.string(2) ?? "").uppercased().hasPrefix("CREATE VIRTUAL") {
        return ForeignObject(kind: "virtual table", name: name)
      }
      names.append(name)
    }
    for name in names {
      // Libraries older than 3.26 don't know `table_xinfo` and give no rows, but they know no computed columns either.
      let columns = try prepare("PRAGMA table_xinfo(\(Self.quoted(name)))")
      defer { columns.finalize() }
      while try columns.step() {
        guard columns.integer(6) >= 2 else { continue }
        return ForeignObject(kind: "computed column", name: "\(name).\(columns.string(1) ?? "")")
      }
    }
    return nil
  }

  /// A name as an identifier in SQL, whatever is in it.
  package static func quoted(_ name: String) -> String {
    "\"" + name.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
  }
}
