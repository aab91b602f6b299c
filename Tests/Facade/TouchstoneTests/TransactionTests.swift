import Dispatch
import Foundation
import Storage
import Synchronization
import TestSupport
import Testing
import Touchstone

private struct Stop: Error {}

/// A gate that one side opens and the other waits for.
private final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  func open() { semaphore.signal() }
  /// Waits at most 15 minutes: other tests may keep the cooperative pool busy. Not for tasks.
  func wait() { expect(semaphore.wait(timeout: .now() + 900), equals: .success) }
  /// Waits without a thread of the cooperative pool.
  func opened() async {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        self.wait()
        continuation.resume()
      }
    }
  }
}

/// Runs `body` on another thread, and waits for its end.
private func onAnotherThread(_ body: () -> Void) {
  withoutActuallyEscaping(body) { body in
    var body = body
    withUnsafeMutablePointer(to: &body) { pointer in
      var thread = pthread_t()
      let result = pthread_create(
        &thread, nil,
        { argument in
          argument?.assumingMemoryBound(to: (() -> Void).self).pointee()
          return nil
        }, pointer)
      expect(result, equals: 0)
      pthread_join(thread, nil)
    }
  }
}

@Suite("Transactions") struct TransactionTests {
  private func withNotes(_ engine: EngineName, _ body: (Database) async throws -> Void) async throws {
    let directory = TemporaryDirectory()
    let database = try Database.open("notes", in: directory.path, options: try options(engine))
    try await body(database)
    try database.close()
  }

  /// The synchronous calls, for asynchronous tests.
  private func writeNow<Result>(
    _ database: Database, _ body: (borrowing Transaction) throws -> Result
  ) throws -> Result { try database.write(body) }

  @Test("the calls of a transaction see each other, and commit together", arguments: someEngines)
  func calls(_ engine: EngineName) async throws {
    try await withNotes(engine) { notes in
      try notes.save("old", ["n": 1])
      let query = try notes.query("SELECT COUNT(*) AS n FROM _")
      let revision = try writeNow(notes) { transaction in
        var note = MutableDocument(id: "a", ["n": 1])
        try transaction.save(&note)
        try expect(transaction.document("a")?["n"].int, equals: 1)
        try transaction.save("b", ["n": 2])
        try transaction.update("b") { $0["n"] = 3 }
        try expect(transaction.document("b")?.revisionID.generation, equals: 2)
        try transaction.delete("old")
        try expect(transaction.document("old") == nil)
        try expect(transaction.document("old", includeDeleted: true)?.isDeleted, equals: true)
        try expect(transaction.run(query)[0]["n"].int, equals: 2)
        try expect(transaction.query("SELECT n FROM _ WHERE n = $n").run(["n": 3]).count, equals: 1)
        try expect(transaction.read { try $0.documentCount }, equals: 2)
        try transaction.saveLocalDocument("l", ["n": 1])
        try expect(transaction.localDocument("l")?.body["n"].int, equals: 1)
        try transaction.setExpiration(of: "b", at: Date(timeIntervalSinceNow: 1_000))
        let read = try #require(try transaction.document("a"))
        try expect(transaction.delete(read) != nil)
        try transaction.purge("a")
        try expect(transaction.document("a", includeDeleted: true) == nil)
        note["n"] = 4
        return try transaction.save(&note, onConflict: .lastWriteWins).revisionID
      }
      try expect(notes.document("a")?.revisionID, equals: revision)
      try expect(notes.document("b")?["n"].int, equals: 3)
      try expect(notes.expiration(of: "b") != nil)
      try expect(notes.localDocument("l") != nil)
    }
  }

  @Test("a transaction that throws changes nothing, also in the caller's documents", arguments: someEngines)
  func rollback(_ engine: EngineName) async throws {
    try await withNotes(engine) { notes in
      var note = MutableDocument(id: "a", ["n": 1])
      try notes.save(&note)
      let before = note.revisionID
      #expect(throws: Stop.self) {
        try writeNow(notes) { transaction in
          note["n"] = 2
          try transaction.save(&note)
          expect(note.revisionID != before)
          throw Stop()
        }
      }
      expect(note.revisionID, equals: before)
      try expect(notes.document("a")?["n"].int, equals: 1)
      // A call that fails leaves the transaction usable.
      try writeNow(notes) { transaction in
        #expect(throws: DocumentError.self) { try transaction.delete("missing") }
        try transaction.save("b", ["n": 1])
      }
      try expect(notes.document("b") != nil)
      // A nested transaction that fails makes the outer one fail.
      #expect(throws: DocumentError.self) {
        try writeNow(notes) { transaction in
          try transaction.save("c", ["n": 1])
          try? writeNow(notes) { _ in throw Stop() }
          try transaction.save("d", ["n": 1])
        }
      }
      try expect(notes.document("c") == nil)
    }
  }

  @Test("on another thread a transaction refuses its calls", arguments: someEngines)
  func otherThread(_ engine: EngineName) async throws {
    try await withNotes(engine) { notes in
      try writeNow(notes) { transaction in
        var code: StorageError.Code?
        onAnotherThread {
          do { try transaction.save("a", ["n": 1]) } catch { code = (error as? StorageError)?.code }
        }
        expect(code, equals: .invalidArgument)
      }
      try expect(notes.document("a") == nil)
    }
  }

  @Test("asynchronous writes and batches commit, and throw what their closures throw", arguments: someEngines)
  func asynchronous(_ engine: EngineName) async throws {
    try await withNotes(engine) { notes in
      let sequence = try await notes.write { try $0.save("a", ["n": 1]).sequence }
      expect(sequence, equals: 1)
      try await notes.inBatch {
        try notes.save("b", ["n": 1])
        try notes.save("c", ["n": 1])
      }
      #expect(try await notes.read { try $0.documentCount } == 3)
      await #expect(throws: Stop.self) {
        try await notes.write { transaction in
          try transaction.save("d", ["n": 1])
          throw Stop()
        }
      }
      await #expect(throws: Stop.self) {
        try await notes.inBatch {
          try notes.save("d", ["n": 1])
          throw Stop()
        }
      }
      await #expect(throws: Stop.self) { try await notes.read { _ in throw Stop() } }
      try expect(notes.document("d") == nil)
    }
    let directory = TemporaryDirectory()
    let closed = try Database.open("closed", in: directory.path, options: try options(engine))
    try closed.close()
    for call in [
      { try await closed.write { _ in } }, { try await closed.inBatch {} },
      { try await closed.read { _ in } },
    ] as [() async throws -> Void] {
      do {
        try await call()
        Issue.record("a closed database was used")
      } catch let error as DatabaseError { expect(error.code, equals: .closed) }
    }
  }

  @Test("a cancelled task rolls its transaction back, wherever it is", arguments: someEngines)
  func cancellation(_ engine: EngineName) async throws {
    try await withNotes(engine) { notes in
      // Before the body begins, while another write runs: at once.
      let (isRunning, mayEnd) = (Gate(), Gate())
      let first = Task {
        try await notes.write { transaction in
          isRunning.open()
          mayEnd.wait()
          try transaction.save("first", ["n": 1])
        }
      }
      await isRunning.opened()
      let waiting = Task { try await notes.write { _ = try $0.save("waiting", ["n": 1]) } }
      waiting.cancel()
      await #expect(throws: CancellationError.self) { try await waiting.value }
      mayEnd.open()
      try await first.value

      // Inside the body: at the next call.
      for usesBatch in [false, true] {
        let (hasSaved, isCancelled) = (Gate(), Gate())
        let hasGoneOn = Atomic<Bool>(false)
        let inside = Task {
          if usesBatch {
            try await notes.inBatch {
              try notes.save("inside", ["n": 1])
              hasSaved.open()
              isCancelled.wait()
            }
          } else {
            try await notes.write { transaction in
              try transaction.save("inside", ["n": 1])
              hasSaved.open()
              isCancelled.wait()
              try transaction.save("after", ["n": 1])
              hasGoneOn.store(true, ordering: .releasing)
            }
          }
        }
        await hasSaved.opened()
        inside.cancel()
        isCancelled.open()
        await #expect(throws: CancellationError.self) { try await inside.value }
        let goneOn = hasGoneOn.load(ordering: .acquiring)
        expect(!goneOn)
        try expect(notes.document("inside") == nil)
      }
      try expect(notes.document("first") != nil)
      try expect(notes.document("waiting") == nil)

      // In a scan of a read.
      try writeNow(notes) { transaction in
        for n in 0..<100 { try transaction.save("doc\(n)", ["n": 1]) }
      }
      let (isScanning, isReadCancelled) = (Gate(), Gate())
      let seen = Atomic<Int>(0)
      let read = Task {
        try await notes.read { snapshot in
          try snapshot.forEachDocument { _ in
            if seen.add(1, ordering: .relaxed).newValue == 1 {
              isScanning.open()
              isReadCancelled.wait()
            }
            return true
          }
        }
      }
      await isScanning.opened()
      read.cancel()
      isReadCancelled.open()
      await #expect(throws: CancellationError.self) { try await read.value }
      let count = seen.load(ordering: .relaxed)
      expect(count, equals: 1)
    }
  }

  @Test("cancellation at any moment loses nothing and stores nothing half", arguments: someEngines)
  func cancellationAtRandom(_ engine: EngineName) async throws {
    try await withNotes(engine) { notes in
      for round in 0..<200 {
        let task = Task {
          try await notes.write { transaction in
            try transaction.save("left", ["n": .int(Int64(round))])
            try transaction.save("right", ["n": .int(Int64(round))])
          }
        }
        let canceller = Task.detached {
          for _ in 0..<(round % 20) { await Task.yield() }
          task.cancel()
        }
        let isCommitted: Bool
        do {
          try await task.value
          isCommitted = true
        } catch is CancellationError { isCommitted = false }
        await canceller.value
        let (left, right) = (try notes.document("left")?["n"].int, try notes.document("right")?["n"].int)
        expect(left, equals: right)
        expect((left == Int64(round)), equals: isCommitted)
      }
    }
  }

  @Test("many asynchronous readers run beside a writer", arguments: someEngines)
  func readers(_ engine: EngineName) async throws {
    try await withNotes(engine) { notes in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for n in 0..<100 {
          group.addTask {
            try await notes.write { transaction in
              try transaction.save("a", ["n": .int(Int64(n))])
              try transaction.save("b", ["n": .int(Int64(n))])
            }
          }
          group.addTask {
            try await notes.read { snapshot in
              let (a, b) = (try snapshot.document("a"), try snapshot.document("b"))
              expect(a?["n"].int, equals: b?["n"].int)
            }
          }
        }
        try await group.waitForAll()
      }
    }
  }
}
