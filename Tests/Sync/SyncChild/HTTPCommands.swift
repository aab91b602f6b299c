// Commands of the child process that the tests of the HTTP server start, and kill.
//
//   http serve ENGINE DIRECTORY [CONNECTIONS [MIB]]   serves the databases of a folder, which clients make and delete, on any port; prints
//                                                     the port, and goes on until it is killed. CONNECTIONS is how many it takes, and MIB
//                                                     the memory for bodies of requests

import ChildSupport
import Storage
import TestSupport
import Touchstone
import TouchstoneServer

#if canImport(Glibc)
  import Glibc
#endif

enum HTTPCommands: ChildCommands {
  static let name = "http"
  static let usage = "serve ENGINE DIRECTORY [CONNECTIONS [MIB]]"

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 3, arguments[0] == "serve" else { throw WrongUsage() }
    let engine = EngineName(rawValue: arguments[1])
    let folder = try DatabaseFolder(
      arguments[2], options: DatabaseOptions(engine: engine, key: try key(of: engine)))
    var configuration = SyncListenerConfiguration(folder: folder)
    configuration.servesHTTP = true
    configuration.letsClientsMakeDatabases = true
    if arguments.count > 3 { configuration.maximumConnections = Int(arguments[3]) ?? 0 }
    if arguments.count > 4 { configuration.maximumBodyMemory = (Int(arguments[4]) ?? 0) << 20 }
    let listener = SyncListener(configuration)
    try listener.start()
    say("\(listener.port ?? 0)")
    while true { pause() }
  }
}
