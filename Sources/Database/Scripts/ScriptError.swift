/// Why a script failed.
public struct ScriptError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of failure.
  public enum Code: String, Sendable {
    /// The text of the script isn't a function.
    case compilation
    /// The design document isn't one: a member has the wrong type.
    case invalidDefinition
    /// The design document has no function of that name.
    case missing
    /// The script threw an error.
    case exception
    /// It was stopped: it took too long, or more memory than it may have.
    case stopped
    /// No language of that name is known.
    case unknownLanguage
    /// The program that runs scripts can't be started, or ended.
    case unavailable
  }

  /// The kind of failure.
  public let code: Code
  /// What failed, in words.
  public let message: String
  /// The document that the script had, if it had one.
  public let documentID: String?

  /// Makes an error.
  public init(_ code: Code, _ message: String, documentID: String? = nil) {
    self.code = code
    self.message = message
    self.documentID = documentID
  }

  /// The failure in words, for people.
  public var description: String { message + (documentID.map { " (document '\($0)')" } ?? "") }
}
