import TestSupport

@testable import Documents
@testable import StorageConformance

/// What an observer was told, and what follows from it: the documents by ID with their revisions.
private final class Told: Sendable {
  struct State {
    var batches: [DatabaseChange] = []
    var documents: [String: DocumentChange] = [:]
  }
  let state = Lock(State())
  private let news = CountingSemaphore()

  func add(_ change: DatabaseChange) {
    state.withLock { state in
      state.batches.append(change)
      for change in change.changes {
        state.documents[change.documentID] = change.kind == .saved ? change : nil
      }
    }
    news.signal()
  }

  var changes: [DocumentChange] { state.withLock { $0.batches.flatMap(\.changes) } }

  /// Waits until `condition` holds of what was told; false after half a minute.
  func wait(until condition: (State) -> Bool) -> Bool {
    let deadline = Date(timeIntervalSinceNow: 30)
    while !state.withLock({ condition($0) }) {
      guard Date() < deadline else { return false }
      _ = news.wait(seconds: 1)
    }
    return true
  }

  func expect(
    _ condition: (State) -> Bool, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    if !wait(until: condition) {
      Issue.record("it wasn't told: \(changes.suffix(5))", sourceLocation: sourceLocation)
    }
  }

  var callCount: Int { state.withLock { $0.batches.count } }
  var missed: [UInt64] { state.withLock { $0.batches.compactMap(\.missedSince) } }

  /// What was told agrees with what is stored.
  func agrees(with database: Database) throws -> Bool {
    let stored = try storedDocuments(database)
    return wait {
      $0.documents.mapValues { "\($0.revisionID.map(\.description) ?? "") \($0.isDeleted)" } == stored
    }
  }
}

private func storedDocuments(_ database: Database) throws -> [String: String] {
  let documents = try database.documents(AllDocuments(.includingDeleted))
  return Dictionary(uniqueKeysWithValues: documents.map { ($0.id, "\($0.revisionID) \($0.isDeleted)") })
}

@Suite("Observers") struct ObserverTests {
  private let databases = TestDatabases()

  private let directory = TemporaryDirectory()

  @Test(
    "a callback is told after the commit, with IDs, revisions, sequence and flags", arguments: someEngines)
  func flags(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let told = Told()
    let token = try database.observe { told.add($0) }
    let first = try database.save("a", ["n": 1])
    told.expect { $0.documents["a"] != nil }
    let change = told.changes[0]
    #expect(change.kind == .saved && change.documentID == "a" && change.revisionID == first.revisionID)
    #expect(
      change.sequence == first.sequence && !change.isDeleted && !change.isConflicted && !change.isFromSync)
    try database.apply(PulledRevision(id: "a", history: ["1-ff00"], body: ["n": 2]))
    told.expect { $0.documents["a"]?.isConflicted == true }
    #expect(told.changes.last?.isFromSync == true)
    // The current revision, not the one that came.
    #expect(try told.changes.last?.revisionID == database.document("a")?.revisionID)
    try database.save("b", ["n": 1])
    let tombstone = try database.delete("b")
    told.expect { $0.documents["b"]?.isDeleted == true }
    #expect(told.changes.last?.revisionID == tombstone.revisionID)
    #expect(told.changes.last?.isFromSync == false)
    try database.purge("b")
    told.expect { $0.documents["b"] == nil }
    #expect(told.changes.last?.kind == .purged && told.changes.last?.sequence == 0)
    #expect(try database.changes().map(\.isFromSync) == [true])
    token.cancel()
    let count = told.changes.count
    try database.save("c", ["n": 1])
    try database.close()
    #expect(told.changes.count == count)
  }

  @Test("a batch is told once, after its commit; one that fails never", arguments: someEngines)
  func batches(_ engine: EngineName) throws {
    struct Stop: Error {}
    try withDatabase(engine) { database in
      let told = Told()
      let token = try database.observe { told.add($0) }
      try database.inUndoneBatch {
        try database.save("never", ["n": 1])
      }
      try database.inBatch {
        for n in 0..<10 { try database.save("doc\(n % 5)", ["n": .int(Int64(n))]) }
        if !told.changes.isEmpty { Issue.record("told before the commit: \(told.changes)") }
      }
      told.expect { !$0.batches.isEmpty }
      #expect(told.callCount == 1)
      #expect(told.changes.map(\.documentID) == (0..<5).map { "doc\($0)" })
      #expect(told.changes.map(\.sequence) == [6, 7, 8, 9, 10])
      token.cancel()
    }
  }

  @Test("an observer that begins inside a batch is told of the batch", arguments: someEngines)
  func beginsInBatch(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("before", ["n": 1])
    let told = Told()
    var token: ObservationToken?
    try database.inBatch {
      try database.save("a", ["n": 1])
      token = try database.observe { told.add($0) }
      try database.save("b", ["n": 1])
      try database.purge("before")
    }
    told.expect { $0.documents.keys.sorted() == ["a", "b"] }
    #expect(told.changes.contains { $0.documentID == "before" && $0.kind == .purged })
    token?.cancel()
  }

  @Test("writers that share commits are told in the order of their sequences", arguments: someEngines)
  func order(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.durability = .normal }
    let told = Told()
    let tokens = try (0..<3).map { _ in try database.observe { told.add($0) } }
    tokens[1].cancel()
    tokens[2].cancel()
    try onThreads(6) { thread in
      for n in 0..<50 {
        _ = try? database.save("\(thread)-\(n)", ["n": 1])
        if n % 7 == 6 { try? database.purge("\(thread)-\(n - 1)") }
      }
    }
    #expect(try told.agrees(with: database))
    let sequences = told.changes.map(\.sequence).filter { $0 > 0 }
    #expect(sequences == sequences.sorted() && Set(sequences).count == sequences.count)
    tokens[0].cancel()
  }

  @Test("random changes beside a slow observer: what it was told is what is stored", arguments: someEngines)
  func randomChanges(_ engine: EngineName) throws {
    try withSeed { random in
      try withDatabase(engine) { database in
        let told = Told()
        let gate = CountingSemaphore()
        let token = try database.observe { change in
          // Held up at first, until all is written: more than it keeps.
          if told.changes.isEmpty { gate.wait() }
          told.add(change)
        }
        try database.save("first", ["n": 1])
        for round in 0..<40 {
          try database.inBatch {
            for _ in 0..<1_000 {
              let id = "doc\(UInt32.random(in: 0..<3_000, using: &random))"
              switch UInt8.random(in: 0..<10, using: &random) {
              case 0: if try database.document(id) != nil { try database.delete(id) }
              case 1: if try database.document(id, includeDeleted: true) != nil { try database.purge(id) }
              default: try database.save(id, ["round": .int(Int64(round))])
              }
            }
          }
        }
        gate.signal()
        #expect(try told.agrees(with: database))
        try database.save("last", ["n": 1])
        #expect(try told.agrees(with: database))
        #expect(told.missed == [])
        // It fell behind: there were fewer calls than batches.
        #expect(told.callCount < 40)
        token.cancel()
      }
    }
  }

  @Test(
    "one transaction with more changes than are noted is told whole", arguments: [EngineName.lmdb, .sqlite])
  func hugeBatch(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("purged", ["n": 1])
    let told = Told()
    let token = try database.observe { told.add($0) }
    try database.inBatch {
      for n in 0..<40_000 { try database.save("document-\(n)", ["n": 1]) }
      try database.purge("purged")
    }
    #expect(try told.agrees(with: database))
    #expect(told.changes.contains { $0.documentID == "purged" && $0.kind == .purged })
    token.cancel()
  }

  @Test("the purge of a branch is told, also to who is behind", arguments: someEngines)
  func purgedBranches(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let told = Told()
    let toldOfA = Told()
    let gate = CountingSemaphore()
    let token = try database.observe { change in
      told.add(change)
      if change.documentIDs.contains("b") { gate.wait() }
    }
    let tokenOfA = try database.observe("a") {
      toldOfA.add(DatabaseChange(changes: [$0], missedSince: nil))
    }
    func branch() throws {
      let local = try database.save("a", ["n": 1], onConflict: .lastWriteWins).revisionID
      try database.apply(PulledRevision(id: "a", history: ["\(local.generation)-zz"], body: ["n": 2]))
      told.expect { $0.documents["a"]?.isConflicted == true }
      toldOfA.expect { $0.documents["a"]?.isConflicted == true }
    }
    func purge() throws -> DocumentChange {
      let current = try #require(try database.document("a"))
      #expect(current.isConflicted)
      let last = try database.lastSequence
      try database.purge("a", branch: current.revisionID)
      return DocumentChange(
        kind: .saved, documentID: "a", revisionID: try #require(try database.document("a")).revisionID,
        sequence: last + 1, isDeleted: false, isConflicted: false, isFromSync: false)
    }
    try branch()
    let first = try purge()
    told.expect { $0.documents["a"] == first }
    toldOfA.expect { $0.documents["a"] == first }
    try branch()
    // Now it is told while more is written than waits as notes.
    try database.save("b", ["n": 1])
    told.expect { $0.documents["b"] != nil }
    let second = try purge()
    let name = String(repeating: "c", count: 200)
    for round in 0..<5 {
      try database.inBatch {
        for n in 0..<1_000 { try database.save("\(name)\(n)", ["n": .int(Int64(round))]) }
      }
    }
    gate.signal()
    told.expect { $0.documents["a"] == second }
    toldOfA.expect { $0.documents["a"] == second }
    token.cancel()
    tokenOfA.cancel()
  }

  @Test("documents are told apart by the bytes of their IDs", arguments: someEngines)
  func normalizedIDs(_ engine: EngineName) throws {
    let composed = "caf\u{e9}"
    let decomposed = "cafe\u{301}"
    try withDatabase(engine) { database in
      let all = Told()
      let perDocument = Lock([DocumentChange]())
      let tokens = [
        try database.observe { all.add($0) },
        try database.observe(composed) { change in perDocument.withLock { $0.append(change) } },
      ]
      try database.inBatch {
        try database.save(composed, ["a": 1])
        try database.save(decomposed, ["a": 2])
      }
      try database.save(decomposed, ["a": 3])
      // What comes last, after whatever else would have come.
      try database.save(composed, ["a": 4])
      all.expect { $0.batches.flatMap(\.changes).contains { $0.sequence == 4 } }
      eventually { perDocument.withLock { $0.contains { $0.sequence == 4 } } }
      #expect(perDocument.withLock { $0 }.allSatisfy { $0.documentID.utf8.elementsEqual(composed.utf8) })
      let sequences = all.changes.map(\.sequence)
      #expect(sequences.contains(1) || sequences.contains(4))
      #expect(sequences.contains(2) || sequences.contains(3))
      #expect(Set(all.changes.map { ByteString($0.documentID) }).count == 2)
      withExtendedLifetime(tokens) {}
    }
  }

  @Test("changes come as an asynchronous sequence, which ends with the database", arguments: someEngines)
  func asyncSequence(_ engine: EngineName) async throws {
    let database = try databases.open(engine)
    let changes = try database.changes
    let writer = Task.detached {
      for n in 0..<200 { try await database.write { _ = try $0.save("doc\(n)", ["n": .int(Int64(n))]) } }
      try database.close()
    }
    var seen: [String] = []
    for await change in changes { seen += change.documentIDs }
    try await writer.value
    #expect(seen == (0..<200).map { "doc\($0)" })
    let error = await #expect(throws: DatabaseError.self) {
      try await database.write { _ = try $0.document("doc1") }
    }
    #expect(error?.code == .closed)
  }

  @Test("a loop over changes ends when its task is cancelled", arguments: [EngineName.lmdb])
  func cancellation(_ engine: EngineName) async throws {
    let database = try databases.open(engine)
    let changes = try database.changes
    for _ in 0..<50 {
      let task = Task.detached {
        var count = 0
        for await change in changes { count += change.changes.count }
        return count
      }
      await Task.yield()
      task.cancel()
      #expect(await task.value == 0)
    }
    try database.save("a", ["n": 1])
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next()?.documentIDs == ["a"])
    try database.close()
    #expect(await iterator.next() == nil)
  }

  @Test("observers of one document are told of that one, and of its purge", arguments: someEngines)
  func oneDocument(_ engine: EngineName) async throws {
    let database = try databases.open(engine)
    var iterator = try database.changes(of: "mine").makeAsyncIterator()
    let told = Told()
    let token = try database.observe("mine") { told.add(DatabaseChange(changes: [$0], missedSince: nil)) }
    for n in 0..<5 {
      try database.save("other", ["n": .int(Int64(n))])
      try database.save("mine", ["n": .int(Int64(n))])
    }
    let latest = await iterator.next()
    #expect(latest?.revisionID?.generation == 5)
    told.expect { $0.documents["mine"]?.revisionID?.generation == 5 }
    // More than is noted of one transaction: it reads the document.
    try await database.write { transaction in
      for n in 0..<30_000 { try transaction.save("document-number-\(n)", ["n": 1]) }
      try transaction.save("mine", ["n": 6])
    }
    #expect(await iterator.next()?.revisionID?.generation == 6)
    try database.purge("mine")
    #expect(await iterator.next()?.kind == .purged)
    told.expect { $0.documents["mine"] == nil }
    token.cancel()
    try database.close()
    #expect(await iterator.next() == nil)
  }

  @Test("an asynchronous write is one transaction, and fails as a whole", arguments: someEngines)
  func asyncWrite(_ engine: EngineName) async throws {
    struct Stop: Error {}
    let database = try databases.open(engine)
    await #expect(throws: Stop.self) {
      try await database.write { transaction in
        try transaction.save("a", ["n": 1])
        throw Stop()
      }
    }
    #expect(try database.document("a") == nil)
    // More than the pool has threads, beside synchronous writers.
    try await withThrowingTaskGroup(of: Void.self) { group in
      for n in 0..<64 {
        group.addTask {
          let sequence = try await database.write { transaction in
            let count = try transaction.document("count")?["n"].int ?? 0
            return try transaction.save("count", ["n": .int(count + 1)]).sequence
          }
          #expect(sequence > 0)
          if n % 2 == 0 { try database.save("sync\(n)", ["n": 1]) }
        }
      }
      try await group.waitForAll()
    }
    #expect(try database.document("count")?["n"].int == 64)
    let task = Task.detached {
      withUnsafeCurrentTask { $0?.cancel() }
      try await database.write { _ = try $0.save("never", ["n": 1]) }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try database.document("never") == nil)
  }

  @Test("observers may write, read and end themselves inside a callback", arguments: someEngines)
  func insideCallbacks(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let done = CountingSemaphore()
    let token = Lock<ObservationToken?>(nil)
    let made = try database.observe { change in
      guard change.documentIDs.contains("a") else { return }
      _ = try? database.save("answer", ["n": 1])
      token.withLock { $0?.cancel() }
      done.signal()
    }
    token.withLock { $0 = made }
    try database.save("a", ["n": 1])
    #expect(done.wait(seconds: 30))
    #expect(try database.document("answer") != nil)
  }

  @Test("changes of another process are told when they are noticed", arguments: sharedEngines)
  func otherProcess(_ engine: EngineName) throws {
    var options = try options(engine)
    options.durability = .normal
    let database = try Database.open("test", in: directory.path, options: options)
    let told = Told()
    let token = try database.observe { told.add($0) }
    try database.save("before", ["n": 1])
    try ProcessTests.write(engine, directory, "theirs", 20)
    told.expect { $0.documents["before"] != nil }
    try database.noticeChanges()
    #expect(try told.agrees(with: database))
    #expect(told.changes.contains { $0.documentID == "theirs-19" })
    // A write of this process notices as well.
    try ProcessTests.write(engine, directory, "more", 20)
    try database.save("after", ["n": 1])
    #expect(try told.agrees(with: database))
    #expect(told.changes.contains { $0.documentID == "more-19" })
    token.cancel()
    try database.close()
  }
}
