import CSQLite

/// A failure of a call of the library.
package struct SQLiteError: Error, Sendable, CustomStringConvertible {
  /// The extended result code of the library: `SQLITE_IOERR_WRITE`.
  package let extendedCode: Int32
  /// The message of the library.
  package let message: String
  /// The statement or the call that failed.
  package let statement: String?
  /// The error number of the operating system, or 0 if it refused nothing.
  package let systemError: Int32

  /// Makes an error; see the properties.
  package init(extendedCode: Int32, message: String, statement: String?, systemError: Int32 = 0) {
    self.extendedCode = extendedCode
    self.message = message
    self.statement = statement
    self.systemError = systemError
  }

  /// The result code without its extension: `SQLITE_IOERR`.
  package var code: Int32 { extendedCode & 0xFF }

  /// The message, the codes and the statement in one line.
  package var description: String {
    var text = "\(message) (code \(extendedCode))"
    if systemError != 0 { text += ", system error \(systemError)" }
    if let statement { text += " in: \(statement)" }
    return text
  }
}
