// Commands of the child process that the tests of queries start, and kill.
//
//   query make ENGINE DIRECTORY           makes and removes the index "byN" again and again, with a line after
//                                         each commit: "made" or "removed"
//   query change ENGINE DIRECTORY         makes, redefines and removes indexes, with documents saved in between,
//                                         until there is a document "stop"; then a line "done"
//   query texts ENGINE DIRECTORY START    commits batches of texts, numbered from START, until it is killed, and
//                                         compacts now and then; prints each number once it is committed

import ChildSupport
import TestSupport
import Touchstone

enum QueryCommands: ChildCommands {
  static let name = "query"
  static let usage = "make|change|texts ENGINE DIRECTORY [START]"

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 3 else { throw WrongUsage() }
    let database = try openTestDatabase(arguments[1], in: arguments[2])
    switch arguments[0] {
    case "make":
      say("open")
      while true {
        if try database.deleteIndex("byN") { say("removed") }
        try database.createIndex("byN", on: ["n", "text"])
        say("made")
      }
    case "change":
      var number = 0
      while try database.document("stop") == nil {
        number += 1
        switch number % 5 {
        case 0: try database.createIndex("a", on: ["type", "n"])
        case 1: try database.createIndex("b", on: ["n"])
        // The same name for something else: entries of the old one mean nothing in it.
        case 2: try database.createIndex("a", on: ["text", "type"])
        case 3: try database.deleteIndex("b")
        default: try database.deleteIndex("a")
        }
        try database.save("theirs\(number % 3)", ["type": "theirs", "n": .int(Int64(-1 - number % 3))])
      }
      try database.close()
      say("done")
    case "texts":
      guard arguments.count == 4, var batch = Int(arguments[3]) else { throw WrongUsage() }
      say("open")
      while true {
        try database.inBatch {
          for part in 0..<4 {
            let number = batch * 4 + part
            // Words of all frequencies, and one that only this batch has.
            let words = (0..<(10 + number % 90)).map { "w\((number &* 31 &+ $0 &* $0) % (3 + number % 400))" }
            try database.save(
              "text\(number % 240)",
              ["text": .string("mark\(batch) " + words.joined(separator: " ")), "n": .int(Int64(batch))])
          }
          if batch % 3 == 2 { try database.delete("text\((batch * 4 - 5) % 240)") }
          if batch % 7 == 6 { try database.purge("text\((batch * 4 - 9) % 240)") }
          try database.save("counter", ["n": .int(Int64(batch))])
        }
        say("\(batch)")
        batch += 1
        if batch % 40 == 0 { try database.compact() }
      }
    default: throw WrongUsage()
    }
  }
}
