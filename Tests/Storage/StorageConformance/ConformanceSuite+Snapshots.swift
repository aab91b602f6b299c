import Foundation
import Storage

extension ConformanceSuite {
  static let snapshotBehaviours: [Behaviour] = [
    Behaviour("a snapshot doesn't change while writers commit beside it") { suite, engine in
      let before = try suite.fill(engine)
      let snapshot = try engine.beginRead()
      defer { snapshot.end() }
      for round in 0..<20 {
        try engine.write { transaction in
          let documents = try transaction.known("documents")
          try transaction.put("key\(round)", "changed", in: documents)
          try transaction.put("new\(round)", "made", in: documents)
          _ = try transaction.deleteRange(
            .prefix(Array("entry\(round)".utf8)), in: transaction.known("entries"))
          try transaction.append(sequenceKey(UInt64(10_000 + round)), [1], in: transaction.known("sequences"))
        }
        try expectEqual(Content(snapshot), before, "the snapshot after \(round + 1) commits")
      }
      try engine.write { transaction in
        for keyspace in try transaction.keyspaces().values {
          _ = try transaction.deleteRange(.all, in: keyspace)
        }
      }
      try expectEqual(Content(snapshot), before, "the snapshot after everything was deleted")
      try expectEqual(engine.read { try $0.count(of: $0.known("documents")) }, 0, "count in a newer snapshot")
    },

    Behaviour("a snapshot is one from its first moment, not from its first read") { _, engine in
      try engine.write { try $0.put("a", "old", in: $0.createKeyspace("k", shape: .documents)) }
      let snapshot = try engine.beginRead()
      defer { snapshot.end() }
      try engine.write { try $0.put("a", "new", in: $0.known("k")) }
      try expectEqual(snapshot.text("a", in: snapshot.known("k")), "old", "the first read of a snapshot")
    },

    Behaviour("a value that is read alone is that of the last commit") { _, engine in
      let shapes: [KeyspaceShape] = [.documents, .entries, .sequences]
      let keyspaces = try engine.write { transaction in
        try shapes.map { try transaction.createKeyspace("\($0)", shape: $0) }
      }
      func alone(_ key: [UInt8], _ keyspace: Keyspace) throws -> [UInt8]? {
        var value: [UInt8]?
        let isThere = try engine.readAlone(key, in: keyspace) { value = [UInt8](copying: $0) }
        try expectEqual(isThere, value != nil, "what it says of a value that it lent")
        return value
      }
      let keys = (0..<3).map { sequenceKey(UInt64($0 + 1)) }
      for round in UInt8(0)..<3 {
        for keyspace in keyspaces {
          for key in keys {
            try expectEqual(alone(key, keyspace), round == 0 ? nil : [round], "before a put")
          }
        }
        try engine.write { transaction in
          for keyspace in keyspaces {
            for key in keys { try transaction.put(key, [round + 1], in: keyspace) }
          }
          for keyspace in keyspaces {
            try expectEqual(alone(keys[0], keyspace), round == 0 ? nil : [round], "beside the writer")
          }
        }
      }
      // Other values are read and written while one is lent.
      for keyspace in keyspaces {
        _ = try engine.readAlone(keys[0], in: keyspace) { first in
          for other in keyspaces {
            _ = try engine.readAlone(keys[1], in: other) { second in
              try engine.write { try $0.put(keys[0], [9], in: keyspace) }
              try expectEqual([UInt8](copying: second), [3], "the inner value")
            }
          }
          try expectEqual([UInt8](copying: first), [3], "the outer value")
        }
        try expectEqual(alone(keys[0], keyspace), [9], "after the write inside")
      }
      // An error of the closure is rethrown, and failed reads throw.
      try expectError(.busy, from: "a closure that throws") {
        _ = try engine.readAlone(keys[1], in: keyspaces[0]) { _ in throw StorageError(.busy, "thrown") }
      }
      try expectError(.invalidKey, from: "an empty key") { _ = try alone([], keyspaces[0]) }
      try engine.write { try $0.dropKeyspace(keyspaces[1]) }
      try expectError(.noSuchKeyspace, from: "a dropped keyspace") { _ = try alone(keys[0], keyspaces[1]) }
      try expectEqual(alone(keys[1], keyspaces[0]), [3], "afterwards")
      // On several threads.
      let threads = TestThreads()
      for _ in 0..<4 {
        threads.start {
          for _ in 0..<500 {
            var value: UInt8 = 0
            _ = try engine.readAlone(keys[2], in: keyspaces[2]) { value = $0.withUnsafeBytes { $0[0] } }
            try expect(value == 3 || value == 4, "\(value) is no value of the key")
          }
        }
      }
      for round in 0..<40 {
        try engine.write { try $0.put(keys[2], [round % 2 == 0 ? 4 : 3], in: keyspaces[2]) }
      }
      try threads.wait()
      try engine.close()
      try expectError(.closed, from: "a closed engine") { _ = try alone(keys[1], keyspaces[0]) }
    },

    Behaviour("a scan and a cursor go on undisturbed while a writer commits") { suite, engine in
      _ = try suite.fill(engine)
      try engine.read { snapshot in
        let entries = try snapshot.known("entries")
        let cursor = try snapshot.cursor(in: entries, .all)
        var seen = 0
        try snapshot.scan(entries) { _, _ in
          if seen % 40 == 0 {
            try engine.write { transaction in
              try transaction.put("a\(seen)", "before all", in: transaction.known("entries"))
              try transaction.put("z\(seen)", "after all", in: transaction.known("entries"))
            }
          }
          let isThere = try cursor.next()
          try expect(isThere, "the cursor ended before the scan")
          seen += 1
          return true
        }
        try expectEqual(seen, 200, "entries of a scan beside a writer")
        let isAtEnd = try !cursor.next()
        try expect(isAtEnd, "the cursor goes on after the scan")
      }
    },

    Behaviour("a dropped keyspace stays visible to older snapshots, and a new one of that name is another") {
      suite, engine in
      let old = try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .entries)
        for number in 0..<500 { try transaction.put("old\(number)", "x", in: keyspace) }
        return keyspace
      }
      let snapshot = try engine.beginRead()
      defer { snapshot.end() }
      let content = try Content(snapshot)
      try engine.write { try $0.dropKeyspace(old) }
      try expectEqual(Content(snapshot), content, "the snapshot after the drop")
      try expect(
        try engine.read { try $0.keyspace(named: "k") } == nil, "the dropped keyspace is still there")

      let new = try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .documents)
        try transaction.put("new", "y", in: keyspace)
        return keyspace
      }
      try expect(new.number != old.number, "a number of a keyspace was used twice")
      try expectEqual(Content(snapshot), content, "the snapshot after the name was used again")
      try expectEqual(snapshot.keyspace(named: "k"), old, "the snapshot's handle of the name")
      try expectError(.noSuchKeyspace, from: "an older snapshot's use of a newer handle") {
        _ = try snapshot.count(of: new)
      }
      for number in 0..<300 {
        try engine.write { try $0.put("again\(number)", "z", in: new) }
      }
      try expectEqual(Content(snapshot), content, "the snapshot after its pages could have been used again")
      try suite.expectStale(old, engine)
      try expectEqual(engine.read { try $0.count(of: new) }, 301, "count of the new keyspace")
    },

    Behaviour("thousands of snapshots are open at once, and past the limit is a clear error") { suite in
      // The snapshots may use all files that a process may open, so they run in a child process.
      guard suite.childPath != nil, suite.subject.keepsFiles else {
        return try suite.withEngine { try openSnapshotsUpToTheLimit($0, wanted: 2_000) }
      }
      let lines = try suite.runChild("snapshots", [suite.path("main")])
      try expectEqual(lines, ["done"], "what the child says")
    },

    Behaviour("ending a snapshot twice does nothing") { _, engine in
      let first = try engine.beginRead()
      first.end()
      let second = try engine.beginRead()
      first.end()
      _ = try second.keyspaces()
      try expectEqual(engine.maintenance.statistics().openReaders, 1, "open readers")
      second.end()
      second.end()
      try expectEqual(engine.maintenance.statistics().openReaders, 0, "open readers")
    },

    Behaviour("close is refused while snapshots are open, and everything is afterwards") { suite in
      let engine = try suite.open(suite.path("main"))
      try engine.write { try $0.put("a", "1", in: $0.createKeyspace("k", shape: .documents)) }
      let snapshot = try engine.beginRead()
      try expectError(.inUse, from: "close beside a snapshot") { try engine.close() }
      try expectEqual(snapshot.text("a", in: snapshot.known("k")), "1", "a read after a refused close")
      try engine.write { try $0.put("a", "2", in: $0.known("k")) }
      snapshot.end()
      try engine.close()
      try engine.close()
      try expectError(.closed, from: "beginRead") { _ = try engine.beginRead() }
      try expectError(.closed, from: "write") { try engine.write { (_: any WriteTransaction) in } }
      try expectError(.closed, from: "statistics") { _ = try engine.maintenance.statistics() }
      try expectError(.closed, from: "backup") { try engine.maintenance.backup(to: suite.path("copy")) }
      try expectError(.closed, from: "compact") { try engine.maintenance.compact() }
      try expectError(.closed, from: "checkIntegrity") { _ = try engine.maintenance.checkIntegrity() }
    },

    Behaviour("close inside a write is refused and doesn't hang") { _, engine in
      try engine.write { transaction in
        let keyspace = try transaction.createKeyspace("k", shape: .documents)
        try expectError(.nestedWrite, .inUse, from: "close inside a write") { try engine.close() }
        try transaction.put("a", "1", in: keyspace)
      }
      try expectEqual(engine.read { try $0.text("a", in: $0.known("k")) }, "1", "the value")
    },
  ]

  /// Checks that every use of a stale handle throws.
  func expectStale(_ keyspace: Keyspace, _ engine: any StorageEngine) throws {
    let key: [UInt8] = keyspace.shape == .sequences ? sequenceKey(1) : [1]
    try engine.read { transaction in
      try expectError(.noSuchKeyspace, from: "get") { _ = try transaction.bytes(key, in: keyspace) }
      try expectError(.noSuchKeyspace, from: "count") { _ = try transaction.count(of: keyspace) }
      try expectError(.noSuchKeyspace, from: "scan") { try transaction.scan(keyspace) { _, _ in true } }
      try expectError(.noSuchKeyspace, from: "cursor") {
        _ = try transaction.cursor(in: keyspace, .all).first()
      }
    }
    try engine.write { transaction in
      try expectError(.noSuchKeyspace, from: "get") { _ = try transaction.bytes(key, in: keyspace) }
      try expectError(.noSuchKeyspace, from: "put") { try transaction.put(key, [], in: keyspace) }
      try expectError(.noSuchKeyspace, from: "insert") { _ = try transaction.insert(key, [], in: keyspace) }
      try expectError(.noSuchKeyspace, from: "append") { try transaction.append(key, [], in: keyspace) }
      try expectError(.noSuchKeyspace, from: "load of nothing") { try transaction.load(keyspace) { _ in } }
      try expectError(.noSuchKeyspace, from: "delete") { try transaction.delete(key, in: keyspace) }
      try expectError(.noSuchKeyspace, from: "deleteRange") {
        _ = try transaction.deleteRange(.all, in: keyspace)
      }
      try expectError(.noSuchKeyspace, from: "dropKeyspace") { try transaction.dropKeyspace(keyspace) }
    }
  }
}

extension Child {
  /// `snapshots PATH` makes a file at PATH and opens as many snapshots of it as possible. The limit of open
  /// files is 6,000, or less if the system's limit is lower.
  func openSnapshots() throws {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_max = min(limit.rlim_max, 6_000)
    limit.rlim_cur = min(limit.rlim_cur, limit.rlim_max)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    let opened = try engine.open(arguments[0], options())
    // An engine may use two files per snapshot. The process needs some files too.
    try openSnapshotsUpToTheLimit(opened, wanted: min(2_000, max(8, Int(limit.rlim_max) - 64) / 2))
    try opened.close()
    say("done")
  }
}

private func openSnapshotsUpToTheLimit(_ engine: any StorageEngine, wanted: Int) throws {
  try engine.write { try $0.put("a", "0", in: $0.createKeyspace("k", shape: .documents)) }
  var snapshots: [any ReadTransaction] = []
  defer { for snapshot in snapshots { snapshot.end() } }
  do {
    while snapshots.count < 20_000 {
      snapshots.append(try engine.beginRead())
      if snapshots.count % 500 == 0 {
        try engine.write { try $0.put("a", "\(snapshots.count)", in: $0.known("k")) }
      }
    }
  } catch let error as StorageError {
    try expectEqual(error.code, .tooManyReaders, "the error of one snapshot too many (\(error))")
  }
  try expect(snapshots.count >= wanted, "only \(snapshots.count) snapshots were possible")
  // Other operations may need a file, and none may be left.
  for _ in 0..<4 { snapshots.popLast()?.end() }
  try expectEqual(engine.maintenance.statistics().openReaders, snapshots.count, "open readers")
  for index in stride(from: 0, to: snapshots.count, by: 250) {
    let snapshot = snapshots[index]
    try expectEqual(
      snapshot.text("a", in: snapshot.known("k")), "\(index / 500 * 500)", "snapshot number \(index)")
  }
  try engine.write { try $0.put("a", "written", in: $0.known("k")) }
  for snapshot in snapshots { snapshot.end() }
  snapshots = []
  try expectEqual(engine.maintenance.statistics().openReaders, 0, "open readers after all ended")
  try expectEqual(engine.read { try $0.text("a", in: $0.known("k")) }, "written", "a read afterwards")
}
