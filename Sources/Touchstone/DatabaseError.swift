/// What went wrong with a database as a whole: its directory, its key, its engine.
public struct DatabaseError: Error, Sendable, CustomStringConvertible {
  public enum Code: String, Sendable, CaseIterable {
    case notFound
    case alreadyExists
    case invalidName
    /// There is something at the path, but no database.
    case notADatabase
    case damaged
    case unsupportedVersion
    case unknownEngine
    /// The key isn't the database's own (401 in the terms of Couchbase Lite).
    case wrongKey
    /// The database is encrypted and no key was given.
    case keyRequired
    /// A key was given for a database that isn't encrypted, or to an engine that can't encrypt.
    case notEncrypted
    /// Somebody else has it open, or is changing its files.
    case inUse
    case closed
    case readOnly
  }

  public let code: Code
  public let message: String
  public let path: String?

  public init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  public var description: String { path.map { "\(message): \($0)" } ?? message }
}
