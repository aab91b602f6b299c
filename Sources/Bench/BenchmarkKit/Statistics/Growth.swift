/// How the time of a workload's operation grows with one parameter, for each engine.
package struct Growth: Sendable {
  /// The growth on one engine.
  package struct Curve: Sendable {
    /// The engine's name.
    package let engine: String
    /// The results, by ascending parameter.
    package let results: [WorkloadResult]
    /// The fit of the seconds per operation.
    package let fit: PowerFit
  }

  /// The suite of the workload.
  package let suite: String
  /// The workload's name.
  package let workload: String
  /// The name of the parameter, an integer.
  package let parameter: String
  /// The other parameters, which are equal in all results.
  package let others: Parameters
  /// One curve for each engine that has results, in the order of the engines.
  package let curves: [Curve]

  /// The workload's name with the other parameters.
  package var label: String { others.isEmpty ? workload : "\(workload) (\(others.text))" }

  /// Finds all workloads that were run with at least three values of one integer parameter that span a factor
  /// of ten.
  package static func all(in results: [WorkloadResult]) -> [Growth] {
    var growths: [Growth] = []
    for (suite, workload) in results.map({ [$0.suite, $0.workload] }).firstOccurrences().map({
      ($0[0], $0[1])
    }) {
      let found = results.filter { $0.suite == suite && $0.workload == workload }
      for parameter in Set(found.flatMap(\.parameters.keys)).sorted() {
        let sized = found.compactMap { result -> (result: WorkloadResult, size: Int, others: Parameters)? in
          var others = result.parameters
          guard case .integer(let size)? = others.removeValue(forKey: parameter), size > 0 else { return nil }
          return (result, size, others)
        }
        for others in sized.map(\.others).firstOccurrences() {
          let curves = sized.map(\.result.engine).firstOccurrences().compactMap { engine -> Curve? in
            let row = sized.filter { $0.result.engine == engine && $0.others == others }
              .sorted { $0.size < $1.size }
            guard row.count >= 3, let first = row.first, let last = row.last, last.size >= 10 * first.size,
              let fit = PowerFit(samples: row.map { (Double($0.size), $0.result.samplesPerOperation) })
            else { return nil }
            return Curve(engine: engine, results: row.map(\.result), fit: fit)
          }
          if !curves.isEmpty {
            growths.append(
              Growth(suite: suite, workload: workload, parameter: parameter, others: others, curves: curves))
          }
        }
      }
    }
    return growths
  }

  /// The exponents in one sentence: `insert grows with documents as the power 0.08 on lmdb (95%: 0.05 to
  /// 0.11), …`.
  package func sentence() -> String {
    let texts = curves.map { curve in
      let deviation = curve.fit.greatestDeviation
      let range = curve.fit.interval.map { " (95%: \(Growth.text($0)))" } ?? ""
      return
        "\(Format.decimals(curve.fit.exponent, 2)) on \(curve.engine)\(range) [\(Format.ratio(deviation))x]"
    }
    return "\(label) grows with \(parameter) as the power \(texts.joined(separator: ", "))."
  }

  static func text(_ interval: ClosedRange<Double>) -> String {
    "\(Format.decimals(interval.lowerBound, 2)) to \(Format.decimals(interval.upperBound, 2))"
  }
}

extension WorkloadResult {
  /// The seconds per operation of each sample.
  var samplesPerOperation: [Double] {
    metrics.seconds.samples.map { $0 / Double(max(1, operations)) }
  }
}
