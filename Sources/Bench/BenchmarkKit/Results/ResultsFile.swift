import FoundationEssentials

/// A results file of schema 1: the machine, the engines and the results of a run. docs/results.md describes
/// every member.
public struct ResultsFile: Codable, Equatable, Sendable {
  /// The schema version that this type reads and writes.
  public static let currentSchema = 1

  /// The schema version, 1.
  public var schema: Int
  /// The version and revision of the project: `0.3.0+gitrev`.
  public var touchstone: String
  /// The start of the run in UTC: `2026-11-20T10:00:00Z`.
  public var started: String
  /// The machine of the run.
  public var machine: Machine
  /// The engines, by the names used in results.
  public var engines: [String: EngineDescription]
  /// The data set, if a suite used one.
  public var dataset: DatasetDescription?
  /// The state of the machine during the run; nil in older files.
  public var conditions: RunConditions?
  /// What the suite `mine` ran; nil if it didn't run.
  public var ownWork: OwnWork?
  /// The results, workload by workload.
  public var results: [WorkloadResult]

  /// An engine's library and its settings.
  public struct EngineDescription: Codable, Equatable, Sendable {
    /// The library's name and version: `LMDB 0.9.24`.
    public var library: String
    /// The settings, named as in the library, and `durability`.
    public var settings: [String: String]

    /// Makes a description.
    public init(library: String, settings: [String: String]) {
      self.library = library
      self.settings = settings
    }
  }

  /// The documents that a run used.
  public struct DatasetDescription: Codable, Equatable, Sendable {
    /// The name of the data set or the file.
    public var name: String
    /// The number of documents used.
    public var documents: Int
    /// The size of their JSON lines, in bytes.
    public var jsonBytes: Int
    /// The SHA-256 of those lines, in lower-case hex.
    public var sha256: String

    private enum CodingKeys: String, CodingKey {
      case name
      case documents
      case jsonBytes = "json_bytes"
      case sha256
    }

    /// Makes a description.
    public init(name: String, documents: Int, jsonBytes: Int, sha256: String) {
      self.name = name
      self.documents = documents
      self.jsonBytes = jsonBytes
      self.sha256 = sha256
    }
  }

  /// What the suite `mine` ran beside the data set, so that it can run again.
  public struct OwnWork: Codable, Equatable, Sendable {
    /// The text of the file of queries.
    public var queries: String?
    /// The property with the IDs of the documents, if one was named.
    public var idProperty: String?
    /// The mix of operations: `read=80,update=15,query=5,distribution=zipfian`.
    public var mix: String?
    /// The number of documents of the longest scan of the mix.
    public var longestScan: Int?
    /// How long the mix ran, in seconds.
    public var seconds: Double?
    /// The numbers of threads of the mix.
    public var threads: [Int]?
    /// The rate of the mix in operations per second; nil for full speed.
    public var rate: Int?

    private enum CodingKeys: String, CodingKey {
      case queries
      case idProperty = "id_property"
      case mix
      case longestScan = "longest_scan"
      case seconds, threads, rate
    }

    /// A description of nothing.
    public init() {}
  }

  private enum CodingKeys: String, CodingKey {
    case schema, touchstone, started, machine, engines, dataset, conditions
    case ownWork = "own_work"
    case results
  }

  /// A results file of the current schema. `started` is now if nil.
  package init(
    touchstone: String, started: String? = nil, machine: Machine, engines: [String: EngineDescription],
    dataset: DatasetDescription?, conditions: RunConditions? = nil, ownWork: OwnWork? = nil,
    results: [WorkloadResult]
  ) {
    schema = ResultsFile.currentSchema
    self.touchstone = touchstone
    self.started = started ?? ResultsFile.timestamp(Date())
    self.machine = machine
    self.engines = engines
    self.dataset = dataset
    self.conditions = conditions
    self.ownWork = ownWork
    self.results = results
  }

  /// Merges several runs of the same workloads: the samples of each, in order. A workload that one of them
  /// lacks is left out. Everything else comes from the first. Nil if there are no files.
  public static func merged(_ files: [ResultsFile]) -> ResultsFile? {
    guard var merged = files.first else { return nil }
    let others = files.dropFirst().map { file in
      Dictionary(file.results.map { ($0.identity, $0) }) { first, _ in first }
    }
    merged.results = merged.results.compactMap { result in
      let found = others.compactMap { $0[result.identity] }
      return found.count == others.count ? WorkloadResult(merging: result, found) : nil
    }
    return merged
  }

  /// Adds the samples of another run. Workloads that the other run lacks don't change.
  public mutating func add(_ more: ResultsFile) {
    let found = Dictionary(more.results.map { ($0.identity, $0) }) { first, _ in first }
    results = results.map { result in
      found[result.identity].map { WorkloadResult(merging: result, [$0]) } ?? result
    }
  }

  /// A date in the format of results files.
  public static func timestamp(_ date: Date) -> String {
    date.formatted(Date.ISO8601FormatStyle(timeZone: TimeZone(secondsFromGMT: 0) ?? .gmt))
  }

  /// The bytes of the file. Members are in alphabetical order and results in the order of the run, so equal
  /// results have equal bytes.
  public func encoded() throws -> Data {
    return try JSONEncoder.readable.encode(self).withNumbersOnOneLine + Data([0x0A])
  }

  /// Reads and checks the bytes of a file. Throws `InvalidResults` with all faults.
  package init(validating data: Data) throws {
    let faults = ResultsSchema.faults(in: data)
    guard faults.isEmpty else { throw InvalidResults(faults: faults) }
    self = try JSONDecoder().decode(ResultsFile.self, from: data)
  }
}

/// A results file that doesn't follow its schema.
public struct InvalidResults: Error, CustomStringConvertible {
  /// One line per fault: where it is, and what it is.
  public let faults: [String]

  /// The faults in one text.
  public var description: String { "not a results file of schema 1: \(faults.joined(separator: "; "))" }
}
