/// A run that came out otherwise than it should: what it took would mean nothing.
struct RunMismatch: Error, CustomStringConvertible {
  let what: String
  let found: String
  let expected: String

  var description: String { "\(what): \(found) instead of \(expected)" }

  /// Throws when they differ.
  static func check<Value: Equatable>(_ what: @autoclosure () -> String, _ found: Value, _ expected: Value)
    throws
  {
    guard found == expected else {
      throw RunMismatch(what: what(), found: "\(found)", expected: "\(expected)")
    }
  }
}
