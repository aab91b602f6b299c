import ChildProcesses
import TestSupport

/// Conversions between a directory and a server that are broken off, and go on when the same command is given again.
@Suite("Interrupted conversions between directories and servers", .enabled(if: hasServer), .serialized)
struct InterruptedConversionTests {
  enum Direction: String, CaseIterable, Sendable { case toServer, fromServer, betweenServers }

  /// A source with several transactions of entries and a few blobs, and the place of a target.
  private struct Places {
    let directory: TemporaryDirectory
    let source: String
    let target: String
    let engine: EngineName

    init(_ direction: Direction, seed: UInt64 = 1, engine: EngineName = .sqlite) throws {
      directory = TemporaryDirectory()
      source = direction == .toServer ? directory.path + "/a" : try newLocation()
      target = direction == .fromServer ? directory.path + "/b" : try newLocation()
      self.engine = direction == .fromServer ? engine : .postgres
      try Self.fillLarge(source, seed: seed)
    }

    /// The same source, and another target, which a directory has no more than one of.
    init(again places: Places) throws {
      directory = places.directory
      source = places.source
      engine = places.engine
      target = DatabaseLocation.isOnServer(places.target) ? try newLocation() : places.target
    }

    static func fillLarge(_ place: String, seed: UInt64) throws {
      let database = try Database.open(place, options: .init(durability: .none))
      try fill(database)
      try database.inBatch {
        for n in 0..<240 {
          let text = String(repeating: "\(seed) and \(n) ", count: 2_500)
          try database.save("long\(n)", ["text": .string(text)])
        }
        for n in 0..<4 {
          let bytes = randomBytes(100_000, seed: seed * 100 + UInt64(n))
          try database.save("blob\(n)", ["file": database.makeBlob(bytes).jsonValue])
        }
      }
      try database.close()
    }

    func convert(from other: String? = nil, progress: ConversionProgress.Handler? = nil) throws {
      try Database.convert(other ?? source, to: engine, at: target, progress: progress)
    }

    /// The directory that an interrupted conversion leaves.
    var left: String { directory.path + "/.touchstone-unfinished-b" }

    /// Whether a conversion has left something.
    func isUnfinished() throws -> Bool {
      DatabaseLocation.isOnServer(target)
        ? try !tables(target.schema).isEmpty && !Database.exists(target)
        : FileManager.default.fileExists(atPath: left)
    }

    /// Compares everything, and checks that nothing but the database is left.
    func expectSame(as other: String? = nil) throws {
      let options = DatabaseOptions(creation: .openExisting, isReadOnly: true)
      let left = try Database.open(other ?? source, options: options)
      let right = try Database.open(target, options: options)
      try expect(differences(left, right, sequences: true).map(\.description), equals: [])
      try expect(right.check(deep: true).map(\.description), equals: [])
      expect(left.publicUUID, equals: right.publicUUID)
      try left.close()
      try right.close()
      if DatabaseLocation.isOnServer(target) {
        let blobs = try server().sql("SELECT count(*) FROM \"\(target.schema)\".blobs WHERE name IS NOT NULL")
        expect(blobs, equals: ["7"])
      } else {
        // A process that was killed behind the last step leaves an empty directory to the next operation.
        _ = try DatabaseFolder(directory.path).names()
        try expect(directory.names().filter { $0.hasPrefix(".") }, equals: [])
        try expect(directory.names("b.touchstone/Attachments").count, equals: 7)
      }
    }

    func remove(_ places: [String]? = nil) {
      for place in places ?? [source, target] where Database.exists(place) { try? Database.delete(place) }
    }
  }

  private static let phases: [ConversionProgress.Phase] = [.copying, .blobs, .verifying]

  /// The phases in which conversions are broken off: in a short run one, another for each direction and fault.
  private static func phases(_ direction: Direction, _ fault: Fault = .connection) -> [ConversionProgress
    .Phase]
  {
    guard isShort else { return phases }
    let place =
      (Direction.allCases.firstIndex(of: direction) ?? 0) + (Fault.allCases.firstIndex(of: fault) ?? 0)
    return [phases[place % phases.count]]
  }

  /// What ends a conversion.
  enum Fault: String, CaseIterable, Sendable { case connection, diskFull }

  @Test(
    "what fails with a lost connection or a full disk goes on", arguments: Direction.allCases, Fault.allCases)
  func faults(_ direction: Direction, _ fault: Fault) throws {
    let first = try Places(direction)
    defer { first.remove() }
    for phase in Self.phases(direction, fault) {
      let places = try Places(again: first)
      defer { places.remove([places.target]) }
      var isBroken = false
      let error = try thrown(StorageError.self) {
        try places.convert { progress in
          // In the middle of the phase, and in the first phase behind some commits.
          guard !isBroken, progress.phase == phase, progress.done * 2 > progress.total else { return }
          isBroken = true
          switch fault {
          case .diskFull: throw StorageError(.diskFull, "the disk is full, the test says")
          case .connection:
            try server().sql(
              "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
          }
        }
      }
      let comment: Comment = "\(direction) \(fault) \(phase)"
      expect(isBroken, comment)
      // A lost connection is ridden out where nothing of it was lost.
      guard let error else {
        expect(fault == .connection && !(direction != .fromServer && phase == .copying), comment)
        try places.expectSame()
        continue
      }
      expect(error.message.contains("goes on with it"), "\(comment): \(error)")
      expect(!Database.exists(places.target), comment)
      try expect(places.isUnfinished(), comment)
      let before = try firstEntry(places)
      try places.convert()
      // The entries that were there are still the same ones. A connection that was lost early has left none.
      if let before { try expect(firstEntry(places), equals: before, comment) }
      expect(before != nil || phase == .copying, comment)
      try places.expectSame()
    }
  }

  /// What changes when the entries of a target are written again; nil if it has none yet.
  private func firstEntry(_ places: Places) throws -> String? {
    if DatabaseLocation.isOnServer(places.target) {
      return try server().sql(
        "SELECT xmin, keyspace, encode(key, 'hex') FROM \"\(places.target.schema)\".entries ORDER BY keyspace, key LIMIT 1"
      ).first
    }
    let inner = places.left + "/new.touchstone"
    let path = FileManager.default.fileExists(atPath: inner) ? inner : places.target + ".touchstone"
    var status = stat()
    return stat(path + "/data-1.sqlite", &status) == 0 ? "\(status.st_ino)" : nil
  }

  @Test(
    "a process that is killed again and again at several points ends with the whole database",
    arguments: [
      (Direction.toServer, EngineName.sqlite), (.fromServer, .lmdb), (.fromServer, .sqlite),
      (.betweenServers, .sqlite),
    ].prefix(isLong ? 4 : 2))
  func kills(_ direction: Direction, _ engine: EngineName) throws {
    let path = try #require(builtExecutable("touchstone"))
    let places = try Places(direction, engine: engine)
    defer { places.remove() }
    func start() throws -> ChildProcess {
      try ChildProcess.start(
        path, ["convert", places.source, "--engine", places.engine.rawValue, "--output", places.target])
    }
    var random = SeededGenerator(seed: testSeed)
    var unfinished = 0
    let begun = Date()
    try expect(start().wait(), equals: .exited(0))
    let longest = Date().timeIntervalSince(begun)
    for round in 0..<times(1, sanitized: 2, long: 40) {
      try Database.delete(places.target)
      // Each attempt gets a bit further.
      for attempt in 1...12 {
        let child = try start()
        usleep(UInt32(longest * 1e6 * (Double(attempt) * 0.1 + Double.random(in: 0...0.1, using: &random))))
        child.kill()
        let ending = try child.wait()
        if Database.exists(places.target) { break }
        let comment: Comment = "round \(round) with seed \(testSeed): \(child.errorText)"
        expect(ending, equals: .signalled(SIGKILL), comment)
        if try places.isUnfinished() { unfinished += 1 }
      }
      if !Database.exists(places.target) {
        // The server may still end the session of the killed process.
        let child = try start()
        let ending = try child.wait()
        expect(ending, equals: .exited(0), "round \(round) with seed \(testSeed): \(child.errorText)")
      }
      try places.expectSame()
    }
    expect(unfinished > 0)
  }

  @Test("what another source has left isn't mixed in", arguments: Direction.allCases)
  func anotherSource(_ direction: Direction) throws {
    let first = try Places(direction)
    let other = try Places(direction, seed: 2)
    defer {
      first.remove()
      other.remove()
    }
    for phase in Self.phases(direction) {
      let places = try Places(again: first)
      defer { places.remove([places.target]) }
      let error = try thrown(StorageError.self) {
        try places.convert { progress in
          guard progress.phase == phase, progress.done * 2 > progress.total else { return }
          throw StorageError(.ioError, "the test ends it")
        }
      }
      expect(error?.code == .ioError)
      try places.convert(from: other.source)
      try places.expectSame(as: other.source)
    }
  }

  @Test("what is left has a name, stays, and is removed by its name or another conversion")
  func leftovers() throws {
    func interrupt(_ places: Places, _ code: StorageError.Code = .ioError, newKey: UserKey? = nil) throws {
      let error = try thrown(StorageError.self) {
        try Database.convert(
          places.source, to: newKey == nil ? places.engine : .lmdbEncrypted, at: places.target, newKey: newKey
        ) { progress in
          if progress.phase == .verifying { throw StorageError(code, "the test ends it") }
        }
      }
      expect(error?.code == code)
    }
    // In a directory.
    var places = try Places(.fromServer)
    try interrupt(places)
    try expect(places.isUnfinished())
    try expect(
      directoryNames(places.left + "/new.touchstone"), equals: ["Attachments", "data-1.sqlite"])
    let folder = try DatabaseFolder(places.directory.path)
    try expect(folder.names(), equals: [])
    try folder.open("c").close()
    try expect(places.isUnfinished())
    // Another engine, and other keys, begin anew.
    let (key, otherKey) = (
      try UserKey.raw([UInt8](repeating: 3, count: 32)), try UserKey.raw([UInt8](repeating: 4, count: 32))
    )
    try interrupt(places, newKey: key)
    try expect(
      directoryNames(places.left + "/new.touchstone").filter { !$0.hasSuffix("-lock") },
      equals: ["Attachments", "data-1.emdb", "key.json"])
    try interrupt(places, newKey: otherKey)
    try Database.convert(places.source, to: .lmdbEncrypted, at: places.target, newKey: otherKey)
    try expect(databaseCode { try Database.open(places.target, options: .init(key: key)) }, equals: .wrongKey)
    let database = try Database.open(places.target, options: .init(key: otherKey))
    try expect(database.check(deep: true).map(\.description), equals: [])
    try database.close()
    try expect(!places.isUnfinished())
    places.remove()
    // What is damaged is made anew.
    places = try Places(.fromServer)
    try interrupt(places)
    let data = places.left + "/new.touchstone/data-1.sqlite"
    let file = try #require(FileHandle(forUpdatingAtPath: data))
    try file.seek(toOffset: 8_192)
    try file.write(contentsOf: Data(repeating: 0xAA, count: 2_000_000))
    try file.close()
    try places.convert()
    try places.expectSame()
    places.remove()
    // On a server.
    places = try Places(.toServer)
    try interrupt(places)
    try expect(places.isUnfinished())
    try Database.delete(places.target)
    try expect(tables(places.target.schema), equals: [])
    try interrupt(places)
    try Database.open(places.target).close()
    try expect(databaseCode { try places.convert() }, equals: .alreadyExists)
    places.remove()
  }

  private func directoryNames(_ path: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path).sorted()
  }

  @Test("a second conversion to the same place waits for none, and says so")
  func twice() throws {
    for direction in [Direction.toServer, .fromServer] {
      let places = try Places(direction)
      defer { places.remove() }
      var code: String?
      let path = try #require(builtExecutable("touchstone"))
      try places.convert { progress in
        guard code == nil, progress.phase == .blobs else { return }
        let child = try ChildProcess.start(
          path, ["convert", places.source, "--engine", places.engine.rawValue, "--output", places.target])
        _ = try child.wait()
        code = child.errorText
      }
      expect(code?.contains("another process is making the database") == true, "\(code ?? "")")
      try places.expectSame()
    }
  }
}
