/// A failure of an engine. It says what was tried, on which file, what was found, and the library's own
/// message.
public struct StorageError: Error, Sendable, CustomStringConvertible {
  /// The kind of failure, for programs.
  public enum Code: String, Sendable, CaseIterable {
    /// There is no file, and the options don't allow creating one.
    case notFound
    /// The file or other target exists already.
    case alreadyExists
    /// The file has another format or is no database.
    case notADatabase
    /// The file has a format version that this release doesn't know.
    case unsupportedVersion
    /// The file belongs to this engine but is broken.
    case damaged
    /// The file was encrypted with another key.
    case wrongKey
    /// The file is encrypted and no key was given.
    case keyRequired
    /// A key was given for an unencrypted file, or to an engine that can't encrypt.
    case notEncrypted
    /// A write to an engine that is open only for reading.
    case readOnly
    /// The operating system denies access to the file.
    case permissionDenied
    /// The disk is full, or the file has reached its size limit. The transaction leaves nothing behind.
    case diskFull
    /// The engine's own size limit is reached (LMDB's map).
    case mapFull
    /// A transaction changed more than the engine can hold in one transaction.
    case transactionTooLarge
    /// Too many snapshots are open.
    case tooManyReaders
    /// The engine has no room for another keyspace.
    case tooManyKeyspaces
    /// The keyspace doesn't exist, or no longer.
    case noSuchKeyspace
    /// The keyspace exists with another shape.
    case shapeMismatch
    /// The key is empty, too long, or doesn't fit the shape of its keyspace.
    case invalidKey
    /// The value is longer than the engine allows.
    case valueTooLarge
    /// An appended key isn't greater than all others.
    case outOfOrder
    /// `write` was called inside `write`.
    case nestedWrite
    /// A write or a cursor move was tried inside a closure that bytes are lent to.
    case bytesAreLent
    /// A cursor that stands on no entry was asked for its entry.
    case notOnEntry
    /// The file is in use by another process, or open elsewhere in this process; or snapshots are open.
    case inUse
    /// Another process held the write lock for longer than the engine waits.
    case busy
    /// The transaction conflicted with another one and was rolled back. The caller may run the same body
    /// again on the current data.
    case conflict
    /// The engine no longer keeps the data of this snapshot. A new snapshot sees the current data.
    case snapshotExpired
    /// The engine, transaction or cursor is closed.
    case closed
    /// An argument is out of range or makes no sense.
    case invalidArgument
    /// The engine doesn't support the operation.
    case unsupported
    /// A read or write failed in the operating system.
    case ioError
    /// The library reported a failure that no other code describes.
    case engineFailure
  }

  /// The kind of failure.
  public let code: Code
  /// What was tried and what was found, for people.
  public let message: String
  /// The file that the failure is about.
  public let path: String?
  /// The result code of the library.
  public let engineCode: Int?
  /// The message of the library.
  public let engineMessage: String?

  /// Makes an error of a kind.
  public init(
    _ code: Code, _ message: String, path: String? = nil, engineCode: Int? = nil,
    engineMessage: String? = nil
  ) {
    self.code = code
    self.message = message
    self.path = path
    self.engineCode = engineCode
    self.engineMessage = engineMessage
  }

  /// The message, path, engine message and engine code in one line.
  public var description: String {
    var text = message
    if let path { text += ": \(path)" }
    if let engineMessage {
      text += " (\(engineMessage)\(engineCode.map { ", code \($0)" } ?? ""))"
    } else if let engineCode {
      text += " (code \(engineCode))"
    }
    return text
  }
}
