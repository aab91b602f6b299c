import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// The answer to "which engine": only what the samples bear.
struct AdviceTests {
  private func result(
    _ suite: String, _ workload: String, _ engine: String, _ seconds: [Double],
    _ parameters: [String: Any] = [:]
  ) throws -> WorkloadResult {
    let samples = try JSONSerialization.jsonObject(with: JSONEncoder().encode(Distribution(seconds)))
    var metrics: [String: Any] = [:]
    for metric in Metric.allCases where metric.isRequired { metrics[metric.rawValue] = samples }
    let object: [String: Any] = [
      "suite": suite, "workload": workload, "engine": engine, "parameters": parameters, "operations": 1,
      "metrics": metrics,
    ]
    return try JSONDecoder().decode(
      WorkloadResult.self, from: JSONSerialization.data(withJSONObject: object))
  }

  private static let steady = [1.00, 1.01, 0.99, 1.00, 1.02]

  private func lines(_ workload: String, _ seconds: [String: [Double]], engines: [String]) throws -> [String]
  {
    let results = try engines.compactMap { engine in
      try seconds[engine].map { try result("travel", workload, engine, $0) }
    }
    return Advice(results, engines: engines).lines
  }

  @Test func theFastestIsNamedWithItsLead() throws {
    let found = try lines(
      "read",
      ["sqlite": Self.steady.map { $0 * 5 }, "lmdb": Self.steady, "sqlcipher": Self.steady.map { $0 * 6 }],
      engines: ["sqlite", "lmdb", "sqlcipher"])
    expect(found, equals: ["reads by ID: lmdb, 5.00x as fast as sqlite, 6.00x as sqlcipher"])
  }

  @Test func enginesThatCannotBeToldApartAreLevel() throws {
    let found = try lines(
      "scan",
      ["sqlite": Self.steady, "lmdb": Self.steady.map { $0 * 1.01 }, "other": Self.steady.map { $0 * 2 }],
      engines: ["sqlite", "lmdb", "other"])
    expect(found, equals: ["scans: sqlite, lmdb are level, 2.00x as fast as other"])
    let wide = [0.5, 2, 1, 0.6, 1.9]
    try expect(
      lines("scan", ["sqlite": Self.steady, "lmdb": wide.map { $0 * 1.2 }], engines: ["sqlite", "lmdb"]),
      equals: ["scans: sqlite, lmdb are level"])
  }

  @Test func fewSamplesSayNothing() throws {
    try expect(lines("read", ["sqlite": [5], "lmdb": [1]], engines: ["sqlite", "lmdb"]), equals: [])
    try expect(lines("read", ["sqlite": Self.steady], engines: ["sqlite"]), equals: [])
    // A workload that stands for no use.
    let both = ["sqlite": Self.steady, "lmdb": Self.steady]
    try expect(lines("compact", both, engines: ["sqlite", "lmdb"]), equals: [])
  }

  @Test func ownQueriesAndMixesAreAnsweredForToo() throws {
    func lines(_ rows: [(workload: String, parameters: [String: Any], factor: Double)]) throws -> [String] {
      let results = try rows.flatMap { row in
        try ["sqlite", "lmdb"].map { engine in
          try result(
            "mine", row.workload, engine, Self.steady.map { $0 * (engine == "sqlite" ? row.factor : 1) },
            row.parameters)
        }
      }
      return Advice(results, engines: ["sqlite", "lmdb"]).lines
    }
    let plain = [
      (workload: "a", parameters: ["index": "none"] as [String: Any], factor: 4.0),
      ("b", ["index": "none"], 9.0),
    ]
    try expect(lines(plain), equals: ["your queries: lmdb, 6.00x as fast as sqlite"])
    // Who has said which indexes it wants asks for the times with them. A rate is the same for all.
    try expect(
      lines(
        plain + [
          ("a", ["index": "all"], 2.0), ("b", ["index": "all"], 2.0), ("mix", ["threads": 1], 0.25),
          ("mix", ["threads": 1, "rate": 500], 3.0),
        ]),
      equals: [
        "your queries with the indexes: lmdb, 2.00x as fast as sqlite",
        "your mix: sqlite, 4.00x as fast as lmdb",
      ])
  }

  @Test func peersAndEnginesThatLackAWorkloadAreLeftOut() throws {
    var results = try ["insert-batch", "update"].flatMap { workload in
      try ["sqlite", "lmdb", "peer"].map { engine in
        try result(
          "travel", workload, engine,
          Self.steady.map { $0 * (engine == "sqlite" ? 2 : engine == "peer" ? 0.1 : 1) })
      }
    }
    results.append(try result("travel", "update", "other", Self.steady.map { $0 * 0.5 }))
    expect(
      Advice(results, engines: ["sqlite", "lmdb", "other"]).lines,
      equals: ["many writes in a transaction: lmdb, 2.00x as fast as sqlite"])
  }
}
