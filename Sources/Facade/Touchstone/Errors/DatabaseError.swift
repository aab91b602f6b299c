/// A failure that concerns a database as a whole: its directory, its key or its engine.
public struct DatabaseError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failures.
  public enum Code: String, Sendable, CaseIterable {
    /// There is no database, and the options don't allow making one.
    case notFound
    /// There is already something where a new database was to be made.
    case alreadyExists
    /// The name is empty, `.` or `..`, too long for a file name, or breaks another rule of names
    /// (`DatabaseFolder`).
    case invalidName
    /// The location of a database on a server can't be read, has an unknown scheme, or doesn't fit the engine.
    case invalidLocation
    /// The database to install is the one that it would replace, or lies inside that one's directory.
    case invalidSource
    /// Data of the Couchbase Lite database to install can't be carried over.
    case incompleteSource
    /// The parent directory of a new database doesn't exist.
    case noParentDirectory
    /// There is something at the path, but it isn't a database.
    case notADatabase
    /// The description, the key file or the data can't be read.
    case damaged
    /// The database was made by a later release.
    case unsupportedVersion
    /// There is no engine of that name (`Engines`).
    case unknownEngine
    /// The key doesn't open the database (401 in Couchbase Lite).
    case wrongKey
    /// The database is encrypted and no key was given.
    case keyRequired
    /// A key was given for a plain database or for an engine that can't encrypt, or the operation needs an
    /// encrypted database.
    case notEncrypted
    /// The database to encrypt is already encrypted. To change its key, use `rekey`.
    case alreadyEncrypted
    /// The database is open elsewhere, or its files are being changed.
    case inUse
    /// The database is open in this process with other options. The message names the first difference.
    case otherOptions
    /// This `Database` is closed.
    case closed
    /// This `Database` is open for reading only.
    case readOnly
  }

  /// The kind of failure.
  public let code: Code
  /// A message for people: what was tried, what was found, and what to do.
  public let message: String
  /// The directory or file that the error concerns.
  public let path: String?

  /// Makes an error.
  package init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// The message and the path.
  public var description: String { path.map { "\(message): \($0)" } ?? message }
}
