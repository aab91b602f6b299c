/// Why a server can't start.
package struct HTTPServerError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of failure.
  package enum Code: String, Sendable, CaseIterable {
    /// Another program listens on the port.
    case portInUse
    /// The machine doesn't have the address or the interface.
    case addressNotAvailable
    /// The address isn't a numeric one.
    case invalidAddress
    /// This user may not listen on the port.
    case permissionDenied
    /// A file with a certificate, a key or users can't be read.
    case fileUnreadable
    /// A file has something wrong in it.
    case fileInvalid
    /// A setting is out of range.
    case invalidConfiguration
    /// The server was started before.
    case alreadyStarted
    /// The system or a library refused.
    case systemFailure
  }

  /// The kind of failure.
  package let code: Code
  /// What was tried, where, what was found, and what to do.
  package let message: String

  /// Makes an error.
  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// The message.
  package var description: String { message }
}
