import Foundation
import Storage

extension ConformanceSuite {
  /// The traces that other processes leave, and those that this process leaves for them.
  static let neighbourBehaviours: [Behaviour] = [
    Behaviour(
      "a reader killed in its snapshot costs no more space than a live one", needs: [.files, .sharing]
    ) {
      suite in
      let commits = suite.isLong ? 20_000 : 1_500
      try suite.withEngine("main", suite.options(durability: .none)) { engine in
        var churn = Churn(seed: suite.seed)
        try churn.fill(engine)
        // Passes the first checkpoint of an engine with a log.
        for _ in 0..<1_000 { try churn.commit(engine) }
        let before = try engine.maintenance.statistics().fileBytes
        // The space that a live reader costs.
        let live = try suite.startChild("hold", [suite.path("main")])
        try live.waitForOutput()
        for _ in 0..<300 { try churn.commit(engine) }
        let cost = max(0, try engine.maintenance.statistics().fileBytes - before)
        live.kill()
        _ = try live.wait()
        for _ in 0..<100 { try churn.commit(engine) }

        let between = try engine.maintenance.statistics().fileBytes
        let child = try suite.startChild("hold", [suite.path("main")])
        try child.waitForOutput()
        child.kill()
        _ = try child.wait()
        for _ in 0..<commits { try churn.commit(engine) }
        let after = try engine.maintenance.statistics().fileBytes
        try expect(
          // The engine's log may be empty or full by chance.
          after - between <= cost + (5 << 20),
          "\(commits) commits after a reader was killed, the file has grown by \(after - between) bytes; a live one cost \(cost)"
        )
        try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
        try churn.expect(engine)
      }
    },

    Behaviour("processes that make one path at the same time share it", needs: [.sharing]) { suite in
      for round in 0..<suite.times(3, 12, long: 200) {
        let path = suite.path("made\(round)")
        let lines = try suite.race("create", path, 3)
        try expectEqual(lines, [["done"], ["done"], ["done"]], "what they say")
        try suite.withEngine("made\(round)", suite.options(creation: .openExisting)) { engine in
          try expectEqual(keysOfK(engine), ["0", "1", "2"], "whose entries are there")
          try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
        }
      }
    },

    Behaviour("of processes that make a new file at one path, one does", needs: [.child]) { suite in
      for round in 0..<suite.times(3, 12, long: 200) {
        let path = suite.path("new\(round)")
        let lines = try suite.race("create-new", path, 3)
        try expectEqual(
          lines.sorted { $0[0] < $1[0] }, [["alreadyExists"], ["alreadyExists"], ["done"]], "what they say")
        let winner = lines.firstIndex(of: ["done"]) ?? -1
        try suite.withEngine("new\(round)", suite.options(creation: .openExisting)) { engine in
          try expectEqual(keysOfK(engine), ["\(winner)"], "whose entries are there")
        }
      }
    },

    Behaviour("an open for reading leaves the directory as it was", needs: [.files]) { suite in
      let content = try suite.withEngine { try suite.fill($0) }
      let before = try FileState.all(in: suite.directory)
      for _ in 0..<3 {
        let options = suite.options(creation: .openExisting, isReadOnly: true)
        try suite.withEngine("main", options) { engine in
          try expectEqual(Content(engine), content, "what is read")
          _ = try engine.maintenance.statistics()
          try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
          try expectError(.readOnly, from: "a write") { try engine.write { (_: any WriteTransaction) in } }
        }
        try expectEqual(FileState.all(in: suite.directory), before, "the directory")
      }
      // Opening for reading doesn't make a missing file.
      try expectError(.notFound, from: "opening what isn't there for reading") {
        _ = try suite.open(suite.path("absent"), suite.options(creation: .openOrCreate, isReadOnly: true))
      }
      try expectEqual(FileState.all(in: suite.directory), before, "the directory, after an open that failed")
    },

    Behaviour(
      "an open for reading has the commits of a killed writer, and leaves its files", needs: [.files, .child]
    ) { suite in
      let path = suite.path("main")
      let child = try suite.startChild("leave", [path, "\(killedCommits)"])
      try expectEqual(try child.wait(), .signalled(SIGKILL), "the writer's end")
      if suite.subject.lacks.contains(.readingAfterKill) {
        try expectError(.readOnly, from: "an open for reading before the first for writing") {
          _ = try suite.open(path, suite.options(creation: .openExisting, isReadOnly: true))
        }
        try suite.withEngine { _ in }
      }
      let before = try FileState.all(in: suite.directory)
      for _ in 0..<3 {
        try suite.withEngine("main", suite.options(creation: .openExisting, isReadOnly: true)) { engine in
          try engine.read { transaction in
            try expectEqual(transaction.count(of: transaction.known("k")), killedCommits, "entries")
          }
          try expectEqual(engine.maintenance.checkIntegrity(), [], "faults")
        }
        try expectEqual(FileState.all(in: suite.directory), before, "the directory")
      }
    },
  ]

  /// The keys in the keyspace `k`, as texts.
  private static func keysOfK(_ engine: any StorageEngine) throws -> [String] {
    try engine.read { try $0.entries(of: $0.known("k")).map { String(decoding: $0.key, as: UTF8.self) } }
  }

  /// Less than the number of commits that starts a checkpoint.
  private static let killedCommits = 40

  /// Runs a command on one path in several processes at the same time, and returns the output of each.
  private func race(_ command: String, _ path: String, _ count: Int) throws -> [[String]] {
    let start = "\(directory)/start"
    let children = try (0..<count).map { try startChild(command, [path, "\($0)", start]) }
    for child in children { try child.waitForOutput() }
    try Data().write(to: URL(fileURLWithPath: start))
    defer { try? FileManager.default.removeItem(atPath: start) }
    return try children.map { child in
      let ending = try child.wait()
      guard ending == .exited(0) else {
        throw ConformanceFailure("a child \(ending): \(child.outputText) \(child.errorText)")
      }
      return child.outputText.split(separator: "\n").dropFirst().map(String.init)
    }
  }
}

/// Commits that change the same few entries many times.
private struct Churn {
  private var generator: SeededGenerator
  private var map = SortedMap()

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  mutating func fill(_ engine: any StorageEngine) throws {
    var filled = SortedMap()
    try engine.write { transaction in
      let keyspace = try transaction.createKeyspace("k", shape: .entries)
      for number in 0..<300 {
        let entry = SortedMap.Entry(key: Self.key(number), value: [UInt8](repeating: 1, count: 900))
        try transaction.put(entry.key, entry.value, in: keyspace)
        filled.put(entry.key, entry.value)
      }
    }
    map = filled
  }

  mutating func commit(_ engine: any StorageEngine) throws {
    let (key, byte) = (Self.key(generator.below(300)), UInt8(truncatingIfNeeded: generator.next()))
    let value = [UInt8](repeating: byte, count: 900)
    try engine.write { try $0.put(key, value, in: $0.known("k")) }
    map.put(key, value)
  }

  func expect(_ engine: any StorageEngine) throws {
    try expectEqual(engine.read { try $0.entries(of: $0.known("k")) }, map.entries, "the entries")
  }

  private static func key(_ number: Int) -> [UInt8] { Array("key\(number)".utf8) }
}

/// The identity and content of a file.
private struct FileState: Equatable, CustomStringConvertible {
  let name: String
  let inode: UInt64
  let count: Int
  /// Nil for files that the first open after a crash recreates: LMDB's lock file, and the index of SQLite's
  /// log.
  let bytes: Data?

  /// The states of all files in a directory.
  static func all(in directory: String) throws -> [FileState] {
    try FileManager.default.subpathsOfDirectory(atPath: directory).sorted().map { name in
      var status = stat()
      guard stat("\(directory)/\(name)", &status) == 0 else {
        throw ConformanceFailure("stat of \(name): errno \(errno)")
      }
      if status.st_mode & S_IFMT == S_IFDIR {
        return FileState(name: name, inode: UInt64(status.st_ino), count: 0, bytes: nil)
      }
      return FileState(
        name: name, inode: UInt64(status.st_ino),
        count: name.hasSuffix("-shm") ? 0 : Int(status.st_size),
        bytes: name.hasSuffix("-lock") || name.hasSuffix("-shm")
          ? nil : try Data(contentsOf: URL(fileURLWithPath: "\(directory)/\(name)")))
    }
  }

  var description: String { "\(name) (\(count) bytes, inode \(inode))" }
}

extension Child {
  /// `hold PATH` begins a snapshot, reads from it, prints a line, and keeps the snapshot until it is killed.
  func hold() throws {
    let opened = try engine.open(arguments[0], options(creation: .openExisting))
    let snapshot = try opened.beginRead()
    _ = try snapshot.keyspaces()
    say("holding")
    withExtendedLifetime(snapshot) { while true { pause() } }
  }

  /// `open PATH read|write` opens the database and closes it, or prints why it can't.
  func openOnce() throws {
    do {
      let isReadOnly = arguments[1] == "read"
      try engine.open(arguments[0], options(isReadOnly: isReadOnly, creation: .openExisting)).close()
      say("done")
    } catch let error as StorageError { say("\(error.code.rawValue) \(error)") }
  }

  /// `leave PATH COUNT` makes a file, commits COUNT times with one put each, and kills itself.
  func leave() throws {
    let opened = try engine.open(arguments[0], options(creation: .createNew))
    for number in 0..<(Int(arguments[1]) ?? 0) {
      try opened.write { try $0.put("\(number)", "x", in: $0.createKeyspace("k", shape: .documents)) }
    }
    kill(getpid(), SIGKILL)
  }

  /// `create PATH NUMBER START` waits until the file START exists, opens or makes the database, and puts its
  /// own entry. `create-new` makes the database, or prints why it can't.
  func create(isNew: Bool) throws {
    say("ready")
    while access(arguments[2], F_OK) != 0 { sched_yield() }
    do {
      let opened = try engine.open(arguments[0], options(creation: isNew ? .createNew : .openOrCreate))
      try opened.write { try $0.put(arguments[1], "x", in: $0.createKeyspace("k", shape: .documents)) }
      try opened.close()
      say("done")
    } catch let error as StorageError where isNew { say(error.code.rawValue) }
  }
}
