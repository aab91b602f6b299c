// The process that the tests of queries start beside their own, and kill.
//
//   query-child make ENGINE DIRECTORY           makes and removes the index "byN" again and again, with a line after
//                                               each commit: "made" or "removed"
//   query-child change ENGINE DIRECTORY         makes, redefines and removes indexes, with documents saved in between,
//                                               until there is a document "stop"; then a line "done"
//   query-child texts ENGINE DIRECTORY START    commits batches of texts, numbered from START, until it is killed, and
//                                               compacts now and then; prints each number once it is committed

import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

func say(_ text: String) {
  // At once, and whole: a line that was begun is no acknowledgement.
  let bytes = Array((text + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

func run(_ arguments: [String]) throws {
  let engine = EngineName(rawValue: arguments[1])
  var options = DatabaseOptions(engine: engine)
  if try Engines.type(engine).encrypts { options.key = try .raw([UInt8](repeating: 7, count: 32)) }
  let database = try Database.open("test", in: arguments[2], options: options)
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
    var batch = Int(arguments[3]) ?? 0
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
  default: throw DocumentError(.notFound, "there is no command \(arguments[0])")
  }
}

do { try run(Array(CommandLine.arguments.dropFirst())) } catch {
  say("failed: \(error)")
  exit(1)
}
