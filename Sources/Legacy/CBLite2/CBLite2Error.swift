/// The error of a Couchbase Lite 2.x or 3.x database that can't be read or written.
public struct CBLite2Error: Error, Sendable, CustomStringConvertible {
  /// The kind of failure.
  public enum Code: String, Sendable, CaseIterable {
    /// There is nothing at the path.
    case notFound
    /// The path isn't a `.cblite2` database.
    case notADatabase
    /// The database is encrypted with a cipher that isn't available here.
    case encrypted
    /// The database is one of Couchbase Lite 1.x.
    case olderVersion
    /// The database was written by an unknown newer release, or it uses version vectors.
    case newerVersion
    /// The file, its tables or its shared keys can't be read.
    case damaged
    /// Another process has the database open.
    case inUse
    /// The database doesn't have the collection.
    case noSuchCollection
    /// The path of a new database already exists.
    case alreadyExists
    /// The operating system refused to read or write a file.
    case ioError
  }

  /// The kind of failure.
  public let code: Code
  /// A description of what was found and what to do, for people.
  public let message: String
  /// The path of the directory or file that failed.
  public let path: String

  init(_ code: Code, _ message: String, path: String) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// The message with the path.
  public var description: String { "\(message): \(path)" }
}
