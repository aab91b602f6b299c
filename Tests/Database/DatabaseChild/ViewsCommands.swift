// Commands of the child process that the tests of views start, and kill.
//
//   views write ENGINE DIRECTORY START    changes documents in batches, numbered from START, and updates all views
//                                         after each, until it is killed; prints each number then
//   views update ENGINE DIRECTORY         updates all views again and again, until there is a document "stop"; prints
//                                         "open" first, and the number of updates at last

import ChildSupport
import TestSupport
import Touchstone

enum ViewsCommands: ChildCommands {
  static let name = "views"
  static let usage = "write|update ENGINE DIRECTORY [START]"

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 3 else { throw WrongUsage() }
    let database = try openTestDatabase(arguments[1], in: arguments[2])
    let views = try TestView.all.map { try $0.set(in: database, version: 1) }
    for view in views { view.setReduce(view.name == "many" || view.name == "g/parts" ? .stats : .count) }
    switch arguments[0] {
    case "write":
      guard arguments.count == 4, var number = Int(arguments[3]) else { throw WrongUsage() }
      say("open")
      while true {
        try database.changeTestDocuments(number)
        // Builds, of many rounds now and then, and updates.
        if number % 6 == 5 { try views[number / 6 % views.count].deleteIndex() }
        let limit = number % 4 == 3 ? 2_000 : 1 << 20
        for view in views {
          view.indexes.memoryLimit.withLock { $0 = limit }
          try view.updateIndex()
        }
        say("\(number)")
        number += 1
      }
    case "update":
      say("open")
      var updates = 0
      while try database.document("stop") == nil {
        for view in views {
          if try view.updateIndex().documents > 0 { updates += 1 }
        }
        if updates % 50 == 49 { try views[updates / 50 % views.count].deleteIndex() }
      }
      try database.close()
      say("\(updates)")
    default: throw WrongUsage()
    }
  }
}
