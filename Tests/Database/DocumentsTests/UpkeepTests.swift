import Synchronization
import TestSupport

private struct Stop: Error {}

/// Compaction, opening and closing beside readers and writers.
@Suite("Upkeep beside readers and writers") struct UpkeepTests {
  private let databases = TestDatabases()

  private let directory = TemporaryDirectory()

  @Test("compactions beside readers and writers lose nothing", arguments: someEngines)
  func compaction(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let isDone = Atomic<Int>(0)
    for number in 0..<50 { try database.save("doc\(number)", ["n": 0]) }
    try onThreads(6) { thread in
      switch thread {
      case 0, 1:
        // Two at once: one waits for the other.
        for _ in 0..<6 { try database.compact() }
        isDone.add(1, ordering: .sequentiallyConsistent)
      case 2, 3:
        var number = 0
        while isDone.load(ordering: .sequentiallyConsistent) < 2 || number < 30 {
          do {
            try database.inBatch {
              try database.save(
                "t\(thread)-\(number)", ["n": .int(Int64(number)), "k\(thread)x\(number % 300)": 1])
              try database.save("counter\(thread)", ["n": .int(Int64(number + 1))])
              if number % 5 == 4 { throw Stop() }
            }
          } catch is Stop {}
          number += 1
        }
      default:
        while isDone.load(ordering: .sequentiallyConsistent) < 2 {
          // One snapshot over one or more compactions.
          try database.read { snapshot in
            func count() throws -> Int { try snapshot.documents().map { try $0.json() }.count }
            let before = try (count(), snapshot.lastSequence)
            usleep(2_000)
            let after = try (count(), snapshot.lastSequence)
            if before != after { throw ConformanceFailure("\(before), then \(after)") }
          }
        }
      }
    }
    for thread in [2, 3] {
      let count = Int(try database.document("counter\(thread)")?["n"].int ?? 0)
      expect(count > 0)
      for number in 0..<count {
        let document = try database.document("t\(thread)-\(number)")
        expect((document == nil), equals: (number % 5 == 4), "\(thread) \(number)")
        if let document { expect(document["k\(thread)x\(number % 300)"].int, equals: 1) }
      }
    }
    try expect(storageFaults(database), equals: [])
    try expect(database.checkIntegrity(), equals: [])
    // One engine's file is left.
    let files = try FileManager.default.contentsOfDirectory(atPath: database.path)
    let own = (database.engineFile as NSString).lastPathComponent
    expect(files.filter { $0.hasPrefix("data-") && !$0.hasPrefix(own) }, equals: [])
  }

  @Test("a snapshot from before a compaction sees what it saw", arguments: someEngines)
  func snapshotOverCompaction(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for number in 0..<200 { try database.save("doc\(number)", ["n": .int(Int64(number))]) }
    try database.read { snapshot in
      try expect(snapshot.documentCount, equals: 200)
      try onAnotherThread {
        for number in 0..<150 { try database.purge("doc\(number)") }
        try database.compact()
        try database.save("new", ["n": 1, "newkey": 2])
        try database.compact()
      }
      try expect(snapshot.documentCount, equals: 200)
      try expect(snapshot.document("doc7")?["n"].int, equals: 7)
      try expect(snapshot.document("new") == nil)
    }
    try expect(database.documentCount, equals: 51)
    try expect(database.document("new")?["newkey"].int, equals: 2)
  }

  @Test("opening and closing one path from many threads", arguments: someEngines)
  func opensAndCloses(_ engine: EngineName) throws {
    let options = try options(engine)
    let saved = Atomic<Int>(0)
    try onThreads(6) { thread in
      for number in 0..<12 {
        let database = try Database.open("test", in: directory.path, options: options)
        try database.save("t\(thread)-\(number)", ["n": 1])
        saved.add(1, ordering: .relaxed)
        if number % 4 == 3 { try database.compact() }
        if try database.document("t\(thread)-\(number)") == nil {
          throw ConformanceFailure("\(thread)-\(number) is gone")
        }
        // Others may be reading through the same engine: only the last close can meet them.
        try database.close()
      }
    }
    let database = try Database.open("test", in: directory.path, options: options)
    try expect(database.documentCount, equals: saved.load(ordering: .relaxed))
    try expect(storageFaults(database), equals: [])
    try database.close()
  }

  @Test("making and removing one database from many threads", arguments: someEngines)
  func creationsAndDeletions(_ engine: EngineName) throws {
    let options = try options(engine)
    try onThreads(4) { thread in
      for _ in 0..<10 {
        let database = try Database.open("test", in: directory.path, options: options)
        try database.save("a", ["thread": .int(Int64(thread))])
        do { try database.delete() } catch let error as DatabaseError
          where error.code == .inUse || error.code == .notFound
        {}
      }
    }
  }

  @Test("upkeep inside a batch is refused", arguments: someEngines)
  func insideBatch(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.inBatch {
      try database.save("a", ["n": 1])
      try expect(storageCode { try database.compact() }, equals: .nestedWrite)
      try expect(databaseCode { try database.close() }, equals: .inUse)
      try database.save("b", ["n": 1])
    }
    try expect(database.documentCount, equals: 2)
  }
}

/// Reading and failing inside batches.
@Suite("Inside a batch") struct InsideBatchTests {
  private let databases = TestDatabases()

  @Test("a snapshot of a batch sees what is written while it is used", arguments: someEngines)
  func snapshots(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("before", ["n": 1])
    try database.inBatch {
      try database.read { snapshot in
        try expect(snapshot.documentCount, equals: 1)
        try database.save("a", ["brandnew": 5])
        try expect(snapshot.document("a")?["brandnew"].int, equals: 5)
        try expect(snapshot.lastSequence, equals: 2)
        let key = try snapshot.key("brandnew")
        var found: [Int64?] = []
        try snapshot.forEachDocument(order: .ascending) { view in
          found.append(view[key]?.int)
          return true
        }
        expect(found, equals: [5, nil])
        try expect(database.changes().map(\.documentID), equals: ["before", "a"])
        try expect(database.revisions(of: "a")?.first?.body, equals: ["brandnew": 5])
      }
      // Another thread doesn't see it.
      let others = try onAnotherThread { try database.document("a") == nil && database.documentCount == 1 }
      expect(others)
    }
    try expect(database.document("a")?["brandnew"].int, equals: 5)
  }

  @Test("a write inside a scan of the batch is refused, and the batch goes on", arguments: someEngines)
  func writesInScans(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for number in 0..<10 { try database.save("doc\(number)", ["n": 1]) }
    try database.inBatch {
      try database.read { snapshot in
        try snapshot.forEachDocument { view throws in
          try expect(documentCode { try database.save(view.id, ["n": 2]) }, equals: .writeInScan)
          return true
        }
      }
      try database.forEachChange { change throws in
        try expect(documentCode { try database.delete(change.documentID) }, equals: .writeInScan)
        return true
      }
      try database.save("after", ["n": 3])
    }
    // Outside a batch the scan has its own snapshot.
    try database.forEachChange { change in
      try database.save(change.documentID, ["n": 4])
      return true
    }
    try expect(database.documentCount, equals: 11)
    try expect(database.document("doc3")?["n"].int, equals: 4)
  }

  @Test("what is refused in a batch adds no shared keys", arguments: someEngines)
  func refusedKeys(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    try database.inBatch {
      try expect(
        documentCode { try database.save("a", ["refusedkey": 1], onConflict: .fail) }, equals: .conflict)
      try expect(
        documentCode { try database.save("c", ["otherkey": 1, "_id": 1]) }, equals: .reservedProperty)
      try database.save("b", ["kept": 1])
    }
    try expect(database.document("b")?["kept"].int, equals: 1)
    try expect(!database.key("refusedkey").isShared)
    try expect(!database.key("otherkey").isShared)
    try expect(database.key("kept").isShared)
    try expect(storageFaults(database), equals: [])
  }

  @Test("writers that share a commit keep their keys apart from those that fail", arguments: someEngines)
  func groups(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.durability = .full }
    try onThreads(8) { thread in
      for number in 0..<25 {
        do {
          try database.inBatch {
            // Each adds names of its own, also the ones that are undone.
            try database.save(
              "t\(thread)-\(number)", ["k\(thread)n\(number)": .int(Int64(thread * 100 + number))])
            if (thread + number) % 3 == 0 { throw Stop() }
          }
        } catch is Stop {}
      }
    }
    for thread in 0..<8 {
      for number in 0..<25 {
        let document = try database.document("t\(thread)-\(number)")
        if (thread + number) % 3 == 0 {
          expect(document == nil)
          try expect(!database.key("k\(thread)n\(number)").isShared)
        } else {
          try expect(document?.value(), equals: ["k\(thread)n\(number)": .int(Int64(thread * 100 + number))])
        }
      }
    }
    try expect(storageFaults(database), equals: [])
  }

  @Test("a snapshot that was kept is refused", arguments: someEngines)
  func keptSnapshot(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    let kept = try database.read { $0 }
    try expect(documentCode { _ = try kept.document("a") }, equals: .snapshotEnded)
    try expect(documentCode { try kept.forEachDocument { _ in true } }, equals: .snapshotEnded)
  }

  @Test(
    "a local save that makes a revision known from elsewhere joins it to its parent", arguments: someEngines)
  func knownRevision(_ engine: EngineName) throws {
    // The same edit made here and elsewhere, whose history came cut off.
    var first = ""
    var second = ""
    try withDatabase(engine) { other in
      first = try other.save("a", ["n": 1]).revisionID.description
      second = try other.save("a", ["n": 2]).revisionID.description
    }
    try withDatabase(engine) { database in
      try expect(database.save("a", ["n": 1]).revisionID.description, equals: first)
      try database.apply(PulledRevision(id: "a", history: [second], body: ["n": 2]))
      try expect(database.document("a")?.isConflicted, equals: true)
      let saved = try database.save("a", ["n": 2], basedOn: RevisionID(first), onConflict: .fail)
      expect(saved.revisionID.description, equals: second)
      let revisions = try #require(try database.revisions(of: "a"))
      expect(revisions.map(\.id.description), equals: [second, first])
      expect(revisions.map(\.parent?.description), equals: [first, nil])
      try expect(database.document("a")?.isConflicted, equals: false)
      try expect(storageFaults(database), equals: [])
    }
  }
}

/// Runs `body` on a thread of its own and waits for it.
func onAnotherThread<Result: Sendable>(_ body: @escaping () throws -> Result) throws -> Result {
  nonisolated(unsafe) let body = body
  let outcome = Lock<Swift.Result<Result, any Error>?>(nil)
  let ended = CountingSemaphore()
  Thread.detachNewThread {
    let found = Swift.Result { try body() }
    outcome.withLock { $0 = found }
    ended.signal()
  }
  ended.wait()
  guard let found = outcome.withLock({ $0 }) else { throw DocumentError(.damaged, "the thread said nothing") }
  return try found.get()
}
