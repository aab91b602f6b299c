import Storage

/// The keyspaces of a database, as of one commit.
struct PostgresCatalog: Sendable {
  /// The number in the row of the database that every change of the keyspaces increases.
  var version: Int
  /// The number that was given to a keyspace last.
  var lastNumber: Int
  var keyspaces: [String: Keyspace] = [:]
  var names: [Int: String] = [:]

  /// The greatest number of a keyspace: the column is an `integer`.
  static let maximumNumber = Int(Int32.max)

  mutating func add(_ name: String, _ shape: KeyspaceShape) -> Keyspace {
    lastNumber += 1
    let keyspace = Keyspace(number: lastNumber, shape: shape)
    keyspaces[name] = keyspace
    names[keyspace.number] = name
    return keyspace
  }

  /// Removes a keyspace and returns its name, or nil if there is none.
  mutating func remove(_ number: Int) -> String? {
    guard let name = names.removeValue(forKey: number) else { return nil }
    keyspaces[name] = nil
    return name
  }
}

/// The row of a database: what has to be known before anything else is read.
struct DatabaseRow: Sendable {
  /// The number of commits.
  let commits: Int
  /// See `PostgresCatalog.version`.
  let catalog: Int
  let lastKeyspace: Int
  /// Whether somebody listens to commits. Only known to writers.
  let isListened: Bool

  /// Reads the row. Throws `damaged` if there is none.
  init(_ answer: Answer, _ location: String) throws {
    guard answer.count == 1 else {
      throw StorageError(
        .damaged, "the table \"touchstone\" has \(answer.count) rows instead of one", path: location)
    }
    commits = answer.integer(0, 0)
    catalog = answer.integer(0, 1)
    lastKeyspace = answer.integer(0, 2)
    isListened = answer.columns > 3 && answer.integer(0, 3) == 1
  }
}

extension PostgresCatalog {
  /// Reads the rows of `Statement.keyspaces`.
  init(_ row: DatabaseRow, _ answer: Answer, _ location: String) throws {
    version = row.catalog
    lastNumber = row.lastKeyspace
    for index in 0..<answer.count {
      guard let shape = KeyspaceShape(rawValue: UInt8(truncatingIfNeeded: answer.integer(index, 2))) else {
        throw StorageError(.damaged, "a keyspace has an unknown shape", path: location)
      }
      let name = answer.text(index, 1)
      let keyspace = Keyspace(number: answer.integer(index, 0), shape: shape)
      keyspaces[name] = keyspace
      names[keyspace.number] = name
    }
  }
}
