import Foundation
import Storage

extension ConformanceSuite {
  static let processBehaviours: [Behaviour] = [
    Behaviour("two processes write and read one path, and no increment is lost", needs: [.sharing]) { suite in
      let rounds = suite.isLong ? 5_000 : 100
      try suite.withEngine { engine in
        try Counters.make(engine)
        let children = try (0..<2).map { _ in
          try suite.startChild("increment", [suite.path("main"), "\(rounds)"])
        }
        var seen = 0
        for _ in 0..<rounds {
          try Counters.increment(engine)
          let count = try Counters.count(engine)
          try expect(count > seen, "the counter went from \(seen) to \(count)")
          seen = count
        }
        for child in children {
          let ending = try child.wait()
          try expect(ending == .exited(0), "the child \(ending): \(child.outputText) \(child.errorText)")
        }
        try expectEqual(Counters.count(engine), rounds * 3, "the sum of all increments")
        try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
      }
    },

    Behaviour("a second process is refused, and learns who has the file open", needs: [.exclusion]) { suite in
      func expectRefused(_ isReadOnly: Bool, _ what: String) throws {
        let line =
          try suite.runChild("open", [suite.path("main"), isReadOnly ? "read" : "write"]).first ?? ""
        try expect(line.hasPrefix("inUse "), "\(what) ended with “\(line)”")
        try expect(line.contains("\(getpid())"), "\(what): “\(line)” doesn't name the process \(getpid())")
      }
      let content = try suite.withEngine { engine in
        let content = try suite.fill(engine)
        try expectRefused(false, "opening beside a writer")
        try expectRefused(true, "opening for reading beside a writer")
        return content
      }
      // Several may read, if the library can do that.
      try suite.withEngine("main", suite.options(creation: .openExisting, isReadOnly: true)) { engine in
        try expectRefused(false, "opening beside a reader")
        if try suite.runChild("open", [suite.path("main"), "read"]) != ["done"] {
          try expectRefused(true, "opening for reading beside a reader")
        }
        try expectEqual(Content(engine), content, "content")
      }
      try expectEqual(suite.runChild("open", [suite.path("main"), "write"]), ["done"], "opening afterwards")
    },

    Behaviour("another process sees keyspaces made, dropped and made again", needs: [.sharing]) {
      suite, engine in
      let path = suite.path("main")
      for round in 0..<4 {
        try engine.write { transaction in
          if let keyspace = try transaction.keyspace(named: "k") { try transaction.dropKeyspace(keyspace) }
          let keyspace = try transaction.createKeyspace("k", shape: KeyspaceShape.allCases[round % 3])
          try transaction.put(sequenceKey(UInt64(round)), [1], in: keyspace)
        }
        let line = try suite.runChild("probe", ["checked", path])
        try expectEqual(line.first?.contains("k:\(KeyspaceShape.allCases[round % 3]):1:"), true, "\(line)")
        try engine.write { transaction in
          // The child has written to the file too.
          let probe = try transaction.known("probe")
          try expectEqual(transaction.count(of: probe), 51, "entries that the child made")
          try transaction.dropKeyspace(probe)
        }
      }
    },

    Behaviour("a killed process loses no acknowledged commit and leaves none in part", needs: [.child]) {
      suite in
      try suite.killAgainAndAgain(rounds: suite.times(10, 30, long: 2_000))
    },

    Behaviour("a full disk is a typed error that loses nothing, and passes", needs: [.files, .child]) {
      suite in
      var generator = SeededGenerator(seed: suite.seed)
      for round in 0..<suite.times(2, 4, long: 100) {
        let limit = 300_000 + generator.below(900_000)
        let threads = round % 2 == 0 ? 1 : 4
        let path = suite.path("full\(round)")
        let lines = try suite.runChild(
          "fill",
          [
            path, "\(suite.seed)", "\(threads)", "\(limit)",
            suite.subject.lacks.contains(.readingOnFullDisk) ? "blind" : "reading",
          ])
        let last = lines.last?.split(separator: " ").compactMap { Int($0) } ?? []
        try suite.withEngine("full\(round)") { engine in
          let found = try NumberedCommits(seed: suite.seed, keptLog: .max).verify(engine, acknowledged: last)
          try expectEqual(found, last, "commits after reopening, limit \(limit)")
          try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
        }
      }
    },

    Behaviour("a closed file can be read on a full disk", needs: [.files, .child]) { suite in
      guard !suite.subject.lacks.contains(.readingOnFullDisk) else { return }
      let path = suite.path("main")
      let content = try suite.withEngine { try suite.fill($0) }
      try expectEqual(suite.runChild("read-full", [path]).last, "content \(content)", "what the child reads")
      guard !suite.subject.lacks.contains(.readingAfterKill) else { return }
      // So is a log that nobody has copied into the file.
      let child = try suite.startChild("leave", [suite.path("left"), "20"])
      try expectEqual(try child.wait(), .signalled(SIGKILL), "the writer's end")
      let left = try suite.runChild("read-full", [suite.path("left")]).last
      try suite.withEngine("left") { try expectEqual(left, "content \(Content($0))", "what the child reads") }
    },

    Behaviour("a load whose body goes on after a full disk leaves nothing", needs: [.files, .child]) {
      suite in
      try expectEqual(suite.runChild("load-full", [suite.path("loaded")]).last, "done", "what the child says")
      try suite.withEngine("loaded") { engine in
        try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
      }
    },

    Behaviour("a directory that can't be written serves readers of another user", needs: [.otherUsers]) {
      suite in
      let path = suite.path("main")
      let content = try suite.withEngine { try suite.fill($0) }
      try suite.withEngine("closed") { _ = try suite.fill($0) }
      // The file of an engine may be a directory.
      var directories = [suite.directory]
      for name in try FileManager.default.subpathsOfDirectory(atPath: suite.directory) {
        let path = "\(suite.directory)/\(name)"
        var isDirectory = ObjCBool(false)
        _ = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
        if isDirectory.boolValue { directories.append(path) }
        chmod(path, isDirectory.boolValue ? 0o555 : 0o444)
      }
      chmod(suite.path("closed"), 0)
      chmod(suite.directory, 0o555)
      defer { for directory in directories { chmod(directory, 0o755) } }
      let lines = try suite.runChild("nobody", [path, suite.path("closed")])
      if let line = lines.first, line.hasPrefix("can't ") {
        return print("not tried as another user: \(line)")
      }
      try expectEqual(lines, ["content \(content)", "done"], "what another user reads")
    },

    Behaviour(
      "another user reads whole states while the owner writes, opens and closes", needs: [.files, .sharing]
    ) {
      suite in
      var generation = 0
      try suite.withEngine { try Generations.write(generation, $0) }
      let child = try suite.startChild("watch", [suite.path("main"), suite.isLong ? "400" : "15"])
      // The owner closes the file in between, so that the reader is alone with it at times.
      while child.outputSoFar.isEmpty, generation < 100_000 {
        try suite.withEngine { engine in
          for _ in 0..<(1 + generation % 7) {
            generation += 1
            try Generations.write(generation, engine)
          }
        }
        usleep(UInt32(generation % 3) * 2_000)
      }
      let ending = try child.wait()
      if child.outputText.hasPrefix("can't ") {
        return print("not tried as another user: \(child.outputText)")
      }
      try expect(ending == .exited(0), "the child \(ending): \(child.outputText) \(child.errorText)")
      try suite.withEngine { try expectEqual($0.maintenance.checkIntegrity(), [], "faults") }
    },
  ]

  /// Kills a child that commits, at random moments, and checks the file.
  private func killAgainAndAgain(rounds: Int) throws {
    let commits = NumberedCommits(seed: seed)
    var generator = SeededGenerator(seed: seed)
    var label = ""
    var acknowledged: [Int] = []
    var total = 0
    /// The kills that one file survives.
    let ofFile = isShort && !isLong ? 5 : 20
    for round in 0..<rounds {
      if round % ofFile == 0 {
        // A new file, written by one thread or by several that share commits.
        label = "killed\(round)"
        acknowledged = [Int](repeating: 0, count: round % (2 * ofFile) == 0 ? 1 : 4)
        try withEngine(label) { try NumberedCommits.make($0) }
      }
      let child = try startChild("commit", [path(label), "\(seed)"] + acknowledged.map(String.init))
      // Sometimes it is killed while it opens the file.
      if generator.once(in: 6) {
        usleep(UInt32(generator.below(20_000)))
      } else {
        // Waits for some commits, however slow the disk is, and for a part of another.
        try child.waitForOutput(bytes: Acknowledgement.byteCount * (1 + generator.below(6)))
        usleep(UInt32(generator.below(generator.once(in: 8) ? 100_000 : 12_000)))
      }
      child.kill()
      let ending = try child.wait()
      try expect(ending == .signalled(SIGKILL), "round \(round): the child \(ending): \(child.errorText)")
      acknowledged = try Acknowledgement.last(in: child.outputSoFar, after: acknowledged)
      // Sometimes the next child is the first to open the file again.
      if generator.once(in: 4), round % ofFile != ofFile - 1 { continue }
      do {
        try withEngine(label) { engine in
          acknowledged = try commits.verify(engine, acknowledged: acknowledged)
          if round % 5 == 4 { try expectEqual(engine.maintenance.checkIntegrity(), [], "faults") }
        }
      } catch {
        throw ConformanceFailure("after kill \(round): \(error)")
      }
      if round % ofFile == ofFile - 1 { total += acknowledged.reduce(0, +) }
    }
    try expect(total > rounds, "only \(total) commits in \(rounds) rounds: nothing was tested")
  }
}
