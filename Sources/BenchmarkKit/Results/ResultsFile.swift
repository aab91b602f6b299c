import Foundation

/// A results file of schema 1: where and with what was measured, and what came out. docs/results.md describes
/// every member.
public struct ResultsFile: Codable, Equatable, Sendable {
  /// The schema that this type reads and writes.
  public static let currentSchema = 1

  /// 1.
  public var schema: Int
  /// Version and revision of the project: `0.1.0+gitrev`.
  public var touchstone: String
  /// When the run began, in UTC: `2026-11-20T10:00:00Z`.
  public var started: String
  /// Where it ran.
  public var machine: Machine
  /// What ran, by the names that results use.
  public var engines: [String: EngineDescription]
  /// The documents, when a suite used some.
  public var dataset: DatasetDescription?
  /// How the machine was meanwhile; nil in files of before it was noted.
  public var conditions: RunConditions?
  /// What came out, workload by workload.
  public var results: [WorkloadResult]

  /// An engine's library, and what was set on it.
  public struct EngineDescription: Codable, Equatable, Sendable {
    /// Name and version: `LMDB 0.9.24`.
    public var library: String
    /// What was set, by the library's names, and `durability`.
    public var settings: [String: String]

    /// An engine's description.
    public init(library: String, settings: [String: String]) {
      self.library = library
      self.settings = settings
    }
  }

  /// The documents that were used.
  public struct DatasetDescription: Codable, Equatable, Sendable {
    /// Its name, or the file's.
    public var name: String
    /// How many were used.
    public var documents: Int
    /// Bytes of their lines of JSON.
    public var jsonBytes: Int
    /// SHA-256 of those lines, lower-case hex.
    public var sha256: String

    private enum CodingKeys: String, CodingKey {
      case name
      case documents
      case jsonBytes = "json_bytes"
      case sha256
    }

    /// A data set's description.
    public init(name: String, documents: Int, jsonBytes: Int, sha256: String) {
      self.name = name
      self.documents = documents
      self.jsonBytes = jsonBytes
      self.sha256 = sha256
    }
  }

  /// A results file of the current schema; `started` is now unless given.
  public init(
    touchstone: String, started: String? = nil, machine: Machine, engines: [String: EngineDescription],
    dataset: DatasetDescription?, conditions: RunConditions? = nil, results: [WorkloadResult]
  ) {
    schema = ResultsFile.currentSchema
    self.touchstone = touchstone
    self.started = started ?? ResultsFile.timestamp(Date())
    self.machine = machine
    self.engines = engines
    self.dataset = dataset
    self.conditions = conditions
    self.results = results
  }

  /// Several runs of the same workloads as one: the samples of each, in order. What one of them lacks is left out;
  /// everything else is the first one's. Nil when there is none.
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

  /// Adds the samples of another run of some of the workloads.
  public mutating func add(_ more: ResultsFile) {
    let found = Dictionary(more.results.map { ($0.identity, $0) }) { first, _ in first }
    results = results.map { result in
      found[result.identity].map { WorkloadResult(merging: result, [$0]) } ?? result
    }
  }

  /// A moment as results files write it.
  public static func timestamp(_ date: Date) -> String {
    date.formatted(Date.ISO8601FormatStyle(timeZone: TimeZone(secondsFromGMT: 0) ?? .gmt))
  }

  /// The file's bytes: members in alphabetical order, results in the order of the run, so that the same results
  /// give the same bytes.
  public func encoded() throws -> Data {
    return try JSONEncoder.readable.encode(self) + Data([0x0A])
  }

  /// Reads a file's bytes. Throws `InvalidResults` with everything that is wrong with it.
  public init(validating data: Data) throws {
    let faults = ResultsSchema.faults(in: data)
    guard faults.isEmpty else { throw InvalidResults(faults: faults) }
    self = try JSONDecoder().decode(ResultsFile.self, from: data)
  }
}

/// A results file that doesn't follow its schema.
public struct InvalidResults: Error, CustomStringConvertible {
  /// A line each: where, and what.
  public let faults: [String]

  /// For people.
  public var description: String { "not a results file of schema 1: \(faults.joined(separator: "; "))" }
}
