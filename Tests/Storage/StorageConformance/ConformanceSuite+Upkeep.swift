import Foundation
import Storage

extension ConformanceSuite {
  static let upkeepBehaviours: [Behaviour] = [
    Behaviour("statistics count what is there") { suite, engine in
      _ = try suite.fill(engine)
      let statistics = try engine.maintenance.statistics()
      try expectEqual(statistics.entries, ["documents": 200, "entries": 200, "sequences": 200], "entries")
      try expect(statistics.fileBytes > 0, "bytes of the file")
      try expect(statistics.pageBytes > 0 && statistics.totalPages > 0, "pages")
      try expect(0...statistics.totalPages ~= statistics.freePages, "free pages")
      try engine.read { _ in try expectEqual(engine.maintenance.statistics().openReaders, 1, "open readers")
      }
    },

    Behaviour("counts are right after everything that changes them, and after reopening") { suite in
      try suite.withEngine { engine in
        _ = try suite.fill(engine)
        try engine.write { transaction in
          for keyspace in try transaction.keyspaces().values {
            try transaction.put(sequenceKey(9_999_999), [1], in: keyspace)
            try transaction.put(sequenceKey(9_999_999), [2], in: keyspace)
            _ = try transaction.insert(sequenceKey(9_999_999), [3], in: keyspace)
            try transaction.append([0x7F] + sequenceKey(9_999_999).dropFirst(), [4], in: keyspace)
            _ = try transaction.delete(sequenceKey(9_999_999), in: keyspace)
            _ = try transaction.delete(sequenceKey(9_999_998), in: keyspace)
            try expectEqual(transaction.count(of: keyspace), 201, "count in the transaction")
          }
        }
        try engine.read { transaction in
          for keyspace in try transaction.keyspaces().values {
            try expectEqual(transaction.count(of: keyspace), 201, "count after it")
          }
        }
      }
      try suite.withEngine { engine in
        try expectEqual(
          Array(engine.maintenance.statistics().entries.values), [201, 201, 201], "counts after reopening")
      }
    },

    Behaviour("a backup is a whole copy of one commit, made beside a writer") { suite, engine in
      _ = try suite.fill(engine)
      try Counters.make(engine)
      let isOver = Lock(false)
      let threads = TestThreads()
      threads.start {
        while !isOver.withLock({ $0 }) { try Counters.increment(engine) }
      }
      for round in 0..<3 {
        let before = try Counters.count(engine)
        try engine.maintenance.backup(to: suite.path("copy\(round)"))
        let after = try Counters.count(engine)
        try suite.withEngine("copy\(round)", suite.options(creation: .openExisting)) { copy in
          let count = try Counters.count(copy)
          try expect(before...after ~= count, "the copy is of commit \(count), not of \(before) to \(after)")
          try expectEqual(copy.maintenance.checkIntegrity(), [], "faults of the copy")
        }
      }
      isOver.withLock { $0 = true }
      try threads.wait()

      let content = try Content(engine)
      try engine.maintenance.backup(to: suite.path("last"))
      try suite.withEngine("last") { copy in
        try expectEqual(Content(copy), content, "content of the copy")
        try copy.write { try $0.put("only here", "x", in: $0.known("documents")) }
      }
      try expectEqual(Content(engine), content, "content after a write to the copy")
      let copied = try suite.withEngine("last") { try Content($0) }
      try expectError(.alreadyExists, from: "a backup over a file") {
        try engine.maintenance.backup(to: suite.path("last"))
      }
      try suite.withEngine("last") { try expectEqual(Content($0), copied, "the file that was there") }
    },

    Behaviour("a backup that fails leaves no file", needs: [.files]) { suite, engine in
      _ = try suite.fill(engine)
      try expectError(.notFound, .ioError, from: "a backup into no directory") {
        try engine.maintenance.backup(to: "\(suite.directory)/no/such/copy")
      }
      let names = try FileManager.default.contentsOfDirectory(atPath: suite.directory)
      try expect(names.allSatisfy { $0.hasPrefix("main.") }, "files after a failed backup: \(names)")
    },

    Behaviour("a backup has no unused pages", needs: [.files]) { suite, engine in
      _ = try suite.fill(engine, count: 5_000)
      try engine.write { transaction in
        for keyspace in try transaction.keyspaces().values {
          _ = try transaction.deleteRange(KeyRange(lower: .inclusive([0x6B])), in: keyspace)
        }
        _ = try transaction.deleteRange(
          KeyRange(lower: .inclusive(sequenceKey(100))), in: transaction.known("sequences"))
      }
      let before = try engine.maintenance.statistics().totalPages
      try engine.maintenance.backup(to: suite.path("copy"))
      try suite.withEngine("copy") { copy in
        let statistics = try copy.maintenance.statistics()
        try expect(
          statistics.totalPages * 2 < before, "the copy has \(statistics.totalPages) of \(before) pages")
        try expectEqual(Content(copy), Content(engine), "content of the copy")
      }
    },

    Behaviour("compacting keeps the content and gives space back, or says that it can't") { suite in
      try suite.withEngine { engine in
        _ = try suite.fill(engine, count: 5_000)
        let full = try engine.maintenance.statistics().totalPages
        try engine.write { transaction in
          _ = try transaction.deleteRange(.all, in: transaction.known("documents"))
          try transaction.put("a", "b", in: transaction.known("documents"))
        }
        let content = try Content(engine)
        let before = try engine.maintenance.statistics()
        guard try engine.maintenance.compactsInPlace else {
          try expectError(.unsupported, from: "compact") { try engine.maintenance.compact() }
          return try expectEqual(Content(engine), content, "content")
        }
        let snapshot = try engine.beginRead()
        try engine.maintenance.compact()
        try expectEqual(Content(snapshot), content, "a snapshot during compaction")
        snapshot.end()
        try engine.maintenance.compact()
        let after = try engine.maintenance.statistics()
        try expect(
          after.totalPages - after.freePages <= before.totalPages && after.totalPages * 2 < full,
          "\(full) pages became \(after.totalPages)")
        try expectEqual(Content(engine), content, "content after compaction")
        try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
        try engine.write { try $0.put("after", "x", in: $0.known("documents")) }
      }
      try suite.withEngine { engine in
        try expectEqual(engine.maintenance.checkIntegrity(), [], "faults after reopening")
        if try engine.maintenance.compactsInPlace {
          try expectEqual(engine.read { try $0.text("after", in: $0.known("documents")) }, "x", "the entry")
        }
      }
    },

    Behaviour("pages of deleted entries are used again") { suite in
      guard suite.subject.keepsFiles else { return }
      // An engine with a log writes as much as its buffers hold before it uses space again.
      var options = suite.options()
      options.cacheBytes = 1 << 20
      try suite.withEngine("main", options) { engine in
        var sizes: [Int] = []
        for round in 0..<30 {
          try engine.write { transaction in
            let keyspace = try transaction.createKeyspace("k", shape: .documents)
            _ = try transaction.deleteRange(.all, in: keyspace)
            for number in 0..<300 {
              try transaction.put(
                Array("\(round)/\(number)".utf8), [UInt8](repeating: 1, count: 1_000), in: keyspace)
            }
          }
          sizes.append(try engine.maintenance.statistics().totalPages)
        }
        // An engine that merges in the background may just have done that in any single round.
        let first = sizes[..<8].max() ?? 0
        try expect(sizes[29] <= first * 2, "the file grows with every round: \(sizes)")
      }
    },

    Behaviour("a sound file has no faults, at any time") { suite, engine in
      try expectEqual(engine.maintenance.checkIntegrity(), [], "faults of an empty file")
      _ = try suite.fill(engine, count: 3_000)
      let snapshot = try engine.beginRead()
      for keyspace in ["documents", "entries", "sequences"] {
        try engine.write { transaction in
          _ = try transaction.deleteRange(
            KeyRange(lower: .inclusive([0x6B, 0x65, 0x79, 0x32])), in: transaction.known(keyspace))
        }
        try expectEqual(engine.maintenance.checkIntegrity(), [], "faults after deleting")
      }
      snapshot.end()
      let isOver = Lock(false)
      let threads = TestThreads()
      try Counters.make(engine)
      threads.start { while !isOver.withLock({ $0 }) { try Counters.increment(engine) } }
      for _ in 0..<5 { try expectEqual(engine.maintenance.checkIntegrity(), [], "faults beside a writer") }
      isOver.withLock { $0 = true }
      try threads.wait()
    },
  ]
}
