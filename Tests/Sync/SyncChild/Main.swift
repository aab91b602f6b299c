// The child process of the tests of replication, and of the listener over databases.

import ChildSupport
import TestSupport

@main enum Main {
  static func main() {
    // Registers them.
    _ = optionalEngines
    runChild([ReplicationCommands.self, HTTPCommands.self])
  }
}
