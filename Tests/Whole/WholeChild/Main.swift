// The child process of simulations, and the program that searches with them (`make simulate`).
//
// SystemCalls takes the place of some C functions in the whole program. They only pass calls on until a command asks
// for more.

import ChildSupport
import TestSupport

@main enum Main {
  static func main() {
    // Registers them.
    _ = optionalEngines
    runChild([SimulationCommands.self, MachineCommands.self])
  }
}
