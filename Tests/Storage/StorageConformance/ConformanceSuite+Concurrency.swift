import Foundation
import Storage

/// Threads that are waited for. Their errors are collected.
final class TestThreads: Sendable {
  private let count = Lock(0)
  private let errors = Lock<[any Error]>([])
  private let ended = CountingSemaphore()

  func start(_ body: @escaping @Sendable () throws -> Void) {
    count.withLock { $0 += 1 }
    Thread.detachNewThread { [errors, ended] in
      do { try body() } catch { errors.withLock { $0.append(error) } }
      ended.signal()
    }
  }

  /// Waits for all threads, and throws the first error.
  func wait(seconds: Double = 1_200) throws {
    for _ in 0..<count.withLock({ $0 }) where !ended.wait(seconds: seconds) {
      throw ConformanceFailure("a thread hangs")
    }
    count.withLock { $0 = 0 }
    if let error = errors.withLock({ $0.first }) { throw error }
  }
}

extension ConformanceSuite {
  static let concurrencyBehaviours: [Behaviour] = [
    Behaviour("many readers see whole commits while several threads write") { suite, engine in
      try Counters.make(engine)
      let writes = suite.times(120, 300, long: 5_000)
      let isOver = Lock(false)
      let writers = TestThreads()
      let readers = TestThreads()
      for _ in 0..<4 {
        writers.start { for _ in 0..<writes { try Counters.increment(engine) } }
      }
      for _ in 0..<4 {
        readers.start {
          var last = 0
          while !isOver.withLock({ $0 }) {
            let count = try Counters.count(engine)
            try expect(count >= last, "a later snapshot is of an earlier commit: \(count) after \(last)")
            last = count
          }
        }
      }
      let outcome = Result { try writers.wait() }
      isOver.withLock { $0 = true }
      try readers.wait()
      try outcome.get()
      try expectEqual(Counters.count(engine), 4 * writes, "the sum of all increments")
      try expectEqual(engine.maintenance.statistics().openReaders, 0, "open readers")
    },

    Behaviour("writers that share a commit fail alone") { suite, engine in
      let keyspaces = try engine.write { transaction in
        try KeyspaceShape.allCases.map { try transaction.createKeyspace("k\($0.rawValue)", shape: $0) }
      }
      let writes = suite.isLong ? 2_000 : 150
      let committed = Lock<Set<UInt64>>([])
      let threads = TestThreads()
      for thread in 0..<8 {
        threads.start {
          var generator = SeededGenerator(seed: suite.seed &+ UInt64(thread))
          for number in 0..<writes {
            let key = UInt64(thread << 32 + number)
            let fails = generator.once(in: 3)
            do {
              try engine.write { transaction in
                for keyspace in keyspaces {
                  try transaction.put(sequenceKey(key), generator.bytes(generator.below(400)), in: keyspace)
                }
                if fails {
                  let others = try transaction.count(of: keyspaces[0])
                  if generator.once(in: 4) {
                    // Deletes the entries of the group's other writers. The rollback of this body must
                    // restore them.
                    for keyspace in keyspaces { _ = try transaction.deleteRange(.all, in: keyspace) }
                    _ = try transaction.createKeyspace("t\(thread)-\(number)", shape: .entries)
                  }
                  throw DeliberateError(number: others)
                }
              }
              try expect(!fails, "a write whose body threw returned")
              committed.withLock { _ = $0.insert(key) }
            } catch is DeliberateError { try expect(fails, "a body's error reached another writer") }
          }
        }
      }
      try threads.wait()
      try engine.read { transaction in
        let wanted = committed.withLock { $0 }.sorted().map { sequenceKey($0) }
        for keyspace in keyspaces {
          try expectEqual(transaction.count(of: keyspace), wanted.count, "count of \(keyspace.shape)")
          try expect(transaction.entries(of: keyspace).map(\.key) == wanted, "other keys than committed ones")
        }
        try expectEqual(transaction.keyspaces().count, 3, "keyspaces")
      }
      try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
    },

    Behaviour("keyspaces made and dropped by writers that share commits") { _, engine in
      let threads = TestThreads()
      for thread in 0..<6 {
        threads.start {
          for round in 0..<60 {
            let keyspace = try engine.write { transaction in
              let keyspace = try transaction.createKeyspace(
                "k\(thread)", shape: KeyspaceShape.allCases[round % 3])
              try transaction.put(sequenceKey(UInt64(round)), [UInt8(thread)], in: keyspace)
              return keyspace
            }
            try engine.undoneWrite { transaction in
              try transaction.dropKeyspace(keyspace)
              _ = try transaction.createKeyspace("k\(thread)", shape: .entries)
            }
            try engine.read { transaction in
              try expectEqual(transaction.keyspace(named: "k\(thread)"), keyspace, "the handle")
              try expectEqual(
                transaction.bytes(sequenceKey(UInt64(round)), in: keyspace), [UInt8(thread)], "the entry")
            }
            try engine.write { try $0.dropKeyspace(keyspace) }
          }
        }
      }
      try threads.wait()
      try expectEqual(engine.read { try $0.keyspaces().count }, 0, "keyspaces at the end")
    },

    Behaviour("snapshots are begun on one thread and ended on another") { _, engine in
      try Counters.make(engine)
      let handed = Lock<[Handed]>([])
      let threads = TestThreads()
      for thread in 0..<4 {
        threads.start {
          for round in 0..<200 {
            if thread == 0 { try Counters.increment(engine) }
            let snapshot = Handed(try engine.beginRead())
            let other = handed.withLock { waiting -> Handed? in
              waiting.append(snapshot)
              return waiting.count > 20 || round == 199 ? waiting.removeFirst() : nil
            }
            if let transaction = other?.transaction {
              let left = try transaction.text("counter", in: transaction.known("left"))
              try expectEqual(transaction.text("counter", in: transaction.known("right")), left, "counters")
              transaction.end()
            }
          }
        }
      }
      try threads.wait()
      for snapshot in handed.withLock({ $0 }) { snapshot.transaction.end() }
      try expectEqual(engine.maintenance.statistics().openReaders, 0, "open readers")
    },
  ]
}

/// A snapshot that moves to another thread. Snapshots may do that, if only one thread at a time uses them.
private final class Handed: @unchecked Sendable {
  let transaction: any ReadTransaction
  init(_ transaction: any ReadTransaction) { self.transaction = transaction }
}
