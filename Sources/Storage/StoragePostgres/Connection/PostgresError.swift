import Storage

/// A failure that a server or libpq reports.
struct PostgresError: Error {
  /// The SQLSTATE, or nil if no server gave one.
  let state: String?
  /// The message, without passwords.
  let message: String
  /// Whether the connection is lost. Its transaction has then ended, or will be rolled back.
  let isLost: Bool
  /// Whether the server asks for a password that it wasn't given, or refuses one.
  let isAboutPassword: Bool

  init(_ state: String?, _ message: String, isLost: Bool, isAboutPassword: Bool = false) {
    self.state = state
    self.message = String(message.trimming())
    self.isLost = isLost || Self.endsConnection(state)
    self.isAboutPassword = isAboutPassword
  }

  /// Class 08 is about connections, 57P about the end of the server or of a session, 25P03 and 25P04 about sessions that
  /// were ended because their transaction was idle or slow.
  private static func endsConnection(_ state: String?) -> Bool {
    guard let state else { return false }
    return state.hasPrefix("08") || ["57P01", "57P02", "57P03", "57P05", "25P03", "25P04"].contains(state)
  }

  /// Whether the same request may succeed on a new connection a little later: the server starts, stops, or is taken over.
  var isPassing: Bool { isLost && !isAboutPassword && state?.hasPrefix("28") != true && state != "3D000" }

  /// The kind of failure outside of any transaction.
  var code: StorageError.Code {
    if isAboutPassword { return .permissionDenied }
    guard let state else { return .ioError }
    switch state {
    // A key that was taken for new isn't: what was known of the last commit is forgotten, and is read again.
    case "40001", "40P01", "23505": return .conflict
    case "55P03", "57014": return .busy
    case "53100": return .diskFull
    case "53300": return .tooManyReaders
    case "42501": return .permissionDenied
    case "25006": return .readOnly
    case "3D000", "3F000", "42P01": return .notFound
    case "72000", "25P02", "25P03", "25P04": return .snapshotExpired
    case "XX001", "XX002": return .damaged
    case "54000": return .valueTooLarge
    default: break
    }
    if state.hasPrefix("28") { return .permissionDenied }
    return isLost || state.hasPrefix("58") ? .ioError : .engineFailure
  }

  /// The error that a caller gets.
  ///
  /// - Parameter lost: the kind of a lost connection, where that means more than a failed request.
  func storageError(_ what: String, _ location: String, lost: StorageError.Code? = nil) -> StorageError {
    let code = isLost ? lost ?? self.code : self.code
    let said = state.map { "\($0): \(message)" } ?? message
    return StorageError(code, what, path: location, engineMessage: said)
  }
}

/// Runs `body` and turns what a server reports into a `StorageError`.
@inline(__always)
func reporting<Result>(
  _ what: @autoclosure () -> String, _ location: String, lost: StorageError.Code? = nil,
  _ body: () throws -> Result
) throws -> Result {
  do { return try body() } catch let error as PostgresError {
    throw error.storageError(what(), location, lost: lost)
  }
}
