import Storage

extension ConformanceSuite {
  /// What `WriteTransaction.lineage` promises, of engines that give one.
  static let lineageBehaviours: [Behaviour] = [
    Behaviour("the lineage stays the same while nobody else commits") { _, engine in
      var keyspace = Keyspace(number: 0, shape: .entries)
      try engine.write { keyspace = try $0.createKeyspace("k", shape: .entries) }
      guard let first = try lineage(engine) else { return }
      for number in 0..<4 {
        try engine.write { try $0.put([UInt8(number)], [1], in: keyspace) }
        try engine.write { _ in }
        _ = try engine.read { try $0.bytes([0], in: keyspace) }
        try expectEqual(lineage(engine), first, "the lineage after commits of this engine")
      }
    },

    Behaviour("turns of an engine object follow each other") { _, engine in
      func turn(failing: Bool = false) throws -> UInt64? {
        var turn: UInt64?
        do {
          try engine.write { (transaction: any WriteTransaction) throws -> Void in
            turn = transaction.turn
            if failing { throw DeliberateError(number: 1) }
          }
        } catch is DeliberateError {}
        return turn
      }
      guard let first = try turn() else { return }
      try expectEqual(turn(), first + 1, "the turn after a body")
      try expectEqual(turn(failing: true), first + 2, "the turn of a body that throws")
      try expectEqual(turn(), first + 3, "the turn after it")
    },

    Behaviour("the lineage changes when another process commits", needs: [.sharing]) { suite, engine in
      try Counters.make(engine)
      guard var last = try lineage(engine) else { return }
      for round in 0..<6 {
        // Whatever this engine did last: a commit, an empty one, or a body that threw.
        switch round % 3 {
        case 0: try Counters.increment(engine)
        case 1: try engine.write { _ in }
        default:
          do { try engine.write { _ in throw DeliberateError(number: round) } } catch is DeliberateError {}
        }
        let child = try suite.startChild("increment", [suite.path("main"), "1"])
        let ending = try child.wait()
        try expect(ending == .exited(0), "the child \(ending): \(child.outputText) \(child.errorText)")
        let now = try lineage(engine)
        try expect(now != last, "the lineage stayed \(last) in round \(round)")
        guard let now else { throw ConformanceFailure("the engine has lost its lineage") }
        last = now
        try Counters.increment(engine)
        try expectEqual(lineage(engine), now, "the lineage after a commit of this engine")
      }
    },

    Behaviour("two engines of one process have no lineage in common") { suite, engine in
      guard let first = try lineage(engine) else { return }
      try suite.withEngine("other") { other in
        try expect(try lineage(other) != first, "two engines have the lineage \(first)")
      }
    },
  ]

  // MARK: Versions

  /// What `FastReads.snapshotVersion` promises, of engines that give one.
  static let versionBehaviours: [Behaviour] = [
    Behaviour("snapshots with equal versions read the same data") { suite, engine in
      try Counters.make(engine)
      var counts: [SnapshotVersion: Int] = [:]
      /// Reads again and again, as an engine that keeps snapshots expects it.
      func check() throws {
        let now = try Counters.count(engine)
        for _ in 0..<4 {
          let snapshot = try engine.beginRead()
          defer { snapshot.end() }
          guard let version = snapshot.snapshotVersion else { continue }
          let found = try snapshot.text("counter", in: snapshot.known("left")).flatMap { Int($0) }
          try expectEqual(found, now, "the count of a snapshot")
          try expectEqual(counts[version] ?? now, now, "the count of an earlier snapshot with its version")
          counts[version] = now
          try expectEqual(snapshot.snapshotVersion, version, "the version after a read")
        }
      }
      for round in 0..<12 {
        try check()
        if round % 3 == 0 {
          do {
            try engine.write { transaction in
              try transaction.put("counter", "-1", in: transaction.known("left"))
              throw DeliberateError(number: round)
            }
          } catch is DeliberateError {}
          try check()
        }
        // A snapshot that stays open while others commit.
        let old = try engine.beginRead()
        defer { old.end() }
        let version = old.snapshotVersion
        let before = try Counters.count(engine)
        try Counters.increment(engine)
        try check()
        try expectEqual(old.snapshotVersion, version, "the version after a commit")
        try expectEqual(old.text("counter", in: old.known("left")), "\(before)", "the count after a commit")
      }
    },

    Behaviour("the version changes when another process commits", needs: [.sharing]) { suite, engine in
      try Counters.make(engine)
      for round in 1..<5 {
        var versions: Set<SnapshotVersion> = []
        for _ in 0..<3 {
          if let version = try engine.read({ $0.snapshotVersion }) { versions.insert(version) }
        }
        let child = try suite.startChild("increment", [suite.path("main"), "1"])
        let ending = try child.wait()
        try expect(ending == .exited(0), "the child \(ending): \(child.outputText) \(child.errorText)")
        let (count, version) = try engine.read {
          (try $0.text("counter", in: $0.known("left")), $0.snapshotVersion)
        }
        try expectEqual(count, "\(round)", "the count after another process's commit")
        if let version { try expect(!versions.contains(version), "the version stayed in round \(round)") }
      }
    },

    Behaviour("write transactions and ended snapshots have no version") { suite, engine in
      let version = try engine.write { (transaction: any WriteTransaction) throws -> SnapshotVersion? in
        transaction.snapshotVersion
      }
      try expect(version == nil, "a write transaction has the version \(String(describing: version))")
      let snapshot = try engine.beginRead()
      snapshot.end()
      try expect(snapshot.snapshotVersion == nil, "an ended snapshot has a version")
    },

    Behaviour("two engines of one process have no version in common") { suite, engine in
      guard let first = try engine.read({ $0.snapshotVersion }) else { return }
      try suite.withEngine("other") { other in
        let second = try other.read { $0.snapshotVersion }
        try expect(second?.engine != first.engine, "two engines have the number \(first.engine)")
      }
    },
  ]

  private static func lineage(_ engine: any StorageEngine) throws -> UInt64? {
    try engine.write { (transaction: any WriteTransaction) throws -> UInt64? in try transaction.lineage }
  }
}
