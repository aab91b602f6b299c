import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// Curves are found among results, whatever else varies beside the parameter they are of.
struct GrowthTests {
  private func workload(_ name: String, _ parameters: Parameters, seconds: Double) -> Workload {
    Workload(suite: "scale", name: name, summary: "", parameters: parameters, operations: 10) { context in
      Trial(run: { .seconds(seconds * 10 * (context.engine == "slow" ? 3 : 1)) })
    }
  }

  @Test func eachSetOfOtherParametersHasCurvesOfItsOwn() throws {
    let workloads = [0, 4].flatMap { indexes in
      // The sizes in no order.
      [1_000, 10, 100].map { size in
        workload(
          "insert", ["documents": .integer(size), "indexes": .integer(indexes)],
          seconds: 1e-6 * pow(Double(size), indexes == 0 ? 0 : 0.5))
      }
    }
    let growths = Growth.all(in: try ran(workloads, on: ["fast", "slow"], rounds: 3))
    expect(growths.map(\.label), equals: ["insert (indexes=0)", "insert (indexes=4)"])
    expect(
      growths.allSatisfy { $0.parameter == "documents" && $0.curves.map(\.engine) == ["fast", "slow"] })
    expect(abs(growths[0].curves[0].fit.exponent) < 1e-6)
    expect(abs(growths[1].curves[1].fit.exponent - 0.5) < 1e-6)
    let sizes = growths[0].curves[0].results.map { $0.parameters["documents"] }
    expect(sizes, equals: [.integer(10), .integer(100), .integer(1_000)])
    expect(
      growths[1].sentence(),
      equals:
        "insert (indexes=4) grows with documents as the power 0.50 on fast (95%: 0.50 to 0.50) [1.00x], "
        + "0.50 on slow (95%: 0.50 to 0.50) [1.00x].")
  }

  @Test func tooFewOrTooNearSizesAreNoCurve() throws {
    let two = [10, 1_000].map { workload("a", ["documents": .integer($0)], seconds: 1e-6) }
    let near = [10, 20, 30].map { workload("b", ["documents": .integer($0)], seconds: 1e-6) }
    let words = ["x", "y", "z"].map { workload("c", ["kind": .string($0)], seconds: 1e-6) }
    try expect(Growth.all(in: try ran(two + near + words, on: ["fast", "slow"], rounds: 3)).isEmpty)
  }
}
