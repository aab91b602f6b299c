/// A run with a wrong result. Its time isn't valid.
struct RunMismatch: Error, CustomStringConvertible {
  let what: String
  let found: String
  let expected: String

  var description: String { "\(what): \(found) instead of \(expected)" }

  /// A run that saw the wrong number of documents or entries.
  init(seen found: Int, expected: Int) {
    self.init(what: "the run saw", found: "\(found)", expected: "\(expected)")
  }

  init(what: String, found: String, expected: String) {
    self.what = what
    self.found = found
    self.expected = expected
  }

  /// Throws if the number of documents or entries is wrong.
  @inline(__always)
  static func check(_ found: Int, _ expected: Int) throws {
    if found != expected { throw RunMismatch(seen: found, expected: expected) }
  }

  /// Throws if the values differ.
  static func check<Value: Equatable>(_ what: @autoclosure () -> String, _ found: Value, _ expected: Value)
    throws
  {
    guard found == expected else {
      throw RunMismatch(what: what(), found: "\(found)", expected: "\(expected)")
    }
  }
}
