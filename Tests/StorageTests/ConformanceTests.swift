import Foundation
import StorageConformance
import StorageLMDB
import StorageSQLite
import Testing

/// The engines that have to pass. An engine is added by a line here and one in the child's `main.swift`.
let subjects: [ConformanceSuite.Subject] = [
  .init(engine: MemoryEngine.type, keepsFiles: false),
  .init(engine: LMDBEngines.lmdb, survivesAnyDamage: false),
  .init(
    engine: LMDBEngines.encrypted, plainCounterpart: LMDBEngines.lmdb, survivesAnyDamage: false,
    authenticatesHeader: false),
  .init(engine: SQLiteEngines.sqlite),
  .init(engine: SQLiteEngines.sqlcipher, plainCounterpart: SQLiteEngines.sqlcipherPlain),
  .init(engine: SQLiteEngines.sqlcipherPlain),
]

/// A behaviour with an engine that has to hold it.
struct ConformanceCase: CustomTestStringConvertible, Sendable {
  let subject: ConformanceSuite.Subject
  let behaviour: ConformanceSuite.Behaviour

  var testDescription: String { "\(subject.engine.name): \(behaviour.name)" }

  /// All cases, or those whose description holds the text in TOUCHSTONE_ONLY.
  static let all: [ConformanceCase] = {
    let only = ProcessInfo.processInfo.environment["TOUCHSTONE_ONLY"]
    return ConformanceSuite.behaviours.flatMap { behaviour in
      subjects.map { ConformanceCase(subject: $0, behaviour: behaviour) }
    }.filter { only == nil || $0.testDescription.contains(only ?? "") }
  }()
}

@Suite(.serialized)
struct ConformanceTests {
  @Test(arguments: ConformanceCase.all)
  func holds(_ conformanceCase: ConformanceCase) throws {
    let directory = try TemporaryDirectory()
    defer { directory.remove() }
    let suite = ConformanceSuite(
      subject: conformanceCase.subject, directory: directory.path, childPath: childPath,
      others: subjects.filter(\.keepsFiles).map(\.engine),
      isLong: isLong, seed: seed)
    let start = ContinuousClock.now
    defer {
      let duration = ContinuousClock.now - start
      if showsTimes, duration > .seconds(1) { print("\(duration) \(conformanceCase.testDescription)") }
    }
    try suite.run(conformanceCase.behaviour)
  }
}

/// Whether the long campaigns were asked for: TOUCHSTONE_LONG=1.
let isLong = ProcessInfo.processInfo.environment["TOUCHSTONE_LONG"] == "1"

/// Whether to print which behaviours take longer than a second: TOUCHSTONE_TIMES=1.
let showsTimes = ProcessInfo.processInfo.environment["TOUCHSTONE_TIMES"] == "1"

/// A random seed, or that of TOUCHSTONE_SEED to repeat a failure.
let seed =
  ProcessInfo.processInfo.environment["TOUCHSTONE_SEED"].flatMap { UInt64($0) }
  ?? UInt64.random(in: 0...UInt64.max)

/// The executable `storage-child`, which is built beside the bundle of the tests.
let childPath: String? = {
  // The bundle is loaded by its runner, or is the running executable itself.
  let candidates = Bundle.allBundles.map(\.bundlePath) + CommandLine.arguments
  return candidates.lazy
    .map { ($0 as NSString).deletingLastPathComponent + "/storage-child" }
    .first { FileManager.default.isExecutableFile(atPath: $0) }
}()

/// A directory that is made empty and removed at the end.
struct TemporaryDirectory {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "/touchstone-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// Removes it, unless TOUCHSTONE_KEEP=1 wants to look at what is in it.
  func remove() {
    if ProcessInfo.processInfo.environment["TOUCHSTONE_KEEP"] == "1" { return }
    try? FileManager.default.removeItem(atPath: path)
  }
}
