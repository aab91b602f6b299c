import BenchmarkKit
import TestSupport

@testable import Suites

struct MemorySuiteTests {
  @Test(arguments: benchedEngines)
  func everyWorkloadTellsItsPeak(_ engine: EngineName) throws {
    let file = try ran(.memory, on: [engine], dataset: "synthetic-travel", documents: 450)
    expect(file.results.map(\.workload), equals: TravelWorkload.streamed.map(\.rawValue))
    // The whole process's, with all that other tests hold.
    let peaks = file.results.map { $0.metrics[.anonymousMemoryBytes]?.median ?? 0 }
    expect(peaks.allSatisfy { $0 > 1_048_576 }, "\(peaks)")
    expect(Suite.memory.notes(file.results).count, equals: 1)
    expect(Suite.memory.tables(file.results)[0].rows.count, equals: TravelWorkload.streamed.count)
  }

  @Test func aPeakIsSeenThatIsGoneAtTheEnd() throws {
    let memory = Lock(10)
    let peak = MemoryPeak { memory.withLock { $0 } }
    let deadline = Date(timeIntervalSinceNow: 600)
    try peak.measure {
      memory.withLock { $0 = 100 }
      while peak.bytes < 100, Date() < deadline { usleep(100) }
      memory.withLock { $0 = 20 }
    }
    expect(peak.bytes, equals: 100)
    try peak.measure {}
    expect(peak.bytes, equals: 20)
  }

  @Test func theWorkloadThatTakesMostIsTold() throws {
    func workload(_ kind: TravelWorkload, mebibytes: Double) -> Workload {
      Workload(suite: "memory", name: kind.rawValue, summary: "", operations: 1) { context in
        let bytes = mebibytes * (context.engine == "large" ? 10 : 1) * 1_048_576
        return Trial(run: { .whole }, metrics: { [.anonymousMemoryBytes: bytes] })
      }
    }
    let results = try Runner(
      .init(sampling: .fixed(2), workDirectory: NSTemporaryDirectory(), evictsCaches: false)
    ).run([workload(.read, mebibytes: 8), workload(.update, mebibytes: 8.1)], engines: ["small", "large"])
    expect(
      MemoryNotes.lines(results),
      equals: [
        "small: the process had 8.1 MiB of its own at its peak, in update.",
        "large: the process had 81.0 MiB of its own at its peak, in update.",
      ])
    expect(
      MemoryNotes.tables(results),
      equals: [
        Remarks.Table(
          heads: ["anonymous memory, MiB", "small", "large"],
          rows: [["read", "8.0", "80.0"], ["update", "8.1", "81.0"]])
      ])
  }
}
