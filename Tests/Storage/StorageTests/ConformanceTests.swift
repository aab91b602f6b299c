import StorageConformance
import StorageEncrypted
import StorageLMDB
import StorageMemory
import StorageSQLite
import TestTools

#if ROCKSDB
  import StorageRocksDB
#endif
#if WIREDTIGER
  import StorageWiredTiger
#endif
#if POSTGRES
  import StoragePostgres
#endif

/// The engines that have to pass. An engine is added by a line here and one in `Tests/Storage/StorageChild/ConformanceCommands.swift`.
let subjects: [ConformanceSuite.Subject] =
  [
    .init(engine: MemoryEngine.type, keepsFiles: false, loadsItself: false),
    .init(engine: LMDBEngines.lmdb, survivesAnyDamage: false),
    .init(
      engine: LMDBEngines.encrypted, plainCounterpart: LMDBEngines.lmdb, survivesAnyDamage: false,
      authenticatesHeader: false),
    .init(engine: SQLiteEngines.sqlite),
    .init(engine: SQLiteEngines.sqlcipher, plainCounterpart: SQLiteEngines.sqlcipherPlain),
    .init(engine: SQLiteEngines.sqlcipherPlain),
  ] + optionalSubjects

/// The engines whose libraries not every machine has.
private var optionalSubjects: [ConformanceSuite.Subject] {
  var subjects: [ConformanceSuite.Subject] = []
  #if ROCKSDB
    subjects.append(.init(engine: RocksDBEngines.rocksdb, lacks: [.sharing], loadsItself: false))
  #endif
  #if WIREDTIGER
    subjects.append(
      .init(
        engine: WiredTigerEngines.wiredtiger,
        lacks: [.sharing, .readingAfterKill, .readingOnFullDisk, .otherUsers], loadsItself: false))
  #endif
  #if POSTGRES
    if let absence = PostgresServer.absence {
      print("skipped the conformance of postgres: \(absence)")
    } else {
      subjects.append(
        .init(
          engine: PostgresEngines.postgres, keepsFiles: false, loadsItself: false, locations: postgresLocation
        ))
    }
  #endif
  return subjects
}

#if POSTGRES
  /// A schema for each run and label, on the server of this process.
  @Sendable private func postgresLocation(_ directory: String, _ label: String) -> String {
    switch PostgresServer.shared {
    case .success(let server): server.location("\(directory.suffix(12))-\(label)")
    case .failure(let error): "postgres://\(error)#"
    }
  }
#endif

/// Strict engines have to pass as well: a test that fails on them only is then one of code that trusts more than it is
/// promised.
let strictSubjects: [ConformanceSuite.Subject] = [
  .init(engine: StrictEngine.type(over: SQLiteEngines.sqlite, name: "strict(sqlite)")),
  .init(
    engine: StrictEngine.type(over: LMDBEngines.lmdb, name: "strict(lmdb)"), survivesAnyDamage: false),
]

/// What an engine doesn't hold yet. The list only shrinks: a test fails when one of these passes.
let knownFailures: Set<String> = []

/// A behaviour with an engine that has to hold it.
struct ConformanceCase: CustomTestStringConvertible, Sendable {
  let subject: ConformanceSuite.Subject
  let behaviour: ConformanceSuite.Behaviour

  var testDescription: String { "\(subject.engine.name): \(behaviour.name)" }

  /// All cases of these engines, or those whose description holds the text in TOUCHSTONE_ONLY.
  static func all(_ subjects: [ConformanceSuite.Subject]) -> [ConformanceCase] {
    let only = environmentVariable("TOUCHSTONE_ONLY")
    return ConformanceSuite.behaviours.flatMap { behaviour in
      subjects.map { ConformanceCase(subject: $0, behaviour: behaviour) }
    }.filter { only == nil || $0.testDescription.contains(only ?? "") }
  }

  /// - Parameter hasChild: whether another process can open its files.
  func run(hasChild: Bool) throws {
    let directory = TemporaryDirectory()
    var suite = ConformanceSuite(
      subject: subject, directory: directory.path,
      childPath: hasChild ? TestProgram.storage.path : nil, childArguments: ["storage"],
      others: (subjects + strictSubjects).filter(\.keepsFiles).map(\.engine),
      isLong: isLong, seed: testSeed)
    suite.isShort = isShort
    let start = ContinuousClock.now
    defer {
      let duration = ContinuousClock.now - start
      if showsTimes, duration > .seconds(1) { print("\(duration) \(testDescription)") }
    }
    if knownFailures.contains(testDescription) {
      withKnownIssue { try suite.run(behaviour) }
    } else {
      try suite.run(behaviour)
    }
  }
}

// A suite has a process of its own: several engines are tested at the same time.

struct LMDBConformanceTests {
  @Test(arguments: ConformanceCase.all(subjects.filter { $0.engine.name.hasPrefix("lmdb") }))
  func holds(_ conformanceCase: ConformanceCase) throws { try conformanceCase.run(hasChild: true) }
}

struct SQLiteConformanceTests {
  @Test(arguments: ConformanceCase.all(subjects.filter { $0.engine.name.hasPrefix("sql") }))
  func holds(_ conformanceCase: ConformanceCase) throws { try conformanceCase.run(hasChild: true) }
}

struct OtherConformanceTests {
  @Test(
    arguments: ConformanceCase.all(
      subjects.filter { !$0.engine.name.hasPrefix("lmdb") && !$0.engine.name.hasPrefix("sql") }))
  func holds(_ conformanceCase: ConformanceCase) throws { try conformanceCase.run(hasChild: true) }
}

struct StrictConformanceTests {
  /// Kills, full disks and damage are the engine's below. A short run has databases on one of them only.
  @Test(
    arguments: ConformanceCase.all(strictSubjects.filter { !isShort || $0.engine.name == "strict(lmdb)" }))
  func holds(_ conformanceCase: ConformanceCase) throws { try conformanceCase.run(hasChild: isLong) }
}

/// Whether to print which behaviours take longer than a second: TOUCHSTONE_TIMES=1.
let showsTimes = environmentVariable("TOUCHSTONE_TIMES") == "1"
