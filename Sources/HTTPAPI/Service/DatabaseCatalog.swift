import Bytes
import Storage
import Touchstone
import Views

/// The databases that are served, by the names under which clients reach them.
package protocol DatabaseCatalog: Sendable {
  /// The names, in the order of their bytes.
  func names() throws -> [String]
  /// The database of that name; nil if there is none. It stays open while the catalog has it.
  func database(_ name: String) throws -> Database?
  /// Makes a database. False if there is one of that name. Throws a `CouchDBError` if databases aren't made here.
  func create(_ name: String) throws -> Bool
  /// Deletes a database. False if there is none of that name. Throws a `CouchDBError` if databases aren't deleted here.
  func delete(_ name: String) throws -> Bool
}

/// Databases that the app has opened. Clients can neither make nor delete one.
package final class OpenedDatabases: DatabaseCatalog {
  private let databases: [ByteString: Database]
  private let sortedNames: [String]

  /// Makes a catalog of databases by their names.
  package init(_ databases: [String: Database]) {
    self.databases = Dictionary(uniqueKeysWithValues: databases.map { (ByteString($0), $1) })
    sortedNames = databases.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  package func names() -> [String] { sortedNames }
  package func database(_ name: String) -> Database? { databases[ByteString(name)] }

  package func create(_ name: String) throws -> Bool {
    guard databases[ByteString(name)] == nil else { return false }
    throw CouchDBError(403, "forbidden", "databases aren't made here")
  }

  package func delete(_ name: String) throws -> Bool {
    guard databases[ByteString(name)] != nil else { return false }
    throw CouchDBError(403, "forbidden", "databases aren't deleted here")
  }
}

/// The databases of a folder. They are opened when a client asks for them, and stay open until `close`.
package final class FolderDatabases: DatabaseCatalog {
  private let folder: DatabaseFolder
  private let letsClientsMake: Bool
  private let opened = Lock<[ByteString: Database]>([:])

  /// Makes a catalog of the databases in a folder, whose options count for those that are opened and made. `letsClientsMake` says whether
  /// clients make and delete databases.
  package init(_ folder: DatabaseFolder, letsClientsMake: Bool = true) {
    self.folder = folder
    self.letsClientsMake = letsClientsMake
  }

  package func names() throws -> [String] { try folder.names() }

  package func database(_ name: String) throws -> Database? {
    guard DatabaseFolder.isValidName(name) else { return nil }
    return try opened.withLock { opened in
      if let database = opened[ByteString(name)] { return database }
      guard folder.exists(name) else { return nil }
      let database = try folder.openExisting(name)
      opened[ByteString(name)] = database
      return database
    }
  }

  package func create(_ name: String) throws -> Bool {
    try opened.withLock { opened in
      guard opened[ByteString(name)] == nil, !folder.exists(name) else { return false }
      guard letsClientsMake else { throw CouchDBError(403, "forbidden", "databases aren't made here") }
      var options = folder.options
      options.creation = .createNew
      opened[ByteString(name)] = try folder.open(name, options: options)
      return true
    }
  }

  package func delete(_ name: String) throws -> Bool {
    guard let database = try database(name) else { return false }
    guard letsClientsMake else { throw CouchDBError(403, "forbidden", "databases aren't deleted here") }
    try database.delete()
    opened.withLock { _ = $0.removeValue(forKey: ByteString(name)) }
    return true
  }

  /// Closes the databases. Throws what closing one of them throws, after the others are closed.
  package func close() throws {
    opened.withLock { $0 = [:] }
    try folder.close()
  }
}
