// Commands of the child process that the tests of documents start, and kill.
//
//   documents write ENGINE DIRECTORY NAME COUNT   saves COUNT documents NAME-n, each with a property of its
//                                                 own, and counts in NAME's own document
//   documents batches ENGINE DIRECTORY START      commits batches of documents numbered from START until it
//                                                 is killed; prints each number once it is committed
//   documents hold ENGINE DIRECTORY               opens, prints "open", and waits until it is killed
//   documents churn ENGINE DIRECTORY SECONDS      saves and compacts again and again; what it couldn't do
//                                                 because the database was in use doesn't matter
//   documents unsynced ENGINE DIRECTORY           compacts again and again, each time with another sync that fails, until
//                                                 none does; saves a document after each, and prints how many,
//                                                 and how often that was told
//   documents follow ENGINE DIRECTORY             opens, prints "open", waits for the end of its input, saves "after",
//                                                 compacts, and prints "done"
//   documents change ENGINE DIRECTORY ID…         prints "open", waits for the end of its input, and changes the
//                                                 documents one by one: -ID purges, ID-branch purges the current branch
//                                                 of ID, !ID expires, another ID saves
//   documents registers ENGINE DIRECTORY NUMBER THREADS COUNT SEED ID…
//                                                 each of the threads, numbered from NUMBER, does COUNT things with the
//                                                 documents (RegisterClient.swift); prints "PLACE OPERATION" of each
//   documents failing-registers …                 the same, while syncs fail now and then
//   documents texts ENGINE DIRECTORY SEED COUNT   changes documents of a full-text index COUNT times (IndexedTexts.swift)
//   documents depth ENGINE DIRECTORY DEPTH        sets the depth of revision trees
//   documents count ENGINE DIRECTORY THREADS COUNT  each of the threads adds 1 to the document "total" COUNT times
//   documents scarce ENGINE DIRECTORY COUNT       opens and saves with so many free file descriptors, and prints "saved" or the
//                                                 kind of the error
//   documents read ENGINE DIRECTORY               prints "ID REVISION JSON" of each document, every entry
//                                                 compared with its checksum, and "whole" at last

import ChildSupport
import SystemCalls
import TestSupport

#if canImport(Glibc)
  import Glibc
#endif

enum DocumentsCommands: ChildCommands {
  static let name = "documents"
  static let usage =
    "write|batches|hold|churn|unsynced|read|follow|change|registers|texts|depth|count|scarce ENGINE DIRECTORY …"

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 3 else { throw WrongUsage() }
    func open() throws -> Database {
      try openTestDatabase(arguments[1], in: arguments[2]) { options in
        if arguments[0] == "batches" { options.revisionsPerBlock = 2 }
        if arguments[0] == "read" { options.verifiesChecksums = true }
        if arguments[0] == "failing-registers" { options.durability = .full }
      }
    }
    if arguments[0] == "scarce" {
      guard arguments.count == 4, let count = Int(arguments[3]) else { throw WrongUsage() }
      leaveDescriptors(count)
      do {
        let database = try open()
        try database.save("doc", ["n": 1])
        try database.close()
        return say("saved")
      } catch let error as any TouchstoneError { return say("\(error.kind)") }
    }
    var database = try open()
    switch arguments[0] {
    case "write":
      guard arguments.count == 5, let count = Int(arguments[4]) else { throw WrongUsage() }
      let name = arguments[3]
      for number in 0..<count {
        try database.inBatch {
          let key = "\(name)key\(number)"
          try database.save("\(name)-\(number)", ["n": .int(Int64(number)), key: .string(key)])
          let count = try database.document("total")?["n"].int ?? 0
          try database.save("total", ["n": .int(count + 1)])
        }
        if number % 16 == 15 {
          // What the other process wrote is read with the keys that it added.
          try database.read { snapshot in
            try snapshot.forEachDocument { view in
              let document = try view.document()
              if document.id != "total", document["n"].int == nil {
                throw DocumentError(.damaged, "a document lacks its number", documentID: document.id)
              }
              _ = try document.json()
              return true
            }
          }
        }
      }
      try database.close()
      say("done")
    case "batches":
      guard arguments.count == 4, var number = Int(arguments[3]) else { throw WrongUsage() }
      // Of "history" every other save writes a block.
      say("open")
      while true {
        let batch = number
        try database.inBatch {
          for part in 0..<5 {
            try database.save(
              "batch\(batch)-\(part)", ["batch": .int(Int64(batch)), "key\(batch % 900)": .int(Int64(part))])
          }
          try database.save(
            "counter",
            ["n": .int(Int64(batch)), "text": .string(String(repeating: "x", count: batch % 3_000))])
          try database.apply(
            PulledRevision(
              id: "pulled\(batch % 7)", history: ["\(batch + 2)-aa", "\(batch + 1)-aa"], body: ["n": 1]))
          try database.save("history", ["n": .int(Int64(batch))])
          if batch % 17 == 16 {
            // A branch that is gone again: the whole tree is in the record for a moment.
            try database.apply(PulledRevision(id: "history", history: ["1-side\(batch)"], body: ["n": 0]))
            if let branch = RevisionID("1-side\(batch)") { try database.purge("history", branch: branch) }
          }
          if batch % 3 == 2 { try database.delete("batch\(batch - 1)-0") }
          if batch % 11 == 10 { try database.purge("batch\(batch - 2)-1") }
        }
        say("\(batch)")
        number += 1
      }
    case "hold":
      say("open")
      while true { pause() }
    case "read":
      try database.read { snapshot in
        try snapshot.forEachDocument(order: .ascending) { view in
          say("\(view.id) \(try view.revisionID()) \(try view.document().json())")
          return true
        }
      }
      try database.close()
      say("whole")
    case "unsynced":
      // Of a file that isn't needed any more, a sync may fail without a word.
      var (saved, failed) = (0, 0)
      var isWaiting = false
      while !isWaiting {
        fail_one_sync(Int32(saved), EIO)
        do { try database.compact() } catch { failed += 1 }
        isWaiting = take_back_failing_sync() != 0
        try database.save("after-\(saved)", ["n": .int(Int64(saved))])
        saved += 1
        // The next one would copy what is open here, and not what others open.
        try database.close()
        database = try open()
      }
      try database.close()
      say("\(saved) \(failed)")
    case "follow":
      say("open")
      while readLine() != nil {}
      try database.save("after", ["n": 1])
      do { try database.compact() } catch let error as DatabaseError where error.code == .inUse {}
      try database.close()
      say("done")
    case "change":
      say("open")
      while readLine() != nil {}
      for argument in arguments.dropFirst(3) {
        let id = String(argument.drop { "-!".contains($0) })
        if argument.hasPrefix("-") {
          try database.purge(id)
        } else if argument.hasPrefix("!") {
          try database.setExpiration(of: id, after: -10)
          while try database.document(id) != nil { usleep(1_000) }
        } else if argument.hasSuffix("-branch") {
          let id = String(id.dropLast("-branch".count))
          let leaf = try database.read { try $0.document(id)?.revisionID }
          if let leaf { try database.purge(id, branch: leaf) }
        } else {
          try database.save(id, ["theirs": 1])
        }
      }
      try database.close()
      say("done")
    case "registers", "failing-registers":
      guard arguments.count > 7, let number = Int(arguments[3]), let threads = Int(arguments[4]),
        let count = Int(arguments[5]), let seed = UInt64(arguments[6])
      else { throw WrongUsage() }
      let (opened, ids, fails) = (database, Array(arguments[7...]), arguments[0] == "failing-registers")
      try onThreads(threads) { thread in
        var client = RegisterClient(opened, ids, number: number + thread, seed: seed)
        for round in 0..<count {
          if fails, thread == 0, round % 4 == 3 { fail_one_sync(Int32(round % 3), EIO) }
          try client.run(1, mayFail: fails)
        }
        for (place, history) in client.histories.enumerated() {
          for operation in history.operations { say("\(place) \(operation)") }
        }
      }
      _ = take_back_failing_sync()
      try database.close()
    case "texts":
      guard arguments.count == 5, let seed = UInt64(arguments[3]), let count = Int(arguments[4]) else {
        throw WrongUsage()
      }
      var texts = IndexedTexts(database, seed: seed)
      try texts.change(count)
      try database.close()
    case "depth":
      guard arguments.count == 4, let depth = Int(arguments[3]) else { throw WrongUsage() }
      try database.setMaximumTreeDepth(depth)
      try database.close()
    case "count":
      guard arguments.count == 5, let threads = Int(arguments[3]), let count = Int(arguments[4]) else {
        throw WrongUsage()
      }
      let opened = database
      try onThreads(threads) { _ in
        for _ in 0..<count {
          try opened.update("total") { $0["n"] = .int(($0["n"].int ?? 0) + 1) }
        }
      }
      try database.close()
    case "churn":
      guard arguments.count == 4, let seconds = Int(arguments[3]) else { throw WrongUsage() }
      let end = time(nil) + seconds
      var saved = 0
      while time(nil) < end {
        try database.save("churn-\(getpid())-\(saved)", ["n": .int(Int64(saved)), "k\(saved % 200)": 1])
        saved += 1
        if saved % 50 == 0 {
          do { try database.compact() } catch let error as DatabaseError where error.code == .inUse {}
        }
      }
      try database.close()
      say("\(saved)")
    default: throw WrongUsage()
    }
  }

  /// Opens files until so many descriptors are left of the process's.
  private static func leaveDescriptors(_ count: Int) {
    var limit = rlimit(rlim_cur: 64, rlim_max: 64)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    var last: [Int32] = []
    while true {
      let file = Glibc.open("/dev/null", O_RDONLY | O_CLOEXEC)
      guard file >= 0 else { break }
      last.append(file)
    }
    for file in last.suffix(count) { close(file) }
  }
}
