import BenchmarkKit
import Limits
import TestSupport

@testable import Suites

struct ViewsSuiteTests {
  @Test(arguments: benchedEngines)
  func everyWorkloadOfSwiftMapsRuns(_ engine: EngineName) throws {
    let file = try ran(.views, on: [engine], dataset: "synthetic-travel", documents: 300) { settings in
      // Scripts are another program, which a build for tests may not have.
      settings.only = Set(ViewsWorkload.allCases.filter { $0 != .buildTravel }.map(\.rawValue))
    }
    let workloads = Set(file.results.map(\.workload))
    expect(workloads, equals: Set(ViewsWorkload.allCases.map(\.rawValue)).subtracting(["build-travel"]))
    expect(file.results.allSatisfy { $0.metrics.seconds.median > 0 && $0.metrics.fileBytes.median > 0 })
    let notes = Suite.views.notes(file.results)
    expect(notes.count { $0.contains("as the equal value index") }, equals: 3, "\(notes)")
  }

  @Test func sizesArePowersOfTenUpToTheLargest() {
    expect(ViewsWorkload.build.sizes(upTo: 300), equals: [300])
    expect(ViewsWorkload.build.sizes(upTo: 10_000), equals: [1_000, 10_000])
    expect(ViewsWorkload.build.sizes(upTo: 29_396), equals: [1_000, 10_000, 29_396])
  }

  @Test func replaysHaveTheWritesOfAnUpdateOnce() throws {
    let directory = try TrialDirectory(in: NSTemporaryDirectory())
    defer { directory.remove() }
    let update = try ViewsReplay(400, .init(), step: 100, in: directory.path)
    // Four documents: each has a row that goes, one that comes, and other sources. Blocks are merged.
    let rows = update.operations.filter { $0.table == 0 }
    expect(
      rows.count { $0.kind == UInt8(LIMIT_DELETE) } == 4 && rows.count { $0.kind == UInt8(LIMIT_INSERT) } == 4
    )
    expect(update.operations.count { $0.table == 1 && $0.kind == UInt8(LIMIT_UPDATE) }, equals: 4)
    expect(update.operations.contains { $0.table == 2 })
  }
}
