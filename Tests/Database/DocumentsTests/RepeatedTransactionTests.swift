import Documents
import TestSupport

private struct Stop: Error {}

/// What is done when an engine says that a transaction met another one, or that a snapshot has expired. SQLite and LMDB
/// never say so: a strict engine over them does, at random.
@Suite("Transactions that are run again") struct RepeatedTransactionTests {
  @Test(
    "a conflict runs them again, and nothing of the first run remains", arguments: [EngineName.sqlite, .lmdb])
  func conflicts(_ engine: EngineName) throws {
    try withStrictDatabase(engine, Strictness(conflicts: 3)) { database in
      try database.createIndex("n", on: ["n"])
      var counter = MutableDocument(id: "counter", ["n": 0])
      try database.save(&counter)
      var runs = 0
      var ids: [RevisionID] = []
      for number in 1...60 {
        // Refused unless the document is based on what is stored: a first run must not have told it otherwise.
        counter["n"] = .int(Int64(number))
        try database.inBatch {
          runs += 1
          try database.save(&counter, onConflict: .fail)
          try database.save("doc\(number)", ["n": .int(Int64(number)), "key\(number)": true])
          counter["again"] = .bool(true)
          try database.save(&counter, onConflict: .fail)
          try expect(counter.revisionID, equals: (try database.document("counter")?.revisionID))
        }
        ids.append(try #require(counter.revisionID))
        try expect(counter.revisionID, equals: (try database.document("counter")?.revisionID))
        try expect(counter.sequence, equals: (try database.document("counter")?.sequence))
        if number % 10 == 0 { try database.purge("doc\(number)") }
        if number % 10 == 1 { try database.delete("doc\(number)") }
      }
      expect(runs > 60)
      let generations: [UInt64] = (1...60).map { UInt64(2 * $0 + 1) }
      expect(ids.map(\.generation), equals: generations)
      try expect(database.documentCount == 49 && database.tombstoneCount == 6)
      try expect(database.lastSequence, equals: 1 + 180 + 6)
      try expect(database.document("doc59")?["key59"].bool, equals: true)
      try database.compact()
      try expect(storageFaults(database), equals: [])
      try expect(database.check(deep: true), equals: [])
    }
  }

  @Test("a body that can't run twice is told of the conflict", arguments: [EngineName.sqlite, .lmdb])
  func once(_ engine: EngineName) throws {
    try withStrictDatabase(engine, Strictness(conflicts: 2)) { database in
      var document = MutableDocument(id: "a", ["n": 1])
      try database.save(&document)
      var met = 0
      for number in 0..<40 {
        let before = try #require(try database.document("a"))
        document["n"] = .int(Int64(number))
        var runs = 0
        do {
          try database.inBatch(attempts: 1) {
            runs += 1
            try database.save(&document, onConflict: .fail)
          }
        } catch let error as StorageError where error.code == .conflict {
          met += 1
          expect(document.revisionID == before.revisionID && document.sequence == before.sequence)
          try expect(database.document("a")?.revisionID, equals: before.revisionID)
        }
        expect(runs, equals: 1)
      }
      expect(met > 5)
      // After so many attempts the same.
      #expect(throws: StorageError.self) {
        try database.inBatch { throw StorageError(.conflict, "as an engine would") }
      }
    }
  }

  @Test("a conflict that the body swallows runs it again all the same")
  func swallowed() throws {
    try withDatabase(.sqlite) { database in
      var runs = 0
      try database.inBatch {
        runs += 1
        try? database.inBatch {
          try database.save("a", ["run": .int(Int64(runs))])
          if runs < 3 { throw StorageError(.conflict, "as an engine would") }
        }
        if runs < 2 { throw Stop() }
      }
      expect(runs, equals: 3)
      try expect(database.document("a")?["run"].int, equals: 3)
      try expect(database.lastSequence, equals: 1)
    }
  }

  @Test("a document that was saved in a failed batch is based on what it was before", arguments: someEngines)
  func failedBatch(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      var document = MutableDocument(id: "a", ["n": 1])
      try database.inUndoneBatch {
        try database.save(&document)
        expect(document.revisionID?.generation, equals: 1)
      }
      expect(document.revisionID == nil && document.sequence == 0)
      try database.save(&document, onConflict: .fail)
      let first = document.revisionID
      var copy = document
      try database.inUndoneBatch {
        document["n"] = 2
        try database.save(&document)
        try database.delete(&document)
        copy = document
      }
      expect(document.revisionID == first && copy.revisionID == first && document.sequence == 1)
      try database.save(&copy, onConflict: .fail)
      expect(copy.revisionID?.generation, equals: 2)
    }
  }

  @Test("a read begins again when its snapshot expires", arguments: [EngineName.sqlite, .lmdb])
  func expiredSnapshots(_ engine: EngineName) throws {
    try withStrictDatabase(engine, Strictness(snapshotCommits: 0)) { database in
      for number in 0..<20 { try database.save("doc\(number)", ["n": .int(Int64(number))]) }
      // A caller's body is run once, and is told.
      let code = try storageCode {
        try database.read { snapshot in
          _ = try snapshot.documentCount
          try onAnotherThread { _ = try database.save("new", ["n": 1]) }
          _ = try snapshot.document("doc1")
        }
      }
      expect(code, equals: .snapshotExpired)
      // Or again when it says that it can be.
      var runs = 0
      let count = try database.read(attempts: 3) { snapshot in
        runs += 1
        if runs < 3 { try onAnotherThread { _ = try database.save("new\(runs)", ["n": 1]) } }
        return try snapshot.documentCount
      }
      expect(runs == 3 && count == 23)
      // What collects its answer begins again by itself: in each turn fewer commits are made than it has attempts, so
      // that it ends however slowly it runs.
      for turn in 0..<10 {
        try onThreads(3) { thread in
          if thread == 0 {
            for number in 1..<DocumentStore.defaultAttempts {
              try database.save("doc\(number)", ["n": .int(Int64(turn))])
            }
          } else {
            for _ in 0..<5 {
              _ = try database.documents()
              _ = try database.changes()
              _ = try database.revisions(of: "doc3")
              _ = try database.document("doc4")
            }
          }
        }
      }
    }
  }
}
