import BenchmarkKit
import Storage
import TestSupport

@testable import Suites

/// The suite endure records each run by the second.
struct EndureSuiteTests {
  @Test(arguments: everyEngine)
  func everyWorkloadHasASeries(_ engine: EngineName) throws {
    func measured(seconds: Double) throws -> ResultsFile {
      try ran(.endure, on: [engine]) { settings in
        settings.cacheBytes = 256 << 10
        settings.endure.dataPerCache = 2
        settings.endure.readPercents = [50]
        settings.endure.threads = [2]
        settings.endure.rates = [100]
        settings.endure.seconds = seconds
        settings.endure.interval = seconds / 2
        // Other tests of this process aren't quiet.
        settings.endure.quietLimit = 0
      }
    }
    func isIdle(_ result: WorkloadResult) -> Bool {
      (result.series?.all.first?[.operations] ?? []).reduce(0, +) == 0
    }
    var (file, seconds) = (try measured(seconds: 0.1), 4.0)
    // On a busy machine the time of a run can be over before one of its threads has begun.
    while file.results.contains(where: isIdle), seconds < 100 {
      file = try measured(seconds: seconds)
      seconds *= 3
    }
    expect(file.results.map(\.workload), equals: ["grow", "update", "update"])
    for result in file.results {
      let series = try #require(result.series?.all.first)
      expect(series.phases.first?.name, equals: "run")
      let operations = try #require(series[.operations]).reduce(0, +)
      let user = try #require(series[.userBytes])
      expect(operations > 0 && (user.last ?? 0) > 0, "\(result.label)")
      expect(user, equals: user.sorted())
      expect(result.metrics.seconds.median > 0 && result.metrics[.latencyP99] != nil)
      expect((result.metrics[.spaceAmplification]?.median ?? 0) > 0.5, "\(result.label)")
      expect(result.metrics[.longestStall] != nil)
      expect(!series.activity.isEmpty, "\(engine.rawValue) tells what its library did")
    }
    // All entries, each of 24 and 1,000 bytes, are there once.
    let entries = (512 << 10) / 1_024
    expect(file.results[0].series?.all[0][.storedBytes]?.last, equals: Double(entries * 1_024))
    expect(file.results[1].parameters["reads"], equals: 50)
    let table = try #require(Suite.endure.tables(file.results).first)
    expect(table.rows.count, equals: 3)
    expect(table.rows.allSatisfy { $0.count == table.heads.count })
    expect(Suite.endure.notes(file.results).contains { $0.contains("latencies from the intended start") })
  }

  /// A clock that stands still but for what is done with it.
  private final class Time {
    var now: UInt64 = 0
  }

  @Test func operationsThatCouldNotBeginCountWithTheTimeThatTheyWaited() {
    // Ten a second for a second. The third one takes until behind the end.
    let time = Time()
    let latencies = IntervalLatencies(begin: 0, interval: 1, threads: 1)
    var recorder = latencies.recorder(0)
    var done = 0
    ArrivalSchedule(begin: 0, rate: 10).run(
      until: 1_000_000_000, thread: 0, into: &recorder, clock: { time.now },
      wait: { time.now = max(time.now, $0) }
    ) {
      done += 1
      time.now += done == 3 ? 5_000_000_000 : 1_000
    }
    recorder.finish()
    let outcome = latencies.outcome()
    expect(done, equals: 3)
    expect(outcome.operations, equals: 3)
    expect(outcome.total.count, equals: 10)
    expect(outcome.total.maximum, equals: 5_000_000_000)
    // Due at 0.3 s, …, 0.9 s: they had waited for 0.7 s, …, 0.1 s. Half of all took 0.3 s and longer.
    expect(abs(Double(outcome.total.value(at: 0.5)) / 3e8 - 1) < 0.002)
  }

  @Test func theSettingsGiveEveryCombination() {
    var settings = EndureSettings()
    settings.valueBytes = [100, 16_384]
    settings.readPercents = [0, 90]
    settings.threads = [1, 8]
    settings.rates = [100, 200]
    let variants = EndureWorkload.variants(settings)
    expect(variants.count { $0.kind == .grow }, equals: 4)
    expect(variants.count { $0.kind == .update }, equals: 2 * 2 * 2 * 3)
    expect(Set(variants.map { "\($0)" }).count, equals: variants.count)
  }

  @Test func keysAreDifferentAndInNoOrder() {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: EndureData.keyBytes, alignment: 8)
    defer { buffer.deallocate() }
    let keys = (0..<1_000).map { number in
      EndureData.writeKey(number, into: buffer)
      return String(decoding: buffer, as: UTF8.self)
    }
    expect(Set(keys).count, equals: 1_000)
    expect(keys.allSatisfy { $0.count == 24 && $0.allSatisfy(\.isNumber) })
    expect((400...600).contains(zip(keys, keys.dropFirst()).count { $0 < $1 }))
  }

  @Test func theHeaderOfALogTellsOfCheckpoints() throws {
    let directory = TemporaryDirectory()
    let path = directory.path + "/db-wal"
    expect(EngineActivity.log(path).map(\.value), equals: [0, 0])
    let header: [UInt8] = [0x37, 0x7F, 6, 0x82, 0, 0x2D, 0xE2, 0x18, 0, 0, 16, 0, 0, 0, 1, 2]
    try Data(header + [UInt8](repeating: 0, count: 100)).write(to: URL(fileURLWithPath: path))
    expect(EngineActivity.log(path).map(\.value), equals: [258, 116])
    expect(EngineActivity.log(path).map(\.isTotal), equals: [true, false])
  }

  @Test func aBuildsEnginesAreComparedEachOnce() {
    let names = BenchEngines.every.map(\.name)
    expect(names.prefix(4), equals: ["sqlite", "lmdb", "sqlcipher", "lmdb-encrypted"])
    expect(Set(names).count, equals: names.count)
    expect(!names.contains("sqlcipher-plain"))
  }
}
