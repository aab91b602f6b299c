import Synchronization
import TestSupport

@Suite("Many threads") struct ConcurrencyTests {
  @Test("readers see whole batches while a writer commits", arguments: someEngines)
  func readersBesideWriter(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let rounds = 60
      try database.inBatch { for n in 0..<10 { try database.save("doc\(n)", ["round": 0]) } }
      let isDone = Atomic<Bool>(false)
      try onThreads(4) { thread in
        if thread == 0 {
          defer { isDone.store(true, ordering: .sequentiallyConsistent) }
          for round in 1...rounds {
            try database.saveBatch(0..<10) { n in
              // New properties as well, so that the table of shared keys grows beside readers.
              return ("doc\(n)", ["round": .int(Int64(round)), "new\(round)": 1])
            }
          }
        } else {
          var last: Int64 = 0
          repeat {
            let seen = try database.read { snapshot in
              try (0..<10).map { try snapshot.document("doc\($0)")?["round"].int ?? -1 }
            }
            if Set(seen).count != 1 || seen[0] < last {
              throw ConformanceFailure("\(last) then \(seen)")
            }
            last = seen[0]
            let scanned = try database.read { snapshot in
              let key = try snapshot.key("new\(last)")
              var rounds: Set<Int64> = []
              var missing = 0
              let round = try snapshot.key("round")
              try snapshot.forEachDocument { view in
                rounds.insert(view[round]?.int ?? -1)
                if last > 0, view[round]?.int == last, view[key]?.int != 1 { missing += 1 }
                return true
              }
              return (rounds, missing)
            }
            if scanned.0.count != 1 || scanned.1 != 0 {
              throw ConformanceFailure("scan: \(scanned)")
            }
          } while !isDone.load(ordering: .sequentiallyConsistent)
        }
      }
      try expect(database.lastSequence, equals: UInt64(10 * (rounds + 1)))
    }
  }

  @Test("writers on many threads lose nothing, and one that fails takes nobody along", arguments: someEngines)
  func manyWriters(_ engine: EngineName) throws {
    struct Stop: Error {}
    try withDatabase(engine, { $0.durability = .normal }) { database in
      try onThreads(8) { thread in
        for number in 0..<40 {
          do {
            try database.inBatch {
              try database.save(
                "t\(thread)-\(number)", ["n": .int(Int64(number)), "k\(thread)x\(number)": 1])
              try database.save("counter\(thread)", ["n": .int(Int64(number))])
              if number % 5 == 4 { throw Stop() }
            }
          } catch is Stop {}
        }
      }
      try expect(database.documentCount, equals: 8 * 32 + 8)
      let changes = try database.changes()
      expect(changes.map(\.sequence), equals: changes.map(\.sequence).sorted())
      expect(Set(changes.map(\.documentID)).count == changes.count && changes.count == 264)
      for thread in 0..<8 {
        try expect(database.document("counter\(thread)")?["n"].int, equals: 38)
        try expect(database.document("t\(thread)-38")?["k\(thread)x38"].int, equals: 1)
        try expect(database.document("t\(thread)-39") == nil)
      }
    }
  }
}
