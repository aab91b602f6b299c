// The child process of the tests of the floor Ground.

import ChildSupport

@main enum Main {
  static func main() { runChild([LogsCommands.self, ThreadsCommands.self]) }
}
