// The child process of the tests of the listener.

import ChildSupport

@main enum Main {
  static func main() { runChild([ServerCommands.self]) }
}
