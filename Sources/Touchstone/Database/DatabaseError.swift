/// What went wrong with a database as a whole: its directory, its key, its engine.
public struct DatabaseError: Error, Sendable, CustomStringConvertible {
  /// What kind of failure it is.
  public enum Code: String, Sendable, CaseIterable {
    /// There is no database, and none was to be made.
    case notFound
    /// There is one, and a new one was to be made.
    case alreadyExists
    /// Empty, `.`, `..`, or too long for a file's name.
    case invalidName
    /// There is no directory to make the database in.
    case noParentDirectory
    /// There is something at the path, but no database.
    case notADatabase
    /// The description, the key file or the data can't be read.
    case damaged
    /// It was made by a later release.
    case unsupportedVersion
    /// No engine of that name is known (`Engines`).
    case unknownEngine
    /// The key isn't the database's own (401 in the terms of Couchbase Lite).
    case wrongKey
    /// The database is encrypted and no key was given.
    case keyRequired
    /// A key was given for a database that isn't encrypted, or to an engine that can't encrypt.
    case notEncrypted
    /// It is encrypted, and was to be encrypted: changing its key is `rekey`.
    case alreadyEncrypted
    /// Somebody else has it open, or is changing its files.
    case inUse
    /// It is open in this process with other options; the message names the first that differs.
    case otherOptions
    /// This `Database` was closed.
    case closed
    /// It is open for reading only.
    case readOnly
  }

  /// What kind of failure it is.
  public let code: Code
  /// What was tried, what was found and what to do, for people.
  public let message: String
  /// The directory or file it is about.
  public let path: String?

  /// An error of that kind.
  public init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// The message with the path.
  public var description: String { path.map { "\(message): \($0)" } ?? message }
}
