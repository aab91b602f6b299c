/// What went wrong with a key or with the file that wraps one. Never holds a byte of a secret.
public struct EncryptionError: Error, Sendable, CustomStringConvertible {
  /// What kind of failure it is, for programs.
  public enum Code: String, Sendable, CaseIterable {
    /// The file is whole, and the key given is not the one it was made with.
    case wrongKey
    /// The file was changed since it was written, or isn't a key file.
    case damaged
    /// The file is whole and of a version, cipher or derivation that this release doesn't know.
    case unsupportedVersion
    /// What was given can't be a key: empty, too long, not 32 bytes.
    case invalidKey
    /// The cryptographic library refused its service.
    case libraryFailure
  }

  /// What kind of failure it is.
  public let code: Code
  /// What was tried and what was found, for people.
  public let message: String
  /// The file it is about.
  public let path: String?

  /// An error of that kind.
  public init(_ code: Code, _ message: String, path: String? = nil) {
    self.code = code
    self.message = message
    self.path = path
  }

  /// The message and the file, in one line.
  public var description: String { path.map { "\(message): \($0)" } ?? message }

  func at(_ path: String) -> EncryptionError { EncryptionError(code, message, path: self.path ?? path) }
}
