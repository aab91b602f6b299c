// The child process of the tests of Fleece.

import ChildSupport

@main enum Main {
  static func main() { runChild([FleeceCommands.self]) }
}
