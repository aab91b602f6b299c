import BenchmarkKit
import Storage

extension Suite {
  /// Several servers of this project over one PostgreSQL server.
  public static let cluster = Suite(
    name: "cluster",
    summary:
      "Reads and writes over HTTP through 1 to 8 processes `touchstone serve` over 1 to 16 databases of one PostgreSQL server, "
      + "which --location names, near and behind a proxy that delays.",
    workloadNames: ClusterWorkload.allCases.map(\.rawValue), usesDataset: false,
    data: "made documents of about 300 bytes", standardSamples: 3, runsOnServers: true,
    peers: [Peer(name: ClusterBenchmark.subject, description: ClusterBenchmark.description)],
    ignoresEngines: true, notes: ClusterNotes.lines, tables: ClusterNotes.tables
  ) { context in
    ClusterBenchmark.Shape.all.flatMap { shape in
      ClusterWorkload.allCases.map {
        ClusterBenchmark(kind: $0, shape: shape, settings: context.settings).workload()
      }
    }
  }
}

/// The workloads of the suite `cluster`.
enum ClusterWorkload: String, CaseIterable {
  case reads, writes

  var summary: String {
    switch self {
    case .reads: "GET of random documents, by connections spread over the servers"
    case .writes: "PUT of new documents, by connections spread over the servers; each is a commit"
    }
  }
}

/// The remarks of the suite `cluster`.
enum ClusterNotes {
  static func lines(_ results: [WorkloadResult]) -> [String] {
    ClusterWorkload.allCases.flatMap { kind -> [String] in
      func row(_ shape: ClusterBenchmark.Shape) -> WorkloadResult? {
        results.first { $0.workload == kind.rawValue && $0.parameters == shape.parameters }
      }
      var lines: [String] = []
      if let one = row(.init(servers: 1, databases: 16)), let four = row(.init(servers: 4, databases: 16)) {
        let ratio = one.secondsPerOperation / four.secondsPerOperation
        lines.append(
          "\(kind.rawValue): four servers over 16 databases do \(rounded(ratio, 2)) times the work of one.")
      }
      if let far = ClusterBenchmark.Shape.alone.last.flatMap(row), let trips = far.metrics[.messages] {
        let each = trips.median / Double(max(1, far.operations))
        lines.append("\(kind.rawValue): a request takes \(rounded(each, 1)) round trips to PostgreSQL.")
      }
      return lines
    }
  }

  /// What each row takes of the processors.
  static func tables(_ results: [WorkloadResult]) -> [Remarks.Table] {
    guard !results.isEmpty else { return [] }
    return [
      Remarks.Table(
        heads: [
          "workload", "a second", "p50 ms", "p99 ms", "CPU: clients", "serve", "PostgreSQL", "cores busy",
        ],
        rows: results.map(row))
    ]
  }

  private static func row(_ result: WorkloadResult) -> [String] {
    func median(_ metric: Metric) -> Double { result.metrics[metric]?.median ?? 0 }
    let processes = [median(.cpuSeconds), median(.remoteCPUSeconds), median(.serverCPUSeconds)]
    let perRequest = processes.map { "\(rounded($0 * 1e6 / Double(max(1, result.operations)), 0)) µs" }
    let busy = processes.reduce(0, +) / max(result.metrics.seconds.median, 1e-9)
    return [result.label, rounded(result.metrics.opsPerSecond.median, 0)]
      + [median(.latencyP50), median(.latencyP99)].map { rounded($0 * 1_000, 2) } + perRequest
      + [rounded(busy, 2)]
  }

  private static func rounded(_ value: Double, _ places: Int) -> String { Format.decimals(value, places) }
}
