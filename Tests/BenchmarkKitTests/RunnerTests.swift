import Foundation
import Synchronization
import Testing

@testable import BenchmarkKit

/// Runs come interleaved, each in a fresh directory, and what they took ends up with the right engine.
struct RunnerTests {
  /// What happened, in order.
  private final class Log: Sendable {
    private let lines = Mutex<[String]>([])
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }
  }

  private struct Broken: Error {}

  private func runner(samples: Int, stopAfter: Int = .max) -> Runner {
    var asked = 0
    return Runner(
      .init(
        samples: samples, workDirectory: NSTemporaryDirectory(),
        shouldStop: {
          asked += 1
          return asked > stopAfter
        }))
  }

  private func workload(_ log: Log, limitOn limited: Set<String> = ["a", "b", "c"]) -> Workload {
    Workload(
      suite: "s", name: "w", summary: "", parameters: ["n": 1], operations: 10,
      limit: .init(
        name: { limited.contains($0) ? "limit of \($0)" : nil },
        prepare: { context in
          log.add("limit-\(context.engine)")
          return Trial(run: { .seconds(2) })
        })
    ) { context in
      log.add(context.engine)
      return Trial(run: { .seconds(context.engine == "a" ? 3 : 5) }, fileBytes: { 77 })
    }
  }

  @Test func enginesAndLimitsTakeTurnsAndTheOrderRotates() throws {
    let log = Log()
    _ = try runner(samples: 3).run([workload(log)], engines: ["a", "b", "c"])
    #expect(
      log.all == [
        "a", "limit-a", "b", "limit-b", "c", "limit-c",
        "limit-b", "b", "limit-c", "c", "limit-a", "a",
        "c", "limit-c", "a", "limit-a", "b", "limit-b",
      ])
  }

  @Test func everyEngineIsInEveryPlaceOfTheOrder() {
    for engines in 1...4 {
      for place in 0..<engines {
        let inPlace = (0..<engines).map { Runner.order(round: $0, engines: engines)[place * 2].engine }
        #expect(Set(inPlace) == Set(0..<engines))
      }
    }
  }

  @Test func samplesGoToTheirEngineAndLimit() throws {
    let results = try runner(samples: 2).run([workload(Log())], engines: ["a", "b"])
    #expect(results.map(\.engine) == ["a", "b"])
    #expect(results[0].metrics.seconds.samples == [3, 3])
    #expect(results[1].metrics.seconds.samples == [5, 5])
    #expect(results[0].limit?.name == "limit of a")
    #expect(results[0].limit?.normalized == 1.5)
    #expect(results[1].limit?.normalized == 2.5)
    #expect(results[1].metrics.opsPerSecond.median == 2)
    #expect(results[1].metrics.fileBytes.median == 77)
    #expect(results[0].metrics.peakMemoryBytes.median > 0)
  }

  @Test func engineWithoutALimitHasNone() throws {
    let log = Log()
    let results = try runner(samples: 1).run([workload(log, limitOn: ["b"])], engines: ["a", "b"])
    #expect(results[0].limit == nil)
    #expect(results[1].limit != nil)
    #expect(log.all == ["a", "b", "limit-b"])
  }

  @Test func wholeRunsAreTimedByTheRunner() throws {
    let workload = Workload(suite: "s", name: "w", summary: "", operations: 1) { _ in
      Trial(run: {
        let start = Clock.nanoseconds()
        while Clock.nanoseconds() - start < 5_000_000 {}
        return .whole
      })
    }
    let results = try runner(samples: 1).run([workload], engines: ["a"])
    #expect(results[0].metrics.seconds.median >= 0.005)
    #expect(results[0].metrics.cpuSeconds.median > 0)
  }

  @Test func bytesWrittenAreCounted() throws {
    let workload = Workload(suite: "s", name: "w", summary: "", operations: 1) { context in
      Trial(
        run: {
          try Data(count: 100_000).write(to: URL(fileURLWithPath: "\(context.directory)/f"))
          return .whole
        }, fileBytes: { try TrialDirectory.fileBytes(in: context.directory) })
    }
    let results = try runner(samples: 1).run([workload], engines: ["a"])
    #expect(results[0].metrics.bytesWritten.median >= 100_000)
    #expect(results[0].metrics.fileBytes.median == 100_000)
  }

  @Test func directoriesAreFreshAndRemoved() throws {
    let log = Log()
    let workload = Workload(suite: "s", name: "w", summary: "", operations: 1) { context in
      let files = try FileManager.default.contentsOfDirectory(atPath: context.directory)
      #expect(files.isEmpty)
      try Data([1]).write(to: URL(fileURLWithPath: "\(context.directory)/f"))
      log.add(context.directory)
      return Trial(run: { .whole })
    }
    _ = try runner(samples: 3).run([workload], engines: ["a"])
    #expect(Set(log.all).count == 3)
    for directory in log.all { #expect(!FileManager.default.fileExists(atPath: directory)) }
  }

  @Test func failureNamesWorkloadAndEngineAndFinishes() {
    let log = Log()
    let workload = Workload(suite: "s", name: "w", summary: "", parameters: ["n": 1], operations: 1) { _ in
      Trial(run: { throw Broken() }, finish: { log.add("finished") })
    }
    let failure = #expect(throws: Runner.Failure.self) {
      try runner(samples: 1).run([workload], engines: ["a"])
    }
    #expect(failure?.description.contains("s w (n=1) on a") == true)
    #expect(log.all == ["finished"])
  }

  @Test func stopsBetweenRunsWhenAsked() {
    let log = Log()
    #expect(throws: Runner.Interrupted.self) {
      try runner(samples: 3, stopAfter: 2).run([workload(log)], engines: ["a"])
    }
    #expect(log.all == ["a", "limit-a"])
  }

  @Test func fixturesAreFilledOnceAndCopied() throws {
    let fixtures = Fixtures(in: NSTemporaryDirectory())
    let log = Log()
    var paths: Set<String> = []
    for _ in 0..<2 {
      paths.insert(
        try fixtures.directory("x") { directory in
          log.add("fill")
          try Data([1, 2, 3]).write(to: URL(fileURLWithPath: "\(directory)/f"))
        })
    }
    #expect(log.all == ["fill"])
    let source = try #require(paths.first)
    let target = try TrialDirectory(in: NSTemporaryDirectory())
    defer { target.remove() }
    try Fixtures.copy(source, to: target.path)
    #expect(try Data(contentsOf: URL(fileURLWithPath: "\(target.path)/f")) == Data([1, 2, 3]))
    fixtures.removeAll()
    #expect(!FileManager.default.fileExists(atPath: source))
  }

  @Test func peakMemoryIsThatSinceTheReset() throws {
    // Far more than the tests that run beside this one use.
    let size = 256 << 20
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: 1)
    let held = try #require(ProcessUsage.peakMemory())
    #expect(held > size && memory[size - 1] == 1)
    memory.deallocate()
    guard ProcessUsage.resetPeakMemory() else { return }
    let after = try #require(ProcessUsage.peakMemory())
    #expect(after < held - size / 2)
  }
}
