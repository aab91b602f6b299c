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
      : zip(everyEngine, everyEngine.dropFirst() + [everyEngine[0]]).map { Pair(from: $0, to: $1) }
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
    try expect(Contents(of: beside, key: targetKey), equals: before)
    try expect(Contents(of: path, key: oldOptions.key), equals: before)
    try expect(directory.names(), equals: ["a.touchstone", "b.touchstone"])
    try expect(
      databaseCode { try Database.convert(path, to: pair.to, at: beside, key: anyKey) },
      equals: .alreadyExists)

    var phases: Set<ConversionProgress.Phase> = []
    try Database.convert(path, to: pair.to, key: anyKey) { phases.insert($0.phase) }
    expect(phases.isSuperset(of: [.copying, .verifying]))
    try expect(Contents(of: path, key: targetKey), equals: before)
    database = try Database.open(path, options: DatabaseOptions(creation: .openExisting, key: targetKey))
    expect(database.engineName, equals: pair.to)
    try expect(database.isEncrypted, equals: encrypts(pair.to))
    try expect((database.publicUUID, database.privateUUID, try database.lastSequence) == identity)
    try database.save("more", ["n": 1])
    try database.close()
    // Nothing of the old files is left.
    try expect(
      directory.names("a.touchstone").filter { $0.hasPrefix("data-") && !$0.contains("-lock") }.count,
      equals: 1)
    try expect(directory.names("a.touchstone").contains { $0.hasPrefix("key") }, equals: encrypts(pair.to))
  }

  @Test("the security object and what a server keeps beside it come along", arguments: someEngines)
  func kept(_ engine: EngineName) throws {
    let security = Array(#"{"members":{"names":["carol"]},"admins":{}}"#.utf8)
    var database = try Database.open(path, options: try options(engine))
    try database.setSecurityObject(security)
    try database.replicatingChanges {
      try $0.setPurgeRequestsLimit(5)
      try $0.setPartitioned()
    }
    try database.close()
    let target: EngineName = engine == .sqlite ? .lmdb : .sqlite
    try Database.convert(path, to: target, key: try key(of: engine))
    database = try Database.open(path, options: DatabaseOptions(creation: .openExisting))
    expect(database.engineName, equals: target)
    try expect(database.securityObject(), equals: security)
    try expect(database.replicating { try $0.purgeRequestsLimit() }, equals: 5)
    try expect(database.replicating { try $0.isPartitioned() })
    try database.close()
  }

  @Test("an engine that is required converts what is there before it opens")
  func requiredEngine() throws {
    try makeFixture(.sqlite, at: path)
    let before = try Contents(of: path, key: nil)
    var options = DatabaseOptions(engine: .lmdb, requireEngine: true)
    options.isReadOnly = true
    try expect(databaseCode { _ = try Database.open(path, options: options) }, equals: .readOnly)
    options.isReadOnly = false
    var database = try Database.open(path, options: options)
    expect(database.engineName, equals: .lmdb)
    try expect(Contents(database.engine), equals: before)
    // As it is open, it can't become another; as it is, it opens again.
    try expect(
      databaseCode {
        _ = try Database.open(path, options: DatabaseOptions(engine: .sqlite, requireEngine: true))
      }, equals: .inUse)
    try Database.open(path, options: options).close()
    try database.close()
    options.engine = .sqlcipher
    try expect(databaseCode { _ = try Database.open(path, options: options) }, equals: .keyRequired)
    options.key = try oldKey()
    database = try Database.open(path, options: options)
    expect(database.isEncrypted)
    try expect(Contents(database.engine), equals: before)
    try database.close()
    // It is never decrypted unasked.
    options.engine = .sqlite
    try expect(databaseCode { _ = try Database.open(path, options: options) }, equals: .notEncrypted)
    options.engine = .sqlite
    options.key = nil
    try expect(databaseCode { _ = try Database.open(path, options: options) }, equals: .notEncrypted)
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
      ] { expect(code, equals: .wrongKey) }
      try expect(databaseCode { try Database.convert(path, to: .lmdb) }, equals: .keyRequired)
      try expect(databaseCode { try Database.copy(path, to: target) }, equals: .keyRequired)
      try expect(databaseCode { try Database.encrypt(path, key: wrong) }, equals: .alreadyEncrypted)
    } else {
      try expect(databaseCode { try Database.rekey(path, key: right, newKey: wrong) }, equals: .notEncrypted)
      try expect(databaseCode { try Database.rotateKey(path, key: right) }, equals: .notEncrypted)
      try expect(databaseCode { try Database.decrypt(path, key: right) }, equals: .notEncrypted)
      try expect(databaseCode { try Database.convert(path, to: .sqlcipher) }, equals: .keyRequired)
    }
    try expect(
      databaseCode { try Database.convert(path, to: .sqlite, key: right, newKey: wrong) },
      equals: .notEncrypted)
    try expect(databaseCode { try Database.convert(path, to: "none", key: right) }, equals: .unknownEngine)
    try expect(databaseCode { try Database.convert(directory.path + "/no", to: .lmdb) }, equals: .notFound)

    func inUse() throws {
      try expect(databaseCode { try Database.convert(path, to: .lmdb, key: right) }, equals: .inUse)
      if isEncrypted {
        try expect(databaseCode { try Database.rekey(path, key: right, newKey: wrong) }, equals: .inUse)
        try expect(databaseCode { try Database.rotateKey(path, key: right) }, equals: .inUse)
        try expect(databaseCode { try Database.decrypt(path, key: right) }, equals: .inUse)
      } else {
        try expect(
          databaseCode { try Database.encrypt(path, key: right, engine: .sqlcipher) }, equals: .inUse)
      }
    }
    let open = try Database.open(path, options: DatabaseOptions(key: isEncrypted ? right : nil))
    try inUse()
    // A copy doesn't mind.
    try Database.copy(path, to: directory.path + "/copied", key: right)
    try open.close()
    let holder = try startChild(.database, "conversion", "hold", path)
    try holder.waitForOutput()
    expect(holder.outputText, equals: "open\n")
    try inUse()
    holder.kill()
    try holder.wait()
    let now = try directory.names("a.touchstone").filter { !$0.hasSuffix("-shm") && !$0.hasSuffix("-wal") }
    expect(Set(now).subtracting(names).allSatisfy(isSideFile))
    try expect(!directory.names().contains { $0.hasPrefix(".") || $0.hasPrefix("b") })
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
        try expect(Set(directory.names("a.touchstone")).subtracting(names).allSatisfy(isSideFile))
        try expect(directory.names(), equals: ["a.touchstone"])
      }
    }
    try expect(Contents(of: path, key: key(of: engine)), equals: before)
  }

  // RocksDB spreads the entries over files, none of which reaches the limit.
  @Test(
    "a full disk is said, and leaves the old database as it was",
    arguments: Pair.all.filter { $0.to != .rocksdb })
  func fullDisk(_ pair: Pair) throws {
    try makeFixture(pair.from, at: path)
    let before = try Contents(of: path, key: key(of: pair.from))
    let names = try directory.names("a.touchstone")
    let child = try startChild(.database, "conversion", "limit", "200000", "convert", path, "\(pair.to)")
    try expect(child.wait(), equals: .exited(1), "\(child.outputText)")
    expect(child.outputText.contains("failed diskFull"), "\(child.outputText)")
    let left = try Set(directory.names("a.touchstone")).subtracting(names)
    expect(left.allSatisfy(isSideFile), "\(left)")
    try expect(Contents(of: path, key: key(of: pair.from)), equals: before)
  }

  @Test("a map that is too small grows while it is filled")
  func smallMap() throws {
    try makeFixture(.sqlite, at: path, documents: 400)
    let before = try Contents(of: path, key: nil)
    let child = try startChild(.database, "conversion", "map", "1048576", "convert", path, "lmdb")
    try expect(child.wait(), equals: .exited(0), "\(child.outputText)")
    try expect(Contents(of: path, key: nil), equals: before)
  }
}
