// The child process of the tests of the engines.
//
// SystemCalls and HeldHandles take the place of some C functions in the whole program. They only pass calls on until
// a command asks for more.

import ChildSupport

@main enum Main {
  static func main() {
    #if POSTGRES
      runChild([ConformanceCommands.self, LMDBCommands.self, ServerCommands.self])
    #else
      runChild([ConformanceCommands.self, LMDBCommands.self])
    #endif
  }
}
