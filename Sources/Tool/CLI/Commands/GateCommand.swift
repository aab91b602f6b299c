import BenchmarkKit
import FoundationEssentials
import Storage
import Suites
import Touchstone

/// `touchstone gate`: checks whether this build is slower than a baseline.
struct GateCommand: Subcommand {
  private static let suites = Positional("SUITE", "The suites to run (those of the baseline)", count: .any)
  private static let baseline = Option(
    "baseline", "FILE", "The results file to compare with; with --store a name (main)")
  private static let store = Option(
    "store", "DIR", "A directory of baselines, by machine and name: the one of this machine is compared with")
  private static let saveAs = Option(
    "save-as", "NAME", "With --store: saves the results under this name, unless a workload has failed")
  private static let against = Option(
    "against", "GITREV", "A git revision of this checkout; it is built, and both builds run in turns")
  private static let threshold = Option(
    "threshold", "PCT", in: 1...1_000,
    "The allowed slowdown (10); three times as much for workloads that wait for the disk")
  private static let delay = Option(
    "inject-delay", "PCT", in: 1...10_000, "Adds an artificial slowdown, to test the gate")
  private static let samples = Option(
    "samples", "N", in: 3...1_000, "Runs of each workload on each engine (9)")
  private static let timeLimit = Option(
    "time-limit", "SECONDS", in: 0...86_400,
    "The time limit for more samples of rows that vary (300)")
  private static let only = Option("only", "A,B", "Runs only these workloads")
  private static let engines = Option(
    "engines", "A,B", "Runs only these engines of the baseline, or all of them")
  private static let documents = Option(
    "docs", "N", in: 1...100_000_000,
    "With --against, or for a first baseline: the number of documents (5,000)")
  private static let wallOnly = Flag("no-instructions", "Doesn't count instructions")
  private static let directory = Option(
    "work-directory", "DIR", "The directory for temporary databases (the current directory)")
  private static let output = Option("output", "FILE", "Writes the results of the run to this file")

  private static let thresholdFile = Option(
    "thresholds", "FILE", "Other thresholds of some workloads: lines '5 travel insert *'")
  private static let format = Option<Format>(
    "format", "FORMAT", "text, json, markdown, github or junit (text)",
    refusal: "isn't text, json, markdown, github or junit")
  private static let markdownFile = Option(
    "markdown", "FILE", "Also appends Markdown to this file, such as $GITHUB_STEP_SUMMARY")
  private static let junitFile = Option("junit", "FILE", "Also writes JUnit's XML to this file")
  private static let inconclusive = Option<WhenInconclusive>(
    "inconclusive", "pass|fail", "Whether it fails, with status 4, if samples vary too much to tell (pass)",
    refusal: "isn't pass or fail")

  enum Format: String {
    case text, json, markdown, github, junit
  }

  enum WhenInconclusive: String {
    case pass, fail
  }

  static let usage = Usage(
    "gate", "Checks whether this build is slower than a baseline; status 1 if it is",
    positionals: [suites],
    options: [
      baseline, against, store, saveAs, threshold, thresholdFile, inconclusive, format, markdownFile,
      junitFile, delay, samples,
      timeLimit, only,
      engines, documents, wallOnly, directory,
      output, DatabaseArguments.json,
    ],
    examples: [
      "touchstone gate --baseline results/baseline.json travel",
      "touchstone gate --against HEAD~1 engine --only readrandom",
      "touchstone gate --store baselines --save-as main travel",
      "touchstone gate --baseline main.json --format github --markdown $GITHUB_STEP_SUMMARY",
    ],
    notes: """
      Workloads are judged by instructions, counted by callgrind, if the baseline has them (bench --instructions),
      and always with --against. Other workloads are judged by processor time divided by that of bare C in the same
      round. Workloads that wait for the disk are also judged by wall-clock time divided by that of bare C.

      A workload fails if the whole 95% interval of its ratio is above the threshold, in the run and again in a
      second run. Each row shows the smallest slowdown that its samples could have shown. If that is more than one
      and a half times the threshold, a warning is printed, and with --inconclusive fail the status is 4. The status is
      also 4 if nothing could be judged.

      A store has a baseline for each machine and name. The first run with --save-as makes it. docs/method.md has the details, and the format of --thresholds.
      """)

  private let names: [String]
  private let store: BaselineStore?
  private let saveName: String?
  private let baselineName: String
  private let baselinePath: String?
  private let revision: String?
  private let thresholds: Gate.Thresholds
  private let delayShare: Double?
  private let sampleCount: Int
  /// In seconds.
  private let sharpeningLimit: Double
  private let chosenWorkloads: Set<String>?
  private let chosenEngines: [String]?
  private let documentCount: Int?
  private let countsInstructions: Bool
  private let workDirectory: String
  private let outputPath: String?
  private let format: Format
  private let markdownPath: String?
  private let junitPath: String?
  private let inconclusiveFails: Bool

  init(_ arguments: Arguments) throws {
    names = arguments.all(Self.suites)
    revision = try arguments.value(Self.against)
    workDirectory = try arguments.value(Self.directory) ?? "."
    let machine = Machine.current(directory: workDirectory)
    store = try arguments.value(Self.store).map { BaselineStore($0, machine: machine) }
    saveName = try arguments.value(Self.saveAs)
    let baseline = try arguments.value(Self.baseline)
    baselineName = baseline ?? "main"
    baselinePath = store?.path(of: baselineName) ?? baseline
    guard (baselinePath == nil) != (revision == nil) else {
      throw UsageError("give one of --baseline FILE, --store DIR and --against GITREV")
    }
    guard store != nil || saveName == nil else { throw UsageError("--save-as needs --store DIR") }
    var thresholds = Gate.Thresholds(processor: Double(try arguments.value(Self.threshold) ?? 10) / 100)
    delayShare = try arguments.value(Self.delay).map { Double($0) / 100 }
    sampleCount = try arguments.value(Self.samples) ?? 9
    sharpeningLimit = Double(try arguments.value(Self.timeLimit) ?? 300)
    chosenWorkloads = try arguments.value(Self.only).map { Set($0.split(separator: ",").map(String.init)) }
    chosenEngines = try arguments.value(Self.engines).map { text in
      text == "all" ? BenchEngines.all.map(\.name) : text.split(separator: ",").map(String.init)
    }
    documentCount = try arguments.value(Self.documents)
    countsInstructions = !arguments[Self.wallOnly]
    outputPath = try arguments.value(Self.output)
    let asJSON = arguments[DatabaseArguments.json]
    format = try arguments.value(Self.format) ?? (asJSON ? .json : .text)
    markdownPath = try arguments.value(Self.markdownFile)
    junitPath = try arguments.value(Self.junitFile)
    guard !asJSON || format == .json else { throw UsageError("give either --json or --format \(format)") }
    inconclusiveFails = try arguments.value(Self.inconclusive) == .fail
    if let path = try arguments.value(Self.thresholdFile) {
      do { try thresholds.addExceptions(String(contentsOfFile: path, encoding: .utf8)) } catch {
        throw UsageError("can't read thresholds from '\(path)': \(error)")
      }
    }
    self.thresholds = thresholds
    guard !names.contains(Suite.mine.name) || (revision == nil && store?.has(baselineName) != false) else {
      throw UsageError("the suite mine needs a baseline, which 'touchstone bench mine … --output FILE' makes")
    }
    for name in names { _ = try BenchCommand.suite(named: name) }
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    // Not after minutes of measuring.
    if saveName != nil { try store?.prepare() }
    if try needsFirstBaseline() { return try makeFirstBaseline(output) }
    let (gate, repeated, results) =
      try baselinePath.map(judge(byBaseline:)) ?? judge(against: revision ?? "HEAD")
    let verdict = GateVerdict(gate, repeated: repeated)
    try write(verdict, to: output)
    if verdict.outcome != .failed, !verdict.rows.isEmpty, let saveName {
      try store?.save(results, as: saveName)
    }
    switch verdict.outcome {
    case .failed:
      let slower = verdict.slower
      throw Refusal(
        "\(slower.count == 1 ? "1 workload is" : "\(slower.count) workloads are") slower than allowed: "
          + slower.joined(separator: ", "))
    case .inconclusive where verdict.rows.isEmpty:
      throw Inconclusive("nothing was judged")
    case .inconclusive where inconclusiveFails:
      let rows = verdict.rows(.inconclusive)
      throw Inconclusive(
        "\(rows.count == 1 ? "1 row varies" : "\(rows.count) rows vary") too much to show a slowdown: "
          + rows.map(\.identity).joined(separator: ", "))
    default: break
    }
  }

  // MARK: A store

  /// Whether the store has no baseline of this machine yet.
  private func needsFirstBaseline() throws -> Bool {
    guard let store, !store.has(baselineName) else { return false }
    guard saveName == nil else { return true }
    let names = try store.names()
    throw Inconclusive(
      "'\(store.directory)' has no baseline '\(baselineName)'; "
        + (names.isEmpty ? "it has none of this machine" : "it has \(names.joined(separator: ", "))")
        + "; --save-as NAME makes one")
  }

  private func makeFirstBaseline(_ output: StandardOutput) throws {
    guard let store, let saveName else { return }
    var settings = BenchSettings(samples: sampleCount, workDirectory: workDirectory)
    settings.engines = try chosenEngines?.map { try Engines.type(EngineName(rawValue: $0)) }
    settings.documents = documentCount ?? 5_000
    settings.only = chosenWorkloads
    let suites = Suite.all.filter { names.isEmpty ? $0.name == "travel" : names.contains($0.name) }
    let results = try BenchSession(settings: settings, suites: suites, version: BenchCommand.version)
      .run(countingInstructions: countsInstructions)
    try write(results)
    try store.save(results, as: saveName)
    StandardError.line(
      "touchstone gate: there was nothing to compare with; this run is the first baseline: "
        + store.path(of: saveName))
  }

  // MARK: A committed baseline

  private func judge(byBaseline path: String) throws -> (Gate, Gate, ResultsFile) {
    let baseline = try ResultsFile.read(path)
    let suites = try self.suites(of: baseline)
    var settings = try settings(of: baseline)
    let machine = Machine.current(directory: workDirectory)
    if machine != baseline.machine {
      StandardError.line(
        "warning: the baseline was made on another machine (\(baseline.machine.cpu), \(baseline.machine.os)), "
          + "so the results may be wrong")
    }
    let hasCounts = countsInstructions && baseline.results.contains { $0.instructions != nil }
    func run(_ settings: BenchSettings, counting: Bool) throws -> ResultsFile {
      try BenchSession(
        settings: settings, suites: suites, version: BenchCommand.version, baselinePath: path
      ).run(countingInstructions: counting)
    }
    var new = try run(settings, counting: hasCounts)
    func judged() -> Gate { Gate(new, baseline: baseline, thresholds: thresholds) }
    if let digest = new.dataset?.sha256, let old = baseline.dataset?.sha256, digest != old {
      StandardError.line(
        "warning: the documents aren't those of the baseline: \(new.dataset?.name ?? "") has changed, so the results may be wrong"
      )
    }
    let gate = try sharpened(judged()) { blurred in
      var settings = settings
      settings.only = blurred
      new.add(try run(settings, counting: false))
      return judged()
    }
    try write(new)
    let suspects = gate.rows.filter(\.isBeyond)
    guard !suspects.isEmpty else { return (gate, gate, new) }
    settings.only = Set(suspects.map(\.workload))
    let again = try run(settings, counting: hasCounts)
    return (gate, Gate(again, baseline: baseline, thresholds: thresholds), new)
  }

  /// Takes more samples with `more`, for the workloads it receives, and judges again. It ends when no
  /// workload varies too much to show a slowdown, or when the time is up.
  private func sharpened(
    _ gate: Gate, isBaselineSampled: Bool = false, by more: (Set<String>) throws -> Gate
  ) throws -> Gate {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(sharpeningLimit)
    var gate = gate
    while clock.now < end {
      // A workload that is beyond the limit needs no more samples.
      let blurred = gate.rows.filter {
        $0.isBlurred && !$0.isBeyond && (isBaselineSampled || $0.canBeSharper)
      }
      if blurred.isEmpty { break }
      gate = try more(Set(blurred.map(\.workload)))
    }
    return gate
  }

  private func suites(of baseline: ResultsFile) throws -> [Suite] {
    let known = Set(baseline.results.map(\.suite))
    let suites = Suite.all.filter { names.isEmpty ? known.contains($0.name) : names.contains($0.name) }
    guard suites.contains(where: { known.contains($0.name) }) else {
      throw UsageError(
        "the baseline has none of these suites; it has \(known.sorted().joined(separator: ", "))")
    }
    return suites
  }

  /// The settings of the baseline, as far as its file has them.
  private func settings(of baseline: ResultsFile) throws -> BenchSettings {
    var settings = BenchSettings(samples: sampleCount, workDirectory: workDirectory)
    let order = baseline.results.map(\.engine)
    // The suites add their peer engines themselves.
    let engines = Set(order).intersection(chosenEngines ?? order)
      .subtracting(Suite.all.flatMap(\.peers).map(\.name))
    settings.engines = try engines.sorted { order.firstIndex(of: $0) ?? 0 < order.firstIndex(of: $1) ?? 0 }
      .map {
        try Engines.type(EngineName(rawValue: $0))
      }
    guard settings.engines?.isEmpty == false else {
      throw UsageError("the baseline has none of these engines")
    }
    settings.dataset = baseline.dataset?.name
    settings.documents = baseline.dataset?.documents
    if let seed = baseline.conditions?.seed { settings.seed = seed }
    if let work = baseline.ownWork { try Self.add(work, to: &settings) }
    if let level = baseline.engines.values.compactMap({ $0.settings["durability"] }).first.flatMap(
      Durability.init)
    {
      settings.durability = level
    }
    // The number of operations of these rows are the sizes of the engine suite.
    if let keys = baseline.results.first(where: { $0.workload == "fillseq" })?.operations {
      settings.keys = keys
    }
    if let commits = baseline.results.first(where: { $0.workload == "commitsync" })?.operations {
      settings.commits = commits
    }
    settings.only = chosenWorkloads ?? Set(baseline.results.map(\.workload))
    settings.plantedDelay = delayShare.map { PlantedDelay(share: $0) }
    return settings
  }

  /// Sets the queries and the mix of the suite `mine` as the baseline had them.
  private static func add(_ work: ResultsFile.OwnWork, to settings: inout BenchSettings) throws {
    settings.idProperty = work.idProperty
    if let text = work.queries {
      settings.mine.queries = try QueryFile(text, name: "the queries of the baseline").queries
    }
    if let mix = work.mix {
      settings.mine.mix = try OperationMix(parsing: mix, longestScan: work.longestScan)
      settings.mine.seconds = work.seconds ?? settings.mine.seconds
      settings.mine.threads = work.threads ?? settings.mine.threads
      settings.mine.rate = work.rate
    }
    settings.mine.describe(queries: work.queries, idProperty: work.idProperty)
  }

  // MARK: Another revision

  private func judge(against revision: String) throws -> (Gate, Gate, ResultsFile) {
    let builds = try RevisionBuild(revision, workDirectory: workDirectory)
    defer { builds.remove() }
    var seed = 0
    var (new, old) = try pairs(builds, only: chosenWorkloads, &seed, counting: countsInstructions)
    func judged() -> Gate { Gate(new, baseline: old, thresholds: thresholds) }
    let gate = try sharpened(judged(), isBaselineSampled: true) { blurred in
      let more = try pairs(builds, only: blurred, &seed, counting: false)
      new.add(more.new)
      old.add(more.old)
      return judged()
    }
    try write(new)
    let suspects = gate.rows.filter(\.isBeyond)
    guard !suspects.isEmpty else { return (gate, gate, new) }
    let again = try pairs(
      builds, only: Set(suspects.map(\.workload)), &seed,
      counting: suspects.contains { $0.measure == .instructions })
    return (gate, Gate(again.new, baseline: again.old, thresholds: thresholds), new)
  }

  /// Runs both builds in turns, one round each, with seeds after `seed`. With `counting`, the first round
  /// also counts instructions.
  private func pairs(
    _ builds: RevisionBuild, only: Set<String>?, _ seed: inout Int, counting: Bool
  ) throws -> (new: ResultsFile, old: ResultsFile) {
    var arguments = ["bench"] + (names.isEmpty ? ["travel"] : names) + ["--samples", "1"]
    arguments += ["--docs", "\(documentCount ?? 5_000)", "--work-directory", workDirectory]
    if let only { arguments += ["--only", only.sorted().joined(separator: ",")] }
    if let chosenEngines { arguments += ["--engines", chosenEngines.joined(separator: ",")] }
    var new: [ResultsFile] = []
    var old: [ResultsFile] = []
    let line = ProgressLine()
    defer { line.clear() }
    for round in 0..<sampleCount {
      if Interrupt.isRequested { throw Interrupted("the run was incomplete, so nothing was judged") }
      line.show("round \(round + 1) of \(sampleCount)")
      seed += 1
      let seeded =
        arguments + ["--seed", "\(seed)"] + (counting && round == 0 ? ["--instructions"] : [])
      let planted = delayShare.map { ["--inject-delay", "\(Int(($0 * 100).rounded()))"] } ?? []
      func runNew() throws { new.append(try builds.run(builds.executable, seeded + planted)) }
      func runOld() throws { old.append(try builds.run(builds.oldExecutable, seeded)) }
      if round % 2 == 0 {
        try runNew()
        try runOld()
      } else {
        try runOld()
        try runNew()
      }
    }
    guard let new = ResultsFile.merged(new), let old = ResultsFile.merged(old) else {
      throw UsageError("no round was run, so there is nothing to compare")
    }
    return (new, old)
  }

  // MARK: Results

  private func write(_ results: ResultsFile) throws {
    guard let outputPath else { return }
    try AtomicFile.write(results.encoded(), to: outputPath, permissions: 0o644)
  }

  private func write(_ verdict: GateVerdict, to output: StandardOutput) throws {
    let report = GateReport(verdict, isBaselineSampled: revision != nil)
    if format == .text {
      for warning in report.warnings { StandardError.line(warning) }
    }
    let text =
      switch format {
      case .text: report.text
      case .json: try report.json()
      case .markdown: report.markdown
      case .github: report.github(file: baselinePath)
      case .junit: report.junit
      }
    if let junitPath {
      try AtomicFile.write(Data((report.junit + "\n").utf8), to: junitPath, permissions: 0o644)
    }
    if let markdownPath {
      let older = FileManager.default.contents(atPath: markdownPath) ?? Data()
      try AtomicFile.write(
        older + Data((report.markdown + "\n").utf8), to: markdownPath, permissions: 0o644)
    }
    // GitHub's commands may be none.
    if !text.isEmpty { try output.line(text) }
  }
}
