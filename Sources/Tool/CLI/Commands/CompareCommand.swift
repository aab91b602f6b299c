import BenchmarkKit
import FoundationEssentials
import System

/// `touchstone compare`: compares two results files, metric by metric.
struct CompareCommand: Subcommand {
  private static let base = Positional("BASE", "A results file (docs/results.md)")
  private static let new = Positional("NEW", "The results file to compare with BASE")
  private static let differences = Flag("differences", "Shows only differences")

  static let usage = Usage(
    "compare", "Compares two results files: ratios with confidence intervals",
    positionals: [base, new], options: [differences, DatabaseArguments.json],
    examples: ["touchstone compare results/baseline.json new.json"],
    notes: """
      A row is better or worse if the Mann-Whitney test finds a difference at 5%, corrected for the number of rows,
      and the 95% interval of the ratio doesn't contain 1. Other rows show no significant difference. More samples
      find smaller differences: with many rows, five samples of each file are never enough, nine are. To compare
      runs of different days, use the normalized time: the time divided by that of bare C in the same round.
      """)

  private let paths: [String]
  private let onlyDifferences: Bool
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    paths = [try arguments.required(Self.base), try arguments.required(Self.new)]
    onlyDifferences = arguments[Self.differences]
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let files = try paths.map(ResultsFile.read)
    let comparison = Comparison(base: files[0], new: files[1])
    guard !comparison.rows.isEmpty else {
      throw UsageError("\(paths[0]) and \(paths[1]) have no workload on the same engine")
    }
    if asJSON { return try output.line(json(comparison)) }
    for warning in comparison.warnings { StandardError.line(warning) }
    try output.line(ComparisonTable(comparison, onlyDifferences: onlyDifferences).text())
    if !comparison.unmatched.isEmpty {
      try output.line("\nNot compared:")
      for line in comparison.unmatched { try output.line("  \(line)") }
    }
  }

  private func json(_ comparison: Comparison) throws -> String {
    struct Row: Encodable {
      let suite, workload, engine, measure: String
      let base, new, ratio: Double
      let ci95: [Double]
      let p: Double
      let verdict: Comparison.Verdict
    }
    struct Object: Encodable {
      let rows: [Row]
      let unmatched: [String]
      let warnings: [String]
    }
    let rows = comparison.rows.filter { !onlyDifferences || $0.verdict != .unclear }.map {
      Row(
        suite: $0.suite, workload: $0.label, engine: $0.engine, measure: "\($0.measure)", base: $0.base,
        new: $0.new,
        ratio: $0.ratio, ci95: [$0.interval.lowerBound, $0.interval.upperBound], p: $0.probability,
        verdict: $0.verdict)
    }
    let object = Object(rows: rows, unmatched: comparison.unmatched, warnings: comparison.warnings)
    return String(decoding: try JSONEncoder.readable.encode(object), as: UTF8.self)
  }
}

extension ResultsFile {
  /// The maximum size of a results file, in bytes. One of all suites and engines has about a megabyte.
  private static let maximumSize = 64 << 20

  /// Reads a results file. Throws a `UsageError` with the path and the fault.
  static func read(_ path: String) throws -> ResultsFile {
    let data: Data
    do { data = Data(try AtomicFile.read(path, limit: maximumSize, mayBePipe: true)) } catch {
      throw UsageError("\(error)")
    }
    do {
      return try ResultsFile(validating: data)
    } catch {
      throw UsageError("\(path): \(error)")
    }
  }
}
