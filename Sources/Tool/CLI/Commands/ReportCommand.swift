import BenchmarkKit
import Suites

/// `touchstone report`: makes a web page with charts from results files.
struct ReportCommand: Subcommand {
  private static let files = Positional("RESULTS", "Results files (docs/results.md)", count: .any)
  private static let directory = Option("output", "DIR", "The directory for the page and the pictures")

  static let usage = Usage(
    "report", "Makes a web page with pictures of results files",
    positionals: [files], options: [directory],
    examples: ["touchstone report results/travel.json --output report"],
    notes: """
      Writes index.html, which needs no network and no other file, and each picture as SVG. For the first results
      file it also writes results.csv, results.md and benchmark.json (customSmallerIsBetter). gnuplot draws the
      pictures.
      """)

  private let paths: [String]
  private let directory: String

  init(_ arguments: Arguments) throws {
    paths = arguments.all(Self.files)
    guard !paths.isEmpty else { throw UsageError("RESULTS is missing") }
    guard let directory = try arguments.value(Self.directory) else { throw UsageError("--output is missing") }
    self.directory = directory
  }

  func run(_ output: StandardOutput) throws {
    let peers = Set(Suite.all.flatMap(\.peers).map(\.name))
    let report = Report(try paths.map(ResultsFile.read), peers: peers) { name, results in
      Suite.all.first { $0.name == name }?.remarks(results) ?? Remarks()
    }
    let names: [String]
    do { names = try report.write(to: directory) } catch let failure as Gnuplot.Failure {
      throw UsageError(failure.description)
    }
    for name in names { try output.line("\(directory)/\(name)") }
  }
}
