import BenchmarkKit
import Datasets
import Storage
import Touchstone

extension Suite {
  /// First reads of files that aren't in the page cache, compared with the same reads of files that are.
  public static let cold = Suite(
    name: "cold",
    summary:
      "Reopening, random reads, a scan, indexed queries and blobs, with the files of the database dropped from the page "
      + "cache, and with all of them in it.",
    workloadNames: ColdWorkload.allCases.map(\.rawValue), usesDataset: false, notes: ColdNotes.lines
  ) { context in
    let data = ColdData(context)
    return ColdWorkload.allCases.flatMap { kind in
      ColdWorkload.Cache.allCases.map {
        ColdBenchmark(kind: kind, cache: $0, data: data, context: context).workload()
      }
    }
  }
}

/// The workloads of the suite `cold`.
enum ColdWorkload: String, CaseIterable {
  case reopen
  case read
  case scan
  case query
  case blobRead = "blob-read"

  /// Whether the files are in the page cache when a run begins.
  enum Cache: String, CaseIterable {
    case cold, warm
  }

  var summary: String {
    switch self {
    case .reopen: "opens the database and reads one document"
    case .read: "random documents, a snapshot each, after an open that isn't timed"
    case .scan: "all documents in the order of the engine, after such an open"
    case .query: "queries for the documents of one city each, by an index, after such an open"
    case .blobRead: "documents and their blobs of 100,000 bytes, after such an open"
    }
  }
}

/// A benchmark of the suite `cold`. It makes the runs on an engine.
struct ColdBenchmark: Sendable {
  let kind: ColdWorkload
  let cache: ColdWorkload.Cache
  let data: ColdData
  let context: SuiteContext

  func workload() -> Workload {
    Workload(
      suite: "cold", name: kind.rawValue, summary: kind.summary,
      parameters: ["cache": .string(cache.rawValue)],
      operations: operations
    ) { trial in try prepare(trial) }
  }

  private var operations: Int {
    switch kind {
    case .reopen: 1
    case .read: data.reads
    case .scan: data.documents
    case .query: data.queries
    case .blobRead: data.blobs
    }
  }

  private func prepare(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    let directory = try data.filled(engine)
    let files = try FileResidency(directory)
    switch cache {
    case .cold: files.drop()
    case .warm: files.fill()
    }
    let kept = cache == .cold ? files.residentShare : nil
    // Opening reads some pages. For most workloads it isn't timed.
    let opened = kind == .reopen ? nil : try data.open(engine, in: directory)
    let share = files.residentShare
    var random = SeededRandom(seed: context.settings.seed &+ UInt64(trial.round))
    let numbers = (0..<operations).map { _ in random.below(kind == .query ? data.cities : data.documents) }
    return Trial(
      run: {
        if let opened { return try run(opened, numbers) }
        let begin = Clock.nanoseconds()
        let database = try data.open(engine, in: directory)
        let read = Result { try database.document(DocumentsData.id(numbers[0])) }
        let seconds = Double(Clock.nanoseconds() - begin) / 1e9
        try database.close()
        try RunMismatch.check(try read.get() == nil ? 0 : 1, 1)
        return .seconds(seconds)
      }, fileBytes: { files.byteCount },
      metrics: { [.cachedShare: share].merging(kept.map { [.keptShare: $0] } ?? [:]) { $1 } },
      finish: {
        // The database must be closed before the descriptors in `files` are.
        try opened?.close()
        withExtendedLifetime(files) {}
      })
  }

  private func run(_ database: Database, _ numbers: [Int]) throws -> Trial.Duration {
    switch kind {
    case .reopen: return .whole
    case .read:
      let key = try database.key("name")
      return try timed(numbers) { number in
        try database.document(DocumentsData.id(number))?[key].string == nil ? 0 : 1
      }
    case .query:
      let query = try database.query(ColdData.query)
      let expected = data.documents / data.cities
      return try timed(numbers) { number in
        try query.run(["city": .string(ColdData.city(number))]).count >= expected ? 1 : 0
      }
    case .blobRead:
      return try timed(Array(0..<data.blobs)) { number in
        guard let blob = try database.document(ColdData.blobID(number))?["avatar"].blob else { return 0 }
        return try database.contents(of: blob).count == ColdData.blobBytes ? 1 : 0
      }
    case .scan:
      var found = 0
      try database.read { snapshot in
        let key = try snapshot.key("name")
        try snapshot.forEachDocument { document in
          if document[key]?.utf8 != nil { found += 1 }
          return true
        }
      }
      try RunMismatch.check(found, data.documents)
      return .whole
    }
  }

  /// Times operations one by one. `body` returns 1 if the operation found what it should.
  private func timed(_ numbers: [Int], _ body: (Int) throws -> Int) throws -> Trial.Duration {
    var histogram = LatencyHistogram()
    var found = 0
    for number in numbers {
      let begin = Clock.nanoseconds()
      found += try body(number)
      histogram.record(Clock.nanoseconds() - begin)
    }
    try RunMismatch.check(found, numbers.count)
    return .latencies(histogram)
  }
}

/// The remarks of the suite `cold`.
enum ColdNotes {
  /// The greatest share of the files that the page cache may keep in a cold run.
  static let greatestShare = 0.05

  /// One line per engine and workload: how much slower the cold run is, and how cold it was.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    var lines = [
      "Cold means the kernel's page cache. What lies below it, the cache of a drive or of a host under a virtual "
        + "machine, can't be dropped from here."
    ]
    for row in results where row.parameters["cache"] == .string(ColdWorkload.Cache.cold.rawValue) {
      let kept = row.metrics[.keptShare]?.median ?? 1
      let share = row.metrics[.cachedShare]?.median ?? 1
      var line = "\(row.engine) \(row.workload): "
      if kept > greatestShare { line += "NOT cold, " }
      line += "of \(mebibytes(row.metrics.fileBytes.median)) MiB the page cache kept \(percent(kept))"
      if row.workload != ColdWorkload.reopen.rawValue {
        line += ", \(percent(share)) was there once it was open"
      }
      if let fetched = row.metrics[.diskBytesRead]?.median {
        line += ", the run fetched \(mebibytes(fetched)) MiB from the disk"
      }
      let warm = results.first {
        $0.engine == row.engine && $0.workload == row.workload
          && $0.parameters["cache"] == .string(ColdWorkload.Cache.warm.rawValue)
      }
      if let warm {
        let ratio = Bootstrap.ratio(row.metrics.seconds.samples, over: warm.metrics.seconds.samples)
        line += "; \(Format.ratio(ratio.ratio))x the warm time (95%: \(Format.interval(ratio.interval)))"
      }
      lines.append(line)
    }
    return lines
  }

  private static func percent(_ share: Double) -> String { "\(Format.ratio(share * 100))%" }
  private static func mebibytes(_ bytes: Double) -> String { Format.ratio(bytes / 1_048_576) }
}
