/// Why a reduction has no result.
public struct ViewReduceError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of failure.
  public enum Code: String, Sendable, CaseIterable {
    /// A reducer of numbers met another value.
    case notANumber
    /// The built-in `_stats` of design documents met a value that it can't take.
    case invalidValue
    /// The function of a reducer threw an error.
    case failed
    /// The result of a script is long, and not much shorter than what the script got.
    case doesNotShrink
    /// The result is larger than any number of JSON.
    case overflow
    /// The values of a reducer that has to see all of them at once need more memory than allowed.
    case tooLarge
    /// A stored partial reduction can't be read. Rebuild the view.
    case damaged
  }

  /// The kind of failure.
  public let code: Code
  /// What failed, in words.
  public let message: String
  /// The document whose value it was, if it was one's.
  public let documentID: String?

  /// Makes an error.
  package init(_ code: Code, _ message: String, documentID: String? = nil) {
    self.code = code
    self.message = message
    self.documentID = documentID
  }

  /// The failure in words, for people.
  public var description: String { message + (documentID.map { ": document \"\($0)\"" } ?? "") }

  static var damaged: ViewReduceError {
    ViewReduceError(.damaged, "a partial reduction of a view can't be read")
  }
}
