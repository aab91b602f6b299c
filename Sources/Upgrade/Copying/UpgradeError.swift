/// Why an old database can't be upgraded: what was found, where, and what to do.
public struct UpgradeError: Error, Sendable, CustomStringConvertible {
  /// What kind of failure it is.
  public enum Code: String, Sendable, CaseIterable {
    /// There is nothing at the path.
    case notFound
    /// It is a database of this project already.
    case notOld
    /// A `.cblite2` of Couchbase Lite 2 or later: those are imported.
    case laterVersion
    /// A `.cblite2` of Couchbase Lite 2 or later, encrypted with a cipher that isn't to be had here.
    case unknownCipher
    /// A 1.x database with ForestDB storage.
    case forestDB
    /// A SQLite file, or another, that isn't Couchbase Lite's.
    case foreign
    /// The file ends before its end.
    case truncated
    /// The file can't be read.
    case damaged
    /// Somebody else is writing to it.
    case inUse
    /// It was written to while it was read.
    case changed
    /// It is encrypted, or no database, and no key was given.
    case keyRequired
    /// The key isn't its own.
    case wrongKey
    /// A key was given and it isn't encrypted.
    case notEncrypted
    /// Something can't be carried over, and nothing was to be left out.
    case refused
    /// What was written isn't what the source says.
    case differs
  }

  /// What kind of failure it is.
  public let code: Code
  /// What was found and what to do, for people.
  public let message: String
  /// The file or directory that it is about.
  public let path: String

  /// An error of that kind.
  public init(_ code: Code, _ message: String, path: String) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// The message with the path.
  public var description: String { "\(message): \(path)" }
}
