// The child process of the tests of the engines.
//
// SystemCalls and HeldHandles take the place of some C functions in the whole program. They only pass calls on until
// a command asks for more.

import ChildSupport

@main enum Main {
  static func main() { runChild([ConformanceCommands.self, LMDBCommands.self]) }
}
