import BenchmarkKit
import Datasets
import StorageLMDB
import TestSupport

@testable import Suites

/// The engine suite runs on every engine, beside limits that see the same entries.
struct EngineSuiteTests {
  @Test(arguments: everyEngine)
  func everyWorkloadRunsBesideItsLimit(_ engine: EngineName) throws {
    let file = try ran(.engine, on: [engine]) { ($0.keys, $0.commits) = (300, 20) }
    // Two sizes of values, and three numbers of threads for one workload.
    expect(file.results.count, equals: (EngineWorkload.allCases.count + 2) * 2)
    // There is no bare loop over encrypted trees.
    let hasLimit = engine != .lmdbEncrypted
    for result in file.results {
      expect((result.limit != nil), equals: hasLimit, "\(result.label)")
      expect(result.metrics.seconds.median > 0, "\(result.label)")
      expect((result.limit?.seconds.median ?? 0) > 0 || !hasLimit, "\(result.label)")
      expect(result.metrics.fileBytes.median > 0, "\(result.label)")
    }
    expect(file.engines[engine.rawValue]?.settings["durability"], equals: "normal")
  }

  @Test(arguments: Durability.allCases)
  func limitsSetTheDurabilityOfTheEngine(_ durability: Durability) throws {
    for type in BenchEngines.standard {
      let probed = try ProbedEngine(type, durability: durability, workDirectory: NSTemporaryDirectory())
      if probed.limitFamily == .lmdb {
        let flags = LimitOpening(engine: probed, tables: []).withLMDB { options, _ in options.pointee.flags }
        // MDB_NOSYNC 0x10000, MDB_NOMETASYNC 0x40000, MDB_NOSUBDIR 0x4000, MDB_NOTLS 0x200000.
        let expected: UInt32 =
          switch durability {
          case .full: 0x204000
          case .normal: 0x244000
          case .none: 0x214000
          }
        expect(flags, equals: expected)
      } else {
        let pragmas = try LimitOpening(engine: probed, tables: []).withSQLite { options, _ in
          options.pointee.pragmas.map { String(cString: $0) } ?? ""
        }
        let synchronous =
          switch durability {
          case .full: "2"
          case .normal: "1"
          case .none: "0"
          }
        expect(pragmas.contains("synchronous = \(synchronous)"))
        expect(pragmas.contains(type.encrypts ? "cipher_page_size" : "page_size"))
      }
    }
  }

  @Test(arguments: Durability.allCases)
  func limitsOpenRocksDBWithTheSettingsOfTheEngine(_ durability: Durability) throws {
    guard let name = optionalEngines.first(where: { $0 == .rocksdb }) else { return }
    let probed = try ProbedEngine(
      try Engines.type(name), durability: durability, cacheBytes: 8 << 20,
      workDirectory: NSTemporaryDirectory())
    let opening = LimitOpening(engine: probed, tables: [])
    let (others, tables) = try #require(opening.rocksDBSettings.split(separator: "{", maxSplits: 1).pair)
    expect(others.contains("write_buffer_size=2097152;") && others.contains("compression=kLZ4Compression"))
    expect(tables.contains("block_cache=4194304;") && tables.contains("filter_policy=bloomfilter:10"))
    expect(!opening.rocksDBSettings.contains("WriteOptions"))
    expect(opening.withRocksDB { options, _ in options.pointee.sync }, equals: durability == .full)
  }

  @Test(arguments: Durability.allCases)
  func limitsOpenWiredTigerWithTheSettingsOfTheEngine(_ durability: Durability) throws {
    guard let name = optionalEngines.first(where: { $0 == .wiredtiger }) else { return }
    let probed = try ProbedEngine(
      try Engines.type(name), durability: durability, cacheBytes: 32 << 20,
      workDirectory: NSTemporaryDirectory())
    let settings = LimitOpening(engine: probed, tables: []).wiredTigerSettings
    let method = durability == .full ? "fsync" : "none"
    expect(settings.connection.contains("cache_size=33554432,"))
    expect(settings.connection.contains(",transaction_sync=(enabled=true,method=\(method)),log=(enabled="))
    expect(!settings.connection.contains("page_max") && !settings.connection.contains("isolation"))
    expect(settings.session, equals: "ignore_cache_size=true")
    expect(settings.transaction, equals: "isolation=snapshot")
    expect(settings.table.contains("leaf_page_max=16KB,checksum=on"))
  }

  @Test func suiteNamesAreUniqueAndWorkloadsAreAsListed() throws {
    expect(Set(Suite.all.map(\.name)).count, equals: Suite.all.count)
    let settings = BenchSettings(workDirectory: NSTemporaryDirectory(), keys: 200)
    let context = SuiteContext(
      settings: settings, engines: [:], fixtures: Fixtures(in: NSTemporaryDirectory()), dataset: nil)
    for suite in Suite.all where !suite.usesDataset {
      try expect(Set(suite.workloads(context).map(\.name)), equals: Set(suite.workloadNames))
    }
  }

  @Test func onlyNamedWorkloadsRun() throws {
    let file = try ran(.engine, on: [.lmdb], samples: 2) { ($0.keys, $0.only) = (200, ["readseq"]) }
    expect(Set(file.results.map(\.workload)), equals: ["readseq"])
  }

  @Test func nothingIsLeftBehind() throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    _ = try ran(.engine, on: BenchEngines.standard.map { EngineName(rawValue: $0.name) }) {
      ($0.workDirectory, $0.keys, $0.only) = (directory.path, 200, ["readrandom", "overwrite"])
    }
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: [])
  }
}

extension [Substring] {
  /// The two members, if there are two.
  fileprivate var pair: (String, String)? { count == 2 ? (String(self[0]), String(self[1])) : nil }
}
