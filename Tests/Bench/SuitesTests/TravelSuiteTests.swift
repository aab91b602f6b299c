import BenchmarkKit
import Suites
import TestSupport

@Suite("The travel suite") struct TravelSuiteTests {
  @Test("a peer stands beside the engines in each workload that it has") func peer() throws {
    let file = try ran(.travel, on: [.sqlite], dataset: "synthetic-travel", documents: 60)
    let peer = file.results.filter { $0.engine == "peer" }
    let left = ["compact", "insert-threads"]
    expect(peer.map(\.workload), equals: Suite.travel.workloadNames.filter { !left.contains($0) })
    expect(peer.allSatisfy { $0.metrics.seconds.median > 0 && $0.limit == nil })
    expect(file.engines["peer"]?.settings["synchronous"], equals: "NORMAL")
    // What it is measured with is what the engines are measured with.
    for row in peer {
      let other = file.results.first { $0.engine == "sqlite" && $0.workload == row.workload }
      expect(other?.operations, equals: row.operations)
    }
    let table = ResultsTable(file.results, engines: ["sqlite", "peer"]).text()
    expect(table.split(separator: "\n").first?.hasSuffix("peer"), equals: true)
  }

  @Test("loops in bare C stand beside optional engines in all but one workload", arguments: optionalEngines)
  func limits(_ engine: EngineName) throws {
    let file = try ran(.travel, on: [engine], dataset: "synthetic-travel", documents: 60)
    let rows = file.results.filter { $0.engine == engine.rawValue }
    expect(rows.map(\.workload), equals: Suite.travel.workloadNames)
    for row in rows where row.workload != "insert-threads" {
      expect((row.limit?.seconds.median ?? 0) > 0, "\(row.label)")
    }
  }
}
