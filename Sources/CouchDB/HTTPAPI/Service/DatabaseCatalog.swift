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
  /// Whether databases are made here.
  var letsClientsMake: Bool { get }
  /// Makes a database, with partitions or without. False if there is one of that name. Throws a `CouchDBError` if databases aren't made here.
  func create(_ name: String, isPartitioned: Bool) throws -> Bool
  /// Deletes a database. False if there is none of that name. Throws a `CouchDBError` if databases aren't deleted here.
  func delete(_ name: String) throws -> Bool
  /// A number of the server, 32 hexadecimal digits, that is the same after each start; nil if there is nothing to take it from. It is
  /// kept beside the databases unless they are only read.
  func identity(isReadOnly: Bool) -> String?
  /// Calls `handler` with what happens to databases from now on, from any thread, and before it returns for those that are open. It must
  /// not wait.
  func follow(_ handler: @escaping @Sendable (String, CatalogEvent) -> Void)
}

/// What happens to a database of a catalog.
package enum CatalogEvent: Sendable {
  /// It is open now. It may be told twice.
  case opened(Database)
  /// It was made, and is open.
  case created(Database)
  /// It was deleted.
  case deleted
}

extension DatabaseCatalog {
  /// Makes a database without partitions.
  func create(_ name: String) throws -> Bool { try create(name, isPartitioned: false) }
}

extension Database {
  /// Its public UUID as 32 hexadecimal digits.
  var publicDigits: String { publicUUID.replacing("-", with: "") }
}

/// Databases that the app has opened. Clients can neither make nor delete one.
package final class NamedDatabases: DatabaseCatalog {
  private let databases: [ByteString: Database]
  private let sortedNames: [String]

  /// Makes a catalog of databases by their names.
  package init(_ databases: [String: Database]) {
    self.databases = Dictionary(uniqueKeysWithValues: databases.map { (ByteString($0), $1) })
    sortedNames = databases.keys.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  package var letsClientsMake: Bool { false }
  package func names() -> [String] { sortedNames }
  package func database(_ name: String) -> Database? { databases[ByteString(name)] }

  package func create(_ name: String, isPartitioned: Bool) throws -> Bool {
    guard databases[ByteString(name)] == nil else { return false }
    throw CouchDBError(403, "forbidden", "databases aren't made here")
  }

  package func follow(_ handler: @escaping @Sendable (String, CatalogEvent) -> Void) {
    for name in sortedNames { if let database = database(name) { handler(name, .opened(database)) } }
  }

  package func delete(_ name: String) throws -> Bool {
    guard databases[ByteString(name)] != nil else { return false }
    throw CouchDBError(403, "forbidden", "databases aren't deleted here")
  }

  /// That of the first database.
  package func identity(isReadOnly: Bool) -> String? {
    sortedNames.first.flatMap { database($0) }.map(\.publicDigits)
  }
}
