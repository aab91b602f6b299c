// Commands of the child process that the tests of .cblite2 databases start, and kill.
//
//   cblite2 export DATABASE TARGET ENGINE      prints "begun", exports, prints "done"
//   cblite2 import DATABASE SOURCE ENGINE      the same; the database is made when it isn't there

import ChildSupport
import TestSupport

enum CBLite2Commands: ChildCommands {
  static let name = "cblite2"
  static let usage = "export|import DATABASE PATH ENGINE"

  static func run(_ words: [String]) throws {
    guard words.count == 4 else { throw WrongUsage() }
    let (database, path, engine) = (words[1], words[2], EngineName(rawValue: words[3]))
    let key = try key(of: engine)
    say("begun")
    switch words[0] {
    case "export":
      let opened = try Database.open(database, options: DatabaseOptions(isReadOnly: true, key: key))
      try opened.exportCBLite2(to: path)
      try opened.close()
    case "import":
      let opened = try Database.open(database, options: DatabaseOptions(engine: engine, key: key))
      // Short transactions: a kill falls between them as well as into one.
      try opened.importCBLite2(path, batchCount: 50)
      try opened.close()
    default: throw WrongUsage()
    }
    say("done")
  }
}
