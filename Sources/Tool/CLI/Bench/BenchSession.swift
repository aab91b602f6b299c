import BenchmarkKit
import FoundationEssentials
import Storage
import Suites

/// Runs suites for a command, with a progress line. Ctrl-C stops it. It can also count instructions and
/// allocations.
struct BenchSession {
  let settings: BenchSettings
  let suites: [Suite]
  let version: String
  var baselinePath: String?

  /// `baselinePath`: the results with the instruction counts from which a planted slowdown is computed.
  /// The sizes for counting instructions. callgrind is about fifty times slower.
  static let countedDocuments = 300
  static let countedKeys = 500
  static let countedCommits = 32
  static let countedExecutions = 5

  /// Runs the suites. The file at `runLog` is replaced, and gets a line before each run.
  func run(countingInstructions: Bool, countingAllocations: Bool = false, runLog: String? = nil) throws
    -> ResultsFile
  {
    let log = try runLog.map(RunLog.init)
    let line = ProgressLine()
    defer { line.clear() }
    do {
      var results = try BenchRun(settings, version: version).run(
        suites,
        progress: { progress in
          log?.add(progress)
          line.show(
            "\(progress.done) of \(progress.total): \(progress.workload.name) on \(progress.engine)"
              + (progress.isLimit ? " (bare C)" : ""))
        }, shouldStop: { Interrupt.isRequested })
      if countingInstructions, !countedSuites.isEmpty {
        line.show("counting instructions")
        try addInstructions(to: &results)
      }
      if countingAllocations, !countedSuites.isEmpty {
        line.show("counting allocations")
        try addAllocations(to: &results)
      }
      return results
    } catch is Runner.Interrupted {
      line.clear()
      throw Interrupted("the run was incomplete, so nothing is reported")
    }
  }

  /// Runs the same workloads twice more with the same sizes, in a child whose allocations are counted. The
  /// lesser count doesn't contain what is allocated once per process, such as the runtime's tables.
  private func addAllocations(to results: inout ResultsFile) throws {
    let directory = try TrialDirectory(in: settings.workDirectory)
    defer { directory.remove() }
    let output = "\(directory.path)/results.json"
    var arguments = try childArguments(samples: 2, directory: directory.path)
    if let documents = settings.documents { arguments.add(option: "docs", documents) }
    if let documents = settings.scaleDocuments { arguments.add(option: "scale-docs", documents) }
    arguments.add(option: "keys", settings.keys)
    arguments.add(option: "commits", settings.commits)
    arguments.add(option: "output", output)
    let counts = try AllocationCounter.count(
      RunningProgram.path ?? CommandLine.arguments[0], arguments, output: output)
    for index in results.results.indices {
      guard let count = counts[results.results[index].identity] else { continue }
      results.results[index].metrics.setAllocations(count)
    }
  }

  /// The suites in which each run does the same work. What runs for a fixed time can't be counted.
  private var countedSuites: [Suite] {
    suites.filter { suite in
      // The mix of the suite mine is left out when the number of executions is fixed.
      suite.name != Suite.endure.name && (suite.name != Suite.mine.name || !settings.mine.queries.isEmpty)
        && settings.only.map { !$0.isDisjoint(with: names(of: suite)) } ?? true
    }
  }

  /// The names of a suite's workloads in this run.
  private func names(of suite: Suite) -> [String] {
    suite.name == Suite.mine.name ? settings.mine.queries.map(\.name) : suite.workloadNames
  }

  /// The arguments of a child that runs the same workloads, without their sizes.
  private func childArguments(samples: Int, directory: String) throws -> [String] {
    var arguments = ["bench"] + countedSuites.map(\.name)
    if let engines = settings.engines {
      arguments.add(option: "engines", engines.map(\.name).joined(separator: ","))
    }
    arguments.add(option: "durability", settings.durability.rawValue)
    arguments.add(option: "samples", samples)
    arguments.add(option: "seed", settings.seed)
    arguments.add(option: "threads", settings.threads.map(String.init).joined(separator: ","))
    arguments.add(option: "rates", settings.rates.map(String.init).joined(separator: ","))
    arguments.add(option: "work-directory", directory)
    if settings.measuresAllPairs { arguments.append("--all-pairs") }
    if let property = settings.idProperty { arguments.add(option: "id-property", property) }
    if let queries = settings.mine.description?.queries, !settings.mine.queries.isEmpty {
      let path = directory + "/queries"
      try AtomicFile.write(Array(queries.utf8), to: path, permissions: 0o600)
      arguments.add(option: "queries", path)
      arguments.add(option: "executions", Self.countedExecutions)
    }
    if let dataset = settings.dataset { arguments.add(option: "dataset", dataset) }
    if let only = settings.only?.intersection(countedSuites.flatMap(names)) {
      arguments.add(option: "only", only.sorted().joined(separator: ","))
    }
    return arguments
  }

  /// Runs the same workloads once more, in a child under callgrind.
  private func addInstructions(to results: inout ResultsFile) throws {
    let directory = try TrialDirectory(in: settings.workDirectory)
    defer { directory.remove() }
    let logPath = "\(directory.path)/runs"
    var arguments = try childArguments(samples: 1, directory: directory.path)
    arguments.add(option: "docs", Self.countedDocuments)
    arguments.add(option: "keys", Self.countedKeys)
    arguments.add(option: "commits", Self.countedCommits)
    arguments.add(option: "run-log", logPath)
    if let delay = settings.plantedDelay, let baselinePath {
      arguments.add(option: "inject-delay", Int((delay.share * 100).rounded()))
      arguments.add(option: "inject-counts", baselinePath)
    }
    let counts = try InstructionCounter().count(
      RunningProgram.path ?? CommandLine.arguments[0], arguments,
      environment: ["TOUCHSTONE_LMDB_MAP_BYTES": "\(4 << 30)"], in: directory.path)
    let runs = try RunLog.read(logPath)
    guard counts.count == runs.count else {
      throw InstructionCounter.Failure(
        description: "callgrind counted \(counts.count) runs instead of \(runs.count)")
    }
    var runCounts: [String: Int] = [:]
    var limitCounts: [String: Int] = [:]
    for (run, count) in zip(runs, counts) where !run.runsThreads {
      if run.isLimit { limitCounts[run.identity] = count } else { runCounts[run.identity] = count }
    }
    for index in results.results.indices {
      let identity = results.results[index].identity
      guard let count = runCounts[identity] else { continue }
      results.results[index].instructions = InstructionCounts(run: count, limit: limitCounts[identity])
    }
  }
}

extension [String] {
  /// Adds an option with its value, as on a command line.
  fileprivate mutating func add(option name: String, _ value: some CustomStringConvertible) {
    self += ["--\(name)", "\(value)"]
  }
}

/// A log with one line per run: `run` or `limit`, `threads` or `thread`, and the identity.
struct RunLog {
  struct Run {
    let identity: String
    let isLimit: Bool
    let runsThreads: Bool
  }

  private let file: StandardOutput

  /// Lines appear as they are added, so an existing file is emptied and not replaced.
  init(_ path: String) throws {
    do { file = try StandardOutput(path: path) } catch { throw UsageError("--run-log: \(error)") }
  }

  /// Ignores an error: whoever reads the log counts its lines.
  func add(_ progress: Runner.Progress) {
    let words = [
      progress.isLimit ? "limit" : "run", progress.workload.runsThreads ? "threads" : "thread",
      progress.workload.identity(progress.engine),
    ]
    try? file.line(words.joined(separator: " "))
    try? file.flush()
  }

  static func read(_ path: String) throws -> [Run] {
    try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ", maxSplits: 2)
      guard words.count == 3 else { return nil }
      return Run(identity: String(words[2]), isLimit: words[0] == "limit", runsThreads: words[1] == "threads")
    }
  }
}
