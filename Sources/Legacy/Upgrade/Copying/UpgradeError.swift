/// The error of an upgrade that failed: what was found, where, and what to do.
public struct UpgradeError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure.
  public enum Code: String, Sendable, CaseIterable {
    /// There is nothing at the path.
    case notFound
    /// The database is already in this project's format.
    case notOld
    /// A `.cblite2` of Couchbase Lite 2 or later. Import it instead.
    case laterVersion
    /// A `.cblite2` of Couchbase Lite 2 or later, encrypted with a cipher that isn't available here.
    case unknownCipher
    /// A 1.x database with ForestDB storage of a version that can't be read.
    case forestDB
    /// An SQLite file or another file that isn't a Couchbase Lite database.
    case foreign
    /// The file was cut off: it is empty, or shorter than its header says.
    case truncated
    /// The file is damaged and can't be read.
    case damaged
    /// Another connection is writing to the database.
    case inUse
    /// The database was changed while it was read.
    case changed
    /// The file is encrypted or isn't a database, and no key was given.
    case keyRequired
    /// The key or password isn't that of the database.
    case wrongKey
    /// A key was given, but the database isn't encrypted.
    case notEncrypted
    /// Something can't be carried over, and the options are strict.
    case refused
    /// The result differs from the source.
    case differs
  }

  /// The kind of failure.
  public let code: Code
  /// A description of what was found and what to do, for people.
  public let message: String
  /// The path of the file or directory that failed.
  public let path: String

  /// Creates an error.
  package init(_ code: Code, _ message: String, path: String) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// The message with the path.
  public var description: String { "\(message): \(path)" }
}
