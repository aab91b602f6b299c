import CSQLite

/// What a call of the library gave that wasn't success.
public struct SQLiteError: Error, Sendable, CustomStringConvertible {
  /// The extended result code, as the library numbers it: `SQLITE_IOERR_WRITE`.
  public let extendedCode: Int32
  /// The library's message.
  public let message: String
  /// The statement, or the call, that failed.
  public let statement: String?
  /// The operating system's error number when it refused something, else 0.
  public let systemError: Int32

  /// An error of these parts.
  public init(extendedCode: Int32, message: String, statement: String?, systemError: Int32 = 0) {
    self.extendedCode = extendedCode
    self.message = message
    self.statement = statement
    self.systemError = systemError
  }

  /// The result code without its extension: `SQLITE_IOERR`.
  public var code: Int32 { extendedCode & 0xFF }

  /// Message, codes and statement.
  public var description: String {
    var text = "\(message) (code \(extendedCode))"
    if systemError != 0 { text += ", system error \(systemError)" }
    if let statement { text += " in: \(statement)" }
    return text
  }
}
