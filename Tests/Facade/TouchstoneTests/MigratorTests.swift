import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

private struct Stop: Error {}

@Suite("Migrations") struct MigratorTests {
  @Test("each migration runs once, in order, with its record in its own transaction", arguments: someEngines)
  func once(_ engine: EngineName) throws {
    try withDatabase(engine) { notes in
      try notes.save("a", ["tag": "x"])
      let runs = Lock<[String]>([])
      var migrator = DatabaseMigrator()
      migrator.register("one") { transaction in
        runs.withLock { $0.append("one") }
        try transaction.update("a") { note in
          note["tags"] = [note["tag"]]
          note.remove("tag")
        }
        try transaction.createIndex("byTag", unnest: "tags")
      }
      migrator.register("two") { transaction in
        runs.withLock { $0.append("two") }
        try transaction.save("b", ["tags": ["y"]])
      }
      try expect(!migrator.isComplete(in: notes))
      try expect(migrator.migrate(notes, upTo: "one"), equals: ["one"])
      try expect(migrator.migrate(notes), equals: ["two"])
      try expect(migrator.migrate(notes), equals: [])
      expect(runs.withLock { $0 }, equals: ["one", "two"])
      try expect(migrator.applied(in: notes), equals: ["one", "two"])
      try expect(migrator.isComplete(in: notes) && !migrator.isSuperseded(in: notes))
      try expect(notes.indexes.map(\.name), equals: ["byTag"])
      try expect(notes.document("a")?["tags"][0].string, equals: "x")

      var older = DatabaseMigrator()
      older.register("one") { _ in throw Stop() }
      try expect(older.migrate(notes), equals: [])
      try expect(older.isSuperseded(in: notes))
    }
  }

  @Test("a migration that fails leaves no trace, and runs again", arguments: someEngines)
  func failure(_ engine: EngineName) throws {
    try withDatabase(engine) { notes throws in
      let fails = Lock(true)
      var migrator = DatabaseMigrator()
      migrator.register("first") { transaction in try transaction.save("first", ["n": 1]) }
      migrator.register("second") { transaction in
        try transaction.save("second", ["n": 1])
        if fails.withLock({ $0 }) { throw Stop() }
      }
      migrator.register("third") { transaction in try transaction.save("third", ["n": 1]) }
      #expect(throws: Stop.self) { try migrator.migrate(notes) }
      try expect(migrator.applied(in: notes), equals: ["first"])
      try expect(notes.documents().map(\.id), equals: ["first"])
      fails.withLock { $0 = false }
      try expect(migrator.migrate(notes), equals: ["second", "third"])
      try expect(notes.documents().map(\.id), equals: ["first", "second", "third"])
      #expect(throws: StorageError.self) { try migrator.migrate(notes, upTo: "fourth") }
      #expect(throws: StorageError.self) { try notes.inBatch { _ = try migrator.migrate(notes) } }
    }
  }

  @Test("a task migrates without blocking its pool, and stops when it is cancelled", arguments: someEngines)
  func asynchronous(_ engine: EngineName) async throws {
    let directory = TemporaryDirectory()
    let notes = try Database.open("notes", in: directory.path, options: try options(engine))
    let cancelled = Lock<Task<[String], any Error>?>(nil)
    var migrator = DatabaseMigrator()
    migrator.register("first") { transaction in
      try transaction.save("first", ["n": 1])
      // The task exists by the time that it runs this.
      while cancelled.withLock({ $0?.cancel() }) == nil { usleep(1_000) }
    }
    migrator.register("second") { transaction in try transaction.save("second", ["n": 1]) }
    let task = Task { [migrator] in try await migrator.migrate(notes) }
    cancelled.withLock { $0 = task }
    await #expect(throws: CancellationError.self) { try await task.value }
    try expect(migrator.applied(in: notes), equals: ["first"])
    #expect(try await migrator.migrate(notes) == ["second"])
    try expect(migrator.isComplete(in: notes))
    try notes.close()
  }

  @Test("many threads that migrate at once run each migration once", arguments: someEngines)
  func atOnce(_ engine: EngineName) throws {
    try withDatabase(engine) { notes throws in
      let runs = Lock(0)
      var migrator = DatabaseMigrator()
      for number in 0..<5 {
        migrator.register("m\(number)") { transaction in
          runs.withLock { $0 += 1 }
          try transaction.update("count", creating: true) { $0["n"] = .int(($0["n"].int ?? 0) + 1) }
        }
      }
      try onThreads(4) { [migrator] _ in
        do { try migrator.migrate(notes) } catch { Issue.record("\(error)") }
      }
      expect(runs.withLock { $0 }, equals: 5)
      try expect(notes.document("count")?["n"].int, equals: 5)
      try expect(migrator.applied(in: notes), equals: migrator.names)
    }
  }
}
