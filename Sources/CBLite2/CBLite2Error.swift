/// Why a Couchbase Lite 2.x or 3.x database can't be read, or written.
public struct CBLite2Error: Error, Sendable, CustomStringConvertible {
  /// What kind of failure it is.
  public enum Code: String, Sendable, CaseIterable {
    /// There is nothing at the path.
    case notFound
    /// There is something, but no `.cblite2` database.
    case notADatabase
    /// It is encrypted with a cipher that isn't to be had here.
    case encrypted
    /// It is a database of Couchbase Lite 1.x.
    case olderVersion
    /// It was written by a release that is newer than what is known here, or that keeps version vectors.
    case newerVersion
    /// The file, its tables or its shared keys can't be read.
    case damaged
    /// Another process has it open.
    case inUse
    /// There is no such collection in it.
    case noSuchCollection
    /// There is something at the path where a new one was to be written.
    case alreadyExists
    /// The operating system refused to read or write a file.
    case ioError
  }

  /// What kind of failure it is.
  public let code: Code
  /// What was found and what to do, for people.
  public let message: String
  /// The directory or file it is about.
  public let path: String

  init(_ code: Code, _ message: String, path: String) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// The message with the path.
  public var description: String { "\(message): \(path)" }
}
