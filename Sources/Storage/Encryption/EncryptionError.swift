/// An error with a key or with a key file. It never contains a byte of a secret.
public struct EncryptionError: Error, Sendable, CustomStringConvertible {
  /// The kinds of errors.
  public enum Code: String, Sendable, CaseIterable {
    /// The file is intact, but the key isn't the one that it was made with.
    case wrongKey
    /// The file was changed since it was written, or it isn't a key file.
    case damaged
    /// The file is intact, but has a version, cipher or key derivation that this release doesn't know.
    case unsupportedVersion
    /// The value can't be a key: it is empty, too long, or doesn't have 32 bytes.
    case invalidKey
    /// The cryptographic library failed.
    case libraryFailure
  }

  /// The kind of error.
  public let code: Code
  /// A message for people: what was tried and what was found.
  public let message: String
  /// The path of the file concerned, or nil.
  public let path: String?

  /// Creates an error.
  package init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// The message, followed by the path if there is one.
  public var description: String { path.map { "\(message): \($0)" } ?? message }

  func at(_ path: String) -> EncryptionError { EncryptionError(code, message, path: self.path ?? path) }
}
