/// What a run did interval by interval: columns with a value for each interval. docs/results.md describes them.
public struct TimeSeries: Codable, Equatable, Sendable {
  /// The version that this type reads and writes.
  public static let currentVersion = 1
  /// The greatest number of intervals that is read from a file.
  static let mostIntervals = 1_000_000

  /// A column that every engine has.
  package enum Column: String, CaseIterable, Sendable {
    /// Operations that ended in the interval.
    case operations
    /// The median latency of these operations, in seconds; 0 if none ended.
    case latencyP50 = "latency_p50"
    /// The 99th percentile.
    case latencyP99 = "latency_p99"
    /// The longest.
    case latencyMax = "latency_max"
    /// Bytes of keys and values that were committed since the start.
    case userBytes = "user_bytes"
    /// Bytes that the process gave to the disk since the start: `write_bytes` of `/proc/self/io`.
    case diskBytesWritten = "disk_bytes_written"
    /// Bytes that the process passed to `write` since the start: `wchar` of `/proc/self/io`.
    case bytesWritten = "bytes_written"
    /// The size of the database's files.
    case fileBytes = "file_bytes"
    /// Bytes of the keys and values in the database.
    case storedBytes = "stored_bytes"
    /// The resident memory of the process.
    case residentBytes = "rss_bytes"
    /// The part of it that is the process's own.
    case anonymousBytes = "anonymous_bytes"
  }

  /// A part of a run.
  public struct Phase: Codable, Equatable, Sendable {
    /// Its name.
    public var name: String
    /// The index of its first interval.
    public var first: Int

    /// Makes a phase. See the properties.
    public init(name: String, first: Int) {
      self.name = name
      self.first = first
    }
  }

  /// The version, 1.
  public var version: Int
  /// The length of an interval in seconds.
  public var intervalSeconds: Double
  /// The parts of the run, in order.
  public var phases: [Phase]
  /// The values of each column, one per interval.
  public var columns: [String: [Double]]
  /// What the engine's library counted, by the library's own names: its value at the end of each interval.
  public var activity: [String: [Double]]
  /// The times in which nearly no operation ended.
  public var stalls: [Stall]

  private enum CodingKeys: String, CodingKey {
    case version
    case intervalSeconds = "interval_seconds"
    case phases, columns, activity, stalls
  }

  /// Makes a series of version 1. Nil if the columns have different lengths or none.
  package init?(
    interval: Double, phases: [Phase] = [], columns: [Column: [Double]], activity: [String: [Double]] = [:],
    stalls: [Stall] = []
  ) {
    version = TimeSeries.currentVersion
    intervalSeconds = interval
    self.phases = phases
    self.columns = Dictionary(uniqueKeysWithValues: columns.map { ($0.key.rawValue, $0.value) })
    self.activity = activity
    self.stalls = stalls
    guard isSound else { return nil }
  }

  /// Reads a series of version 1. Throws for another version, and for columns of different lengths.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    version = try container.decode(Int.self, forKey: .version)
    guard version == TimeSeries.currentVersion else {
      throw DecodingError.dataCorruptedError(
        forKey: .version, in: container, debugDescription: "version \(version) is unknown")
    }
    intervalSeconds = try container.decode(Double.self, forKey: .intervalSeconds)
    columns = try container.decode([String: [Double]].self, forKey: .columns)
    phases = try container.decodeIfPresent([Phase].self, forKey: .phases) ?? []
    activity = try container.decodeIfPresent([String: [Double]].self, forKey: .activity) ?? [:]
    stalls = try container.decodeIfPresent([Stall].self, forKey: .stalls) ?? []
    guard isSound else {
      throw DecodingError.dataCorruptedError(
        forKey: .columns, in: container, debugDescription: "the columns don't have the same length")
    }
  }

  private var isSound: Bool {
    let count = count
    return intervalSeconds > 0 && intervalSeconds.isFinite && 1...TimeSeries.mostIntervals ~= count
      && columns.values.allSatisfy { $0.count == count && $0.allSatisfy(\.isFinite) }
      && activity.values.allSatisfy { $0.count == count && $0.allSatisfy(\.isFinite) }
      && phases.allSatisfy { 0...count ~= $0.first }
      && stalls.allSatisfy { $0.begin.isFinite && $0.seconds.isFinite }
  }

  /// The number of intervals.
  public var count: Int { columns.first?.value.count ?? 0 }

  /// The values of a column; nil if the series lacks it.
  package subscript(column: Column) -> [Double]? { columns[column.rawValue] }
}

/// A time in which nearly no operation ended.
public struct Stall: Codable, Equatable, Sendable {
  /// Its beginning, in seconds from the start of the run.
  public var begin: Double
  /// Its length in seconds.
  public var seconds: Double

  /// Makes a stall. See the properties.
  public init(begin: Double, seconds: Double) {
    self.begin = begin
    self.seconds = seconds
  }
}

/// The series of a result: one for each sample that has one, in the order of the rounds.
///
/// What a reader doesn't know, it leaves out: series of other versions, and those that can't be read.
public struct TimeSeriesList: Codable, Equatable, Sendable {
  /// The series.
  public var all: [TimeSeries]

  init(_ all: [TimeSeries]) { self.all = all }

  private struct Readable: Decodable {
    let series: TimeSeries?
    init(from decoder: any Decoder) { series = try? TimeSeries(from: decoder) }
  }

  /// Reads an array.
  public init(from decoder: any Decoder) throws {
    var container = try decoder.unkeyedContainer()
    all = []
    while !container.isAtEnd {
      if let series = try container.decode(Readable.self).series { all.append(series) }
    }
  }

  /// Writes an array.
  public func encode(to encoder: any Encoder) throws { try all.encode(to: encoder) }
}
