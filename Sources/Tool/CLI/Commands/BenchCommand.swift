import BenchmarkKit
import Datasets
import FoundationEssentials
import Query
import Storage
import Suites
import Touchstone

/// `touchstone bench`: compares the speed of engines.
struct BenchCommand: Subcommand {
  private static let suites = Positional("SUITE", "The suites to run (travel)", count: .any)
  private static let list = Flag("list", "Lists the suites and their workloads")
  private static let engines = Option(
    "engines", "A,B",
    "The engines, or all; the others are compared with the first one (sqlite,lmdb,sqlcipher)",
    parse: engineTypes)
  private static let dataset = Option(
    "dataset", "NAME|PATH",
    "The documents (travel-sample if it is on this machine, otherwise synthetic-travel)")
  private static let documents = Option("docs", "N", in: 1...100_000_000, "The number of documents (all)")
  private static let durability = Option<Durability>(
    "durability", "LEVEL", "full, normal or none (normal)", refusal: "isn't full, normal or none")
  private static let samples = Option(
    "samples", "N", in: 1...1_000, "Runs of each workload on each engine (5; the suite endure: 1)")
  private static let precision = Option(
    "precision", "PCT",
    "Takes samples until the 95% interval of each median is within PCT percent; --samples is the minimum"
  ) { text in
    guard let percent = Double(text), percent > 0, percent <= 100 else {
      throw UsageError("'\(text)' isn't a percentage above 0 and up to 100")
    }
    return percent / 100
  }
  private static let budget = Option(
    "budget", "SECONDS", in: 1...86_400, "With --precision: the time limit for the samples of a workload (60)"
  )
  private static let seed = Option("seed", "N", in: 0...Int.max, "The seed of all random choices (1)")
  private static let keys = Option(
    "keys", "N", in: 200...100_000_000, "The number of keys in the suite engine (100,000)")
  private static let commits = Option(
    "commits", "N", in: 16...1_000_000, "The number of single commits in the suite engine (1,000)")
  private static let cache = Option(
    "cache-mib", "N", in: 1...65_536,
    "The page cache of each engine in MiB, in the suites travel, engine and endure (40)")
  private static let threads = Option(
    "threads", "A,B", "The numbers of threads in the suites ycsb (1,2), endure (1) and mine (1)"
  ) { try numbers($0, in: 1...64) }
  private static let rates = Option(
    "rates", "A,B", "The rates for ycsb A and B (2000,8000) and for endure (500), in operations per second"
  ) { try numbers($0, in: 1...10_000_000) }
  private static let valueBytes = Option(
    "value-bytes", "A,B", "The sizes of values in the suite endure, in bytes (1000)"
  ) { try numbers($0, in: 1...16_777_216) }
  private static let reads = Option(
    "reads", "A,B", "The shares of reads in the suite endure, in percent (0)"
  ) { try numbers($0, in: 0...100) }
  private static let dataPerCache = Option(
    "data", "N", in: 1...10_000, "The size of the data in the suite endure, as a multiple of the cache (4)")
  private static let duration = Option(
    "duration", "SECONDS", in: 1...86_400, "How long the suites endure and mine work on each database (20)")
  private static let queries = Option(
    "queries", "FILE",
    "The suite mine: a file of queries and the indexes that they want; - for standard input")
  private static let mix = Option<OperationMix>(
    "mix", "MIX",
    "The suite mine: shares of operations, such as read=80,update=15,query=5, or a YCSB workload file",
    parse: operationMix)
  private static let rate = Option(
    "rate", "R", in: 1...10_000_000, "The suite mine: operations of the mix per second (as fast as it goes)")
  private static let idProperty = Option(
    "id-property", "NAME", "The property of the documents with their ID (_id)")
  private static let executions = Option(
    "executions", "N", in: 1...1_000_000,
    "The suite mine: runs of a query in a sample (as many as fit in a quarter of a second)")
  private static let scaleDocuments = Option(
    "scale-docs", "N", in: 10...100_000_000,
    "The largest number of documents in the suite scale (--docs, or 100,000)")
  private static let allPairs = Flag(
    "all-pairs", "Runs all workloads of the suite replicate on each pair of engines")
  private static let location = Option(
    "location", "LOCATION",
    "A server for the databases of the engine postgres and of the suite cluster: postgres://host/db")
  private static let only = Option("only", "A,B", "Runs only these workloads of the suites")
  private static let instructions = Flag(
    "instructions", "Also counts the instructions of each run, with fewer documents, under callgrind")
  private static let allocations = Flag(
    "allocations", "Also counts the allocations of each run, in a separate process")
  private static let delay = Option(
    "inject-delay", "PCT", in: 1...10_000, "Adds an artificial slowdown, to test the gate")
  private static let delayCounts = Option(
    "inject-counts", "FILE",
    "With --inject-delay: the results file with the instruction counts that the slowdown is based on")
  private static let runLog = Option(
    "run-log", "FILE", "Writes a line to this file before each run")
  private static let directory = Option(
    "work-directory", "DIR", "The directory for temporary databases (the current directory)")
  private static let output = Option("output", "FILE", "Writes a results file (docs/results.md)")

  static let usage = Usage(
    "bench", "Compares the engines",
    positionals: [suites],
    options: [
      list, engines, dataset, documents, idProperty, queries, mix, rate, durability, samples, precision,
      budget, seed, keys, commits,
      cache, threads, rates, valueBytes, reads, dataPerCache, duration, scaleDocuments, allPairs, location,
      only,
      executions,
      instructions, allocations, delay, delayCounts,
      runLog,
      directory, output,
    ],
    examples: [
      "touchstone bench travel --engines sqlite,lmdb --output r.json",
      "touchstone bench engine --only readrandom,readseq --samples 9",
      "touchstone bench mine --dataset travel-sample.jsonl --queries queries.n1ql --mix read=80,update=15,query=5",
      "touchstone bench cluster --location 'postgres://db.example/bench' --samples 3",
      "touchstone bench endure --value-bytes 100,16384 --reads 50 --threads 4 --duration 120 --rates 1000",
    ],
    notes: """
      The engines run in turns, each run in a new directory, together with the same loop in bare C. The table shows
      the median time of one operation and its ratios to the loop and to the first engine.

      The suite mine runs your own queries over your own documents, with and without the indexes that they want, and a mix of
      operations. docs/bench-mine.md describes the file of queries.
      """)

  private let isList: Bool
  private let chosen: [Suite]
  private let settings: BenchSettings
  private let countsInstructions: Bool
  private let countsAllocations: Bool
  private let runLogPath: String?
  private let outputPath: String?

  init(_ arguments: Arguments) throws {
    isList = arguments[Self.list]
    let names = arguments.all(Self.suites)
    chosen = try names.isEmpty ? [.travel] : names.map(Self.suite(named:))
    var settings = BenchSettings(workDirectory: try arguments.value(Self.directory) ?? ".")
    if let engines = try arguments.value(Self.engines) { settings.engines = engines }
    settings.dataset = try arguments.value(Self.dataset)
    settings.documents = try arguments.value(Self.documents)
    if let durability = try arguments.value(Self.durability) { settings.durability = durability }
    let samples = try arguments.value(Self.samples)
    settings.sampling = .fixed(samples ?? chosen.map(\.standardSamples).max() ?? 5)
    if let precision = try arguments.value(Self.precision) {
      let least = settings.sampling.minimum
      settings.sampling = Sampling(
        minimum: least, maximum: max(50, least), precision: precision,
        budget: Double(try arguments.value(Self.budget) ?? 60))
    } else if try arguments.value(Self.budget) != nil {
      throw UsageError("--budget needs --precision")
    }
    if let seed = try arguments.value(Self.seed) { settings.seed = UInt64(seed) }
    if let keys = try arguments.value(Self.keys) { settings.keys = keys }
    if let commits = try arguments.value(Self.commits) { settings.commits = commits }
    settings.cacheBytes = try arguments.value(Self.cache).map { $0 << 20 }
    if let threads = try arguments.value(Self.threads) {
      (settings.threads, settings.endure.threads) = (threads, threads)
    }
    if let rates = try arguments.value(Self.rates) {
      (settings.rates, settings.endure.rates) = (rates, rates)
    }
    if let sizes = try arguments.value(Self.valueBytes) { settings.endure.valueBytes = sizes }
    if let reads = try arguments.value(Self.reads) { settings.endure.readPercents = reads }
    if let data = try arguments.value(Self.dataPerCache) { settings.endure.dataPerCache = data }
    if let seconds = try arguments.value(Self.duration) { settings.endure.seconds = Double(seconds) }
    settings.idProperty = try arguments.value(Self.idProperty)
    settings.mine = try Self.mine(arguments, settings)
    let isMine = chosen.contains { $0.name == Suite.mine.name }
    let isTold = !settings.mine.queries.isEmpty || settings.mine.mix != nil
    guard isMine == isTold else {
      throw UsageError(
        isMine
          ? "the suite mine needs --queries FILE, --mix MIX, or both"
          : "--queries and --mix belong to the suite mine: touchstone bench mine …")
    }
    guard !isMine || settings.dataset != nil else {
      throw UsageError("the suite mine needs --dataset FILE, with a JSON object a line, or --dataset NAME")
    }
    settings.location = try arguments.value(Self.location)
    try Self.checkServer(settings, chosen)
    settings.scaleDocuments = try arguments.value(Self.scaleDocuments)
    settings.executable = RunningProgram.path ?? CommandLine.arguments[0]
    settings.measuresAllPairs = arguments[Self.allPairs]
    if let only = try arguments.value(Self.only) {
      let names = Set(only.split(separator: ",").map(String.init))
      let known = Set(chosen.flatMap(\.workloadNames) + settings.mine.queries.map(\.name))
      if let unknown = names.subtracting(known).min() {
        throw UsageError(
          "there is no workload '\(unknown)' in \(chosen.map(\.name).joined(separator: ", "))"
            + Suggestions.hint(for: unknown, among: known))
      }
      settings.only = names
    }
    if let percent = try arguments.value(Self.delay) {
      let counts = try arguments.value(Self.delayCounts).map(ResultsFile.read).map { file in
        Dictionary(
          file.results.compactMap { result in result.instructions.map { (result.identity, $0.run) } }
        ) {
          first, _ in first
        }
      }
      settings.plantedDelay = PlantedDelay(share: Double(percent) / 100, instructions: counts)
    }
    countsInstructions = arguments[Self.instructions]
    countsAllocations = arguments[Self.allocations]
    runLogPath = try arguments.value(Self.runLog)
    self.settings = settings
    outputPath = try arguments.value(Self.output)
  }

  /// Integers separated by commas.
  private static func numbers(_ text: String, in range: ClosedRange<Int>) throws -> [Int] {
    guard !text.isEmpty else { throw UsageError("the list of numbers is empty") }
    return try text.split(separator: ",").map { part in
      guard let number = Int(part), range.contains(number) else {
        throw UsageError("'\(part)' isn't a number from \(range.lowerBound) to \(range.upperBound)")
      }
      return number
    }
  }

  /// Refuses a server that nothing uses, engines on servers without one, and suites that need files.
  private static func checkServer(_ settings: BenchSettings, _ suites: [Suite]) throws {
    let onServer = settings.engines?.first { $0.server != nil }
    let cluster = suites.first { $0.name == Suite.cluster.name }
    if let onServer, let suite = suites.first(where: { !$0.runsOnServers }) {
      let others = Suite.all.filter(\.runsOnServers).map(\.name).joined(separator: ", ")
      throw UsageError(
        "the suite \(suite.name) needs files, which the engine \(onServer.name) doesn't have; these don't: \(others)"
      )
    }
    guard let location = settings.location else {
      guard onServer == nil, cluster == nil else {
        throw UsageError(
          "\(onServer.map { "the engine \($0.name)" } ?? "the suite cluster") needs --location postgres://host/db"
        )
      }
      return
    }
    guard onServer != nil || cluster != nil else {
      throw UsageError("--location needs --engines postgres, or the suite cluster")
    }
    guard location.contains("://"), !location.contains("#") else {
      throw UsageError("--location isn't a location such as postgres://host/db, without a # and a name")
    }
  }

  /// The engines of a list of names, or all.
  static func engineTypes(_ text: String) throws -> [EngineType] {
    if text == "all" { return BenchEngines.all }
    return try text.split(separator: ",").map { name in
      do { return try Engines.type(EngineName(rawValue: String(name))) } catch let error as DatabaseError {
        throw UsageError(error.message + ", or all")
      }
    }
  }

  /// The mix of an option: its text, or the file of YCSB's properties that it names.
  private static func operationMix(_ text: String) throws -> OperationMix {
    do {
      guard !text.contains("=") else { return try OperationMix(parsing: text) }
      return try OperationMix(
        ycsb: String(decoding: InputFile.bytes(text), as: UTF8.self), path: text)
    } catch let error as DatasetError { throw UsageError("\(error)") }
  }

  /// The settings of the suite `mine`.
  private static func mine(_ arguments: Arguments, _ settings: BenchSettings) throws -> MineSettings {
    var mine = MineSettings()
    let file = try arguments.value(queries).map { try QueryFile(path: $0) }
    mine.queries = file?.queries ?? []
    mine.mix = try arguments.value(mix)
    if mine.mix?.needsQueries == true, mine.queries.isEmpty {
      throw UsageError("--mix has a share of queries, so it needs --queries FILE")
    }
    if let seconds = try arguments.value(duration) { mine.seconds = Double(seconds) }
    if let threads = try arguments.value(threads) { mine.threads = threads }
    mine.rate = try arguments.value(rate)
    guard mine.rate == nil || mine.mix != nil else { throw UsageError("--rate needs --mix") }
    mine.executions = try arguments.value(executions)
    mine.describe(queries: file?.text, idProperty: settings.idProperty)
    return mine
  }

  static func suite(named name: String) throws -> Suite {
    guard let suite = Suite.all.first(where: { $0.name == name }) else {
      let known = Suite.all.map(\.name)
      throw UsageError(
        "there is no suite '\(name)'\(Suggestions.hint(for: name, among: known)); known are \(known.joined(separator: ", "))"
      )
    }
    return suite
  }

  func run(_ output: StandardOutput) throws {
    if isList { return try list(output) }
    Interrupt.listen()
    // Checked before the run, so that a wrong path doesn't waste a run.
    if let outputPath { try Self.checkWritable(outputPath) }
    let results = try BenchSession(settings: settings, suites: chosen, version: Self.version).run(
      countingInstructions: countsInstructions, countingAllocations: countsAllocations, runLog: runLogPath)
    try report(results, output)
    if let outputPath {
      try AtomicFile.write(results.encoded(), to: outputPath, permissions: 0o644)
      StandardError.line(
        "results written to \(outputPath)"
          + (countsInstructions
            ? "" : "; to use it as a baseline of gate, add --instructions, which finds smaller slowdowns"))
    }
  }

  /// The release, and the revision of the checkout that the executable was built from, if it is still in it:
  /// `0.3.0+1a2b3c4`, or `0.3.0+1a2b3c4.changed` if files of the checkout differ from that revision.
  static var version: String {
    version(executable: RunningProgram.path ?? "", source: #filePath)
  }

  /// `source` is the path of this file in the checkout, as the compiler saw it. Any other repository, such as that of the
  /// current directory, says nothing about the executable.
  static func version(executable: String, source: String) -> String {
    func resolved(_ path: String) -> String { URL(fileURLWithPath: path).resolvingSymlinksInPath().path }
    // CHECKOUT/Sources/Tool/CLI/Commands/BenchCommand.swift
    let checkout = resolved(
      (0..<5).reduce(URL(fileURLWithPath: source)) { url, _ in url.deletingLastPathComponent() }.path)
    guard resolved(executable).hasPrefix(checkout + "/") else { return touchstoneVersion }
    func git(_ arguments: String...) -> String? {
      let found = try? Program.run(named: "git", ["-C", checkout] + arguments, errors: .apart)
      guard let found, found.status == 0 else { return nil }
      return String(found.output.trimming())
    }
    guard let top = git("rev-parse", "--show-toplevel"), resolved(top) == checkout,
      let revision = git("rev-parse", "--short", "HEAD"), !revision.isEmpty
    else { return touchstoneVersion }
    let isChanged = git("status", "--porcelain", "--untracked-files=no")?.isEmpty == false
    return "\(touchstoneVersion)+\(revision)\(isChanged ? ".changed" : "")"
  }

  private func list(_ output: StandardOutput) throws {
    for (number, suite) in Suite.all.enumerated() {
      if number > 0 { try output.line("") }
      try output.write(Usage.paragraphs("\(suite.name): \(suite.summary)"))
      var rows = try suite.listing().map { (name: $0.name, help: $0.summary) }
      if rows.isEmpty {
        rows = [
          ("NAME", "each of your queries, by its name, without indexes and with them"),
          ("mix", "your mix of operations, for a fixed time"),
        ]
      }
      try output.write(Usage.columns(rows, indent: 26))
    }
  }

  private func report(_ results: ResultsFile, _ output: StandardOutput) throws {
    if let dataset = results.dataset {
      try output.line(
        "\(dataset.name): \(TextTable.grouped(dataset.documents)) documents, "
          + "\(TextTable.grouped(dataset.jsonBytes)) bytes of JSON")
    }
    var compared: [String] = []
    for name in chosen.flatMap({ $0.subjects(settings) }) where !compared.contains(name) {
      compared.append(name)
    }
    try output.line(
      compared.map { "\($0): \(results.engines[$0]?.library ?? "")" }.joined(separator: " · ")
        + " · durability \(settings.durability.rawValue) · \(samplesText) · seed \(settings.seed)")
    for suite in chosen {
      let rows = results.results.filter { $0.suite == suite.name }
      let names = suite.subjects(settings)
      try output.line("\n" + ResultsTable(rows, engines: names).text())
      let latencies = LatencyTable(rows)
      var tables = latencies.isEmpty ? [] : [latencies.text()]
      for table in [
        ValueTable.amplifications(rows, engines: names), ValueTable.allocations(rows, engines: names),
      ] where !table.isEmpty { tables.append(table.text()) }
      for table in tables { try output.line("\n" + table) }
      if !tables.isEmpty { try output.line("") }
      try output.line(
        ResultsSummary(rows, engines: names, durability: settings.durability.rawValue).text())
      for note in suite.notes(rows) { try output.line(note) }
      for table in suite.tables(rows) { try output.line("\n" + table.lines.joined(separator: "\n")) }
    }
    let advice = Advice(results.results, engines: compared)
    if !advice.lines.isEmpty {
      try output.line("\nWhich engine for what, by this run:")
      for line in advice.lines { try output.line("  " + line) }
    }
    let notes =
      (results.conditions?.notes(cores: results.machine.cores) ?? [])
      + ResultsSummary.samplingNotes(results.results)
    if !notes.isEmpty { try output.line("") }
    for note in notes { try output.line(note) }
  }

  private var samplesText: String {
    let sampling = settings.sampling
    return sampling.precision == nil
      ? "\(sampling.minimum) \(sampling.minimum == 1 ? "sample" : "samples")"
      : "\(sampling.minimum) to \(sampling.maximum) samples"
  }

  private static func checkWritable(_ path: String) throws {
    let directory = URL(fileURLWithPath: path).deletingLastPathComponent().path
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    guard FileManager.default.isWritableFile(atPath: directory) else {
      throw UsageError("--output: the directory of \(path) isn't writable")
    }
  }
}
