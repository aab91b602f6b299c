/// What went wrong in an engine: what was tried, on which file, what was found, and the library's own words.
public struct StorageError: Error, Sendable, CustomStringConvertible {
  /// What kind of failure it is, for programs.
  public enum Code: String, Sendable, CaseIterable {
    /// There is no file, and none was to be made.
    case notFound
    case alreadyExists
    /// The file isn't one of this engine: another format, or no database at all.
    case notADatabase
    /// The file is of a version that this release doesn't know.
    case unsupportedVersion
    /// The file is of this engine but broken.
    case damaged
    /// The key is not the one the file was encrypted with.
    case wrongKey
    /// The file is encrypted and no key was given.
    case keyRequired
    /// A key was given for a file that isn't encrypted, or to an engine that can't encrypt.
    case notEncrypted
    case readOnly
    case permissionDenied
    /// The disk, or the file's size limit, is full. Nothing of the transaction remains.
    case diskFull
    /// The engine's own limit of size is reached (LMDB's map).
    case mapFull
    /// A transaction touched more than the engine can hold in one.
    case transactionTooLarge
    case tooManyReaders
    case tooManyKeyspaces
    case noSuchKeyspace
    case shapeMismatch
    /// Empty, too long, or not 8 bytes in a keyspace of sequences.
    case invalidKey
    case valueTooLarge
    case outOfOrder
    /// `write` was called inside `write`.
    case nestedWrite
    /// A write, or a move of a cursor, inside a closure that bytes are lent to.
    case bytesAreLent
    /// A cursor was asked for its entry, and stands on none.
    case notOnEntry
    /// Another process or another open of this path holds what is needed.
    case inUse
    /// Another process wrote for longer than the engine waits.
    case busy
    /// The transaction met the writes of another one and was rolled back. The same body may be run again, on what is
    /// stored now.
    case conflict
    /// The engine no longer keeps what this snapshot sees. A new snapshot sees what is stored now.
    case snapshotExpired
    case closed
    case invalidArgument
    /// This engine can't do that.
    case unsupported
    /// The operating system refused a read or a write.
    case ioError
    /// The library reported what none of the above says.
    case engineFailure
  }

  /// What kind of failure it is.
  public let code: Code
  /// What was tried and what was found, for people.
  public let message: String
  /// The file it is about.
  public let path: String?
  /// The library's result code, as the library numbers it.
  public let engineCode: Int?
  /// The library's own message.
  public let engineMessage: String?

  /// A failure of that kind.
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

  /// All of it in one line.
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
