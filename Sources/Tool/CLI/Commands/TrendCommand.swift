import BenchmarkKit

/// `touchstone trend`: shows how results changed from run to run.
struct TrendCommand: Subcommand {
  private static let files = Positional("RESULTS", "Results files (docs/results.md)", count: .any)
  private static let format = Option<Format>(
    "format", "FORMAT", "text, json or github-action-benchmark (text)",
    refusal: "isn't text, json or github-action-benchmark")

  enum Format: String {
    case text, json
    case benchmark = "github-action-benchmark"
  }

  static let usage = Usage(
    "trend", "Shows how results changed from run to run, and in which builds",
    positionals: [files], options: [format, DatabaseArguments.json],
    examples: ["touchstone trend nightly/*.json"],
    notes: """
      The runs are put in the order in which they began. A workload is followed by its instructions if all runs
      counted them, otherwise by processor time divided by that of bare C, otherwise by seconds on the last run's
      machine. A change is where the medians before and after differ by more than the runs vary (docs/method.md).
      github-action-benchmark prints the last run as that action's tool customSmallerIsBetter reads it. touchstone
      report draws the lines if it gets several files.
      """)

  private let paths: [String]
  private let format: Format

  init(_ arguments: Arguments) throws {
    paths = arguments.all(Self.files)
    guard !paths.isEmpty else { throw UsageError("RESULTS is missing") }
    let asJSON = arguments[DatabaseArguments.json]
    format = try arguments.value(Self.format) ?? (asJSON ? .json : .text)
    guard !asJSON || format == .json else {
      throw UsageError("give either --json or --format \(format.rawValue)")
    }
  }

  func run(_ output: StandardOutput) throws {
    let files = try paths.map(ResultsFile.read)
    if format == .benchmark {
      let last = files.max { $0.started < $1.started }
      let data = try ResultsExport([last].compactMap { $0 }).smallerIsBetter()
      return try output.line(String(decoding: data, as: UTF8.self))
    }
    let trend = Trend(files)
    if format == .json { try output.line(trend.json()) }
    if trend.foreignRuns > 0 {
      StandardError.line(
        "warning: \(trend.foreignRuns) of \(files.count) runs were made on another machine than the last one; their seconds are left out"
      )
    }
    guard !trend.rows.isEmpty else {
      throw Refusal("no workload is in two of the runs, so there is nothing to follow")
    }
    if format == .text { try output.line(trend.table) }
  }
}
