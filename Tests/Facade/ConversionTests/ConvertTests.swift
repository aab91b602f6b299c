import TestSupport

@Suite("Conversions between engines") struct ConvertTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("a.touchstone") }

  struct Pair: CustomStringConvertible, Sendable {
    let from: EngineName
    let to: EngineName
    var description: String { "\(from) to \(to)" }
    /// All pairs in the long run; otherwise each engine is a source once, and a target once.
    static let all =
      isLong
      ? allEngines.flatMap { from in allEngines.map { Pair(from: from, to: $0) } }
      : zip(allEngines, allEngines.dropFirst() + [allEngines[0]]).map { Pair(from: $0, to: $1) }
  }

  @Test("everything comes along, entry by entry, in place and beside", arguments: Pair.all)
  func everything(_ pair: Pair) throws {
    try makeFixture(pair.from, at: path)
    let oldOptions = DatabaseOptions(creation: .openExisting, key: try key(of: pair.from))
    let before = try Contents(of: path, key: oldOptions.key)
    var database = try Database.open(path, options: oldOptions)
    let identity = (database.publicUUID, database.privateUUID, try database.lastSequence)
    try database.close()
    let targetKey = try encrypts(pair.to) ? oldKey() : nil
    let anyKey = try oldKey()

    let beside = directory.path + "/b.touchstone"
    try Database.convert(path, to: pair.to, at: beside, key: anyKey)
    #expect(try Contents(of: beside, key: targetKey) == before)
    #expect(try Contents(of: path, key: oldOptions.key) == before)
    #expect(try directory.names() == ["a.touchstone", "b.touchstone"])
    #expect(
      try databaseCode { try Database.convert(path, to: pair.to, at: beside, key: anyKey) } == .alreadyExists)

    var phases: Set<ConversionProgress.Phase> = []
    try Database.convert(path, to: pair.to, key: anyKey) { phases.insert($0.phase) }
    #expect(phases.isSuperset(of: [.copying, .verifying]))
    #expect(try Contents(of: path, key: targetKey) == before)
    database = try Database.open(path, options: DatabaseOptions(creation: .openExisting, key: targetKey))
    #expect(database.engineName == pair.to)
    #expect(try database.isEncrypted == encrypts(pair.to))
    #expect((database.publicUUID, database.privateUUID, try database.lastSequence) == identity)
    try database.save("more", ["n": 1])
    try database.close()
    // Nothing of the old files is left.
    #expect(
      try directory.names("a.touchstone").filter { $0.hasPrefix("data-") && !$0.contains("-lock") }.count == 1
    )
    #expect(try directory.names("a.touchstone").contains { $0.hasPrefix("key") } == encrypts(pair.to))
  }

  @Test("an engine that is required converts what is there before it opens")
  func requiredEngine() throws {
    try makeFixture(.sqlite, at: path)
    let before = try Contents(of: path, key: nil)
    var options = DatabaseOptions(engine: .lmdb, requireEngine: true)
    options.isReadOnly = true
    #expect(try databaseCode { _ = try Database.open(path, options: options) } == .readOnly)
    options.isReadOnly = false
    var database = try Database.open(path, options: options)
    #expect(database.engineName == .lmdb)
    #expect(try Contents(database.engine) == before)
    // As it is open, it can't become another; as it is, it opens again.
    #expect(
      try databaseCode {
        _ = try Database.open(path, options: DatabaseOptions(engine: .sqlite, requireEngine: true))
      }
        == .inUse)
    try Database.open(path, options: options).close()
    try database.close()
    options.engine = .sqlcipher
    #expect(try databaseCode { _ = try Database.open(path, options: options) } == .keyRequired)
    options.key = try oldKey()
    database = try Database.open(path, options: options)
    #expect(database.isEncrypted)
    #expect(try Contents(database.engine) == before)
    try database.close()
    // It is never decrypted unasked.
    options.engine = .sqlite
    #expect(try databaseCode { _ = try Database.open(path, options: options) } == .notEncrypted)
    options.engine = .sqlite
    options.key = nil
    #expect(try databaseCode { _ = try Database.open(path, options: options) } == .notEncrypted)
    // A new one is made as with any options.
    try Database.open(directory.path + "/new", options: DatabaseOptions(engine: .lmdb, requireEngine: true))
      .close()
  }

  @Test("refusals change nothing: keys, engines, databases in use", arguments: someEngines)
  func refusals(_ engine: EngineName) throws {
    try makeFixture(engine, at: path, documents: 20)
    let isEncrypted = try encrypts(engine)
    let (right, wrong) = (try oldKey(), try newKey())
    let names = try directory.names("a.touchstone")
    let target = directory.path + "/b"
    if isEncrypted {
      for code in [
        try databaseCode { try Database.convert(path, to: .lmdb, key: wrong) },
        try databaseCode { try Database.convert(path, to: .lmdb, at: target, key: wrong) },
        try databaseCode { try Database.rekey(path, key: wrong, newKey: right) },
        try databaseCode { try Database.rotateKey(path, key: wrong) },
        try databaseCode { try Database.decrypt(path, key: wrong) },
        try databaseCode { try Database.copy(path, to: target, key: wrong) },
      ] { #expect(code == .wrongKey) }
      #expect(try databaseCode { try Database.convert(path, to: .lmdb) } == .keyRequired)
      #expect(try databaseCode { try Database.copy(path, to: target) } == .keyRequired)
      #expect(try databaseCode { try Database.encrypt(path, key: wrong) } == .alreadyEncrypted)
    } else {
      #expect(try databaseCode { try Database.rekey(path, key: right, newKey: wrong) } == .notEncrypted)
      #expect(try databaseCode { try Database.rotateKey(path, key: right) } == .notEncrypted)
      #expect(try databaseCode { try Database.decrypt(path, key: right) } == .notEncrypted)
      #expect(try databaseCode { try Database.convert(path, to: .sqlcipher) } == .keyRequired)
    }
    #expect(
      try databaseCode { try Database.convert(path, to: .sqlite, key: right, newKey: wrong) } == .notEncrypted
    )
    #expect(try databaseCode { try Database.convert(path, to: "none", key: right) } == .unknownEngine)
    #expect(try databaseCode { try Database.convert(directory.path + "/no", to: .lmdb) } == .notFound)

    func inUse() throws {
      #expect(try databaseCode { try Database.convert(path, to: .lmdb, key: right) } == .inUse)
      if isEncrypted {
        #expect(try databaseCode { try Database.rekey(path, key: right, newKey: wrong) } == .inUse)
        #expect(try databaseCode { try Database.rotateKey(path, key: right) } == .inUse)
        #expect(try databaseCode { try Database.decrypt(path, key: right) } == .inUse)
      } else {
        #expect(try databaseCode { try Database.encrypt(path, key: right, engine: .sqlcipher) } == .inUse)
      }
    }
    let open = try Database.open(path, options: DatabaseOptions(key: isEncrypted ? right : nil))
    try inUse()
    // A copy doesn't mind.
    try Database.copy(path, to: directory.path + "/copied", key: right)
    try open.close()
    let holder = try startChild("conversion", "hold", path)
    try holder.waitForOutput()
    #expect(holder.outputText == "open\n")
    try inUse()
    holder.kill()
    try holder.wait()
    let now = try directory.names("a.touchstone").filter { !$0.hasSuffix("-shm") && !$0.hasSuffix("-wal") }
    #expect(Set(now).subtracting(names).allSatisfy(isSideFile))
    #expect(try !directory.names().contains { $0.hasPrefix(".") || $0.hasPrefix("b") })
    _ = try Contents(of: path, key: isEncrypted ? right : nil)
  }

  @Test("what the progress throws ends it, and nothing has changed", arguments: someEngines)
  func cancellation(_ engine: EngineName) throws {
    struct Enough: Error {}
    try makeFixture(engine, at: path)
    let before = try Contents(of: path, key: key(of: engine))
    let names = try directory.names("a.touchstone")
    let anyKey = try oldKey()
    for phase in [ConversionProgress.Phase.copying, .verifying, .blobs] {
      for target in [nil, directory.path + "/b"] {
        #expect(throws: Enough.self) {
          try Database.convert(
            path, to: encrypts(engine) ? .sqlite : .sqlcipher, at: target, key: anyKey
          ) { if $0.phase == phase { throw Enough() } }
        }
        #expect(try Set(directory.names("a.touchstone")).subtracting(names).allSatisfy(isSideFile))
        #expect(try directory.names() == ["a.touchstone"])
      }
    }
    #expect(try Contents(of: path, key: key(of: engine)) == before)
  }

  @Test("a full disk is said, and leaves the old database as it was", arguments: Pair.all)
  func fullDisk(_ pair: Pair) throws {
    try makeFixture(pair.from, at: path)
    let before = try Contents(of: path, key: key(of: pair.from))
    let names = try directory.names("a.touchstone")
    let child = try startChild("conversion", "limit", "200000", "convert", path, "\(pair.to)")
    #expect(try child.wait() == .exited(1), "\(child.outputText)")
    #expect(child.outputText.contains("failed diskFull"), "\(child.outputText)")
    let left = try Set(directory.names("a.touchstone")).subtracting(names)
    #expect(left.allSatisfy(isSideFile), "\(left)")
    #expect(try Contents(of: path, key: key(of: pair.from)) == before)
  }

  @Test("a map that is too small grows while it is filled")
  func smallMap() throws {
    try makeFixture(.sqlite, at: path, documents: 400)
    let before = try Contents(of: path, key: nil)
    let child = try startChild("conversion", "map", "1048576", "convert", path, "lmdb")
    #expect(try child.wait() == .exited(0), "\(child.outputText)")
    #expect(try Contents(of: path, key: nil) == before)
  }
}
