// The child process of the tests of databases without a network.
//
// SystemCalls takes the place of some C functions in the whole program. They only pass calls on until a command asks
// for more.

import ChildSupport
import TestSupport

@main enum Main {
  static func main() {
    // Registers them.
    _ = optionalEngines
    runChild([
      BlobsCommands.self, DocumentsCommands.self, QueryCommands.self, ViewsCommands.self, FolderCommands.self,
      ConversionCommands.self, CBLite2Commands.self, UpgradeCommands.self, ForestDBCommands.self,
      SpillingCommands.self,
    ])
  }
}
