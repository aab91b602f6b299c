import Bytes
import Datasets

/// The shares of operations in the workload `mix` of the suite `mine`, and how documents are chosen.
///
///     mix  = part *( "," part )
///     part = operation "=" share / "distribution=" ( "zipfian" / "uniform" / "latest" )
///
/// The shares are numbers of any sum. A file has the format of YCSB's core workload: lines `readproportion=0.5`.
package struct OperationMix: Sendable, Equatable {
  /// What is done with a document, or the queries.
  package enum Operation: String, CaseIterable, Sendable {
    /// Reads a document whole.
    case read
    /// Saves a document with a new value of one property.
    case update
    /// Saves a copy of a document under a new ID.
    case insert
    /// Reads documents whole, in the order of their IDs.
    case scan
    /// Reads a document, changes a property, and saves it.
    case readModifyWrite = "readmodifywrite"
    /// Runs one of the queries and reads its rows.
    case query
  }

  /// How documents are chosen.
  package enum Distribution: String, CaseIterable, Sendable {
    case zipfian, uniform, latest
  }

  /// The shares, which sum up to 1. Operations without a share are left out.
  package let shares: [(operation: Operation, share: Double)]
  package let distribution: Distribution
  /// The number of documents of the longest scan. Scans have 1 to this many.
  package let longestScan: Int
  /// Properties of a file that YCSB knows and that don't apply here.
  package let ignored: [String]

  package static func == (left: Self, right: Self) -> Bool {
    left.text == right.text && left.longestScan == right.longestScan
  }

  /// Checks and completes a mix. `place` is where it comes from.
  private init(
    _ weights: [Operation: Double], _ distribution: Distribution, longestScan: Int, ignored: [String],
    path: String?
  ) throws {
    let sum = weights.values.reduce(0, +)
    guard sum > 0 else {
      throw DatasetError(.invalidArgument, "no operation has a share", path: path)
    }
    shares = Operation.allCases.compactMap { operation in
      weights[operation].flatMap { $0 > 0 ? (operation, $0 / sum) : nil }
    }
    self.distribution = distribution
    self.longestScan = longestScan
    self.ignored = ignored
  }

  /// Parses `read=80,update=15,query=5`. Throws `DatasetError`.
  package init(parsing text: String) throws {
    var weights: [Operation: Double] = [:]
    var distribution = Distribution.zipfian
    for part in text.split(separator: ",") {
      let words = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      let known = (Operation.allCases.map(\.rawValue) + ["distribution"]).joined(separator: ", ")
      guard words.count == 2 else {
        throw DatasetError(.invalidArgument, "'\(part)' isn't OPERATION=SHARE, such as read=80")
      }
      if words[0] == "distribution" {
        guard let value = Distribution(rawValue: words[1]) else { throw Self.unknown(words[1]) }
        distribution = value
        continue
      }
      guard let operation = Operation(rawValue: words[0]) else {
        throw DatasetError(.invalidArgument, "there is no operation '\(words[0])'; known are \(known)")
      }
      guard weights[operation] == nil else {
        throw DatasetError(.invalidArgument, "'\(words[0])' occurs twice")
      }
      guard let share = Self.share(words[1]) else {
        throw DatasetError(
          .invalidArgument, "the share of \(words[0]) is '\(words[1])', not a number from 0 up")
      }
      weights[operation] = share
    }
    try self.init(weights, distribution, longestScan: YCSBWorkload.longestScan, ignored: [], path: nil)
  }

  private static func share(_ text: String) -> Double? {
    guard let number = Double(text), number >= 0, number.isFinite else { return nil }
    return number
  }

  private static func unknown(_ text: String, path: String? = nil, line: Int? = nil) -> DatasetError {
    DatasetError(
      .invalidArgument,
      "there is no distribution '\(text)' here; known are "
        + Distribution.allCases.map(\.rawValue).joined(separator: ", "), path: path, line: line)
  }

  // MARK: YCSB

  /// The shares of YCSB's core workload, with its defaults.
  private static let proportions: [(property: String, operation: Operation, share: Double)] = [
    ("readproportion", .read, 0.95), ("updateproportion", .update, 0.05), ("insertproportion", .insert, 0),
    ("scanproportion", .scan, 0), ("readmodifywriteproportion", .readModifyWrite, 0),
    // Not one of YCSB's.
    ("queryproportion", .query, 0),
  ]

  /// Parses a file of properties of YCSB's core workload: `name=value` lines, and comments that begin with `#` or `!`.
  ///
  /// Properties that say which documents there are, how many operations, and of which size, don't apply. They are in `ignored`.
  /// Throws `DatasetError` with the line.
  package init(ycsb text: String, path: String) throws {
    var weights = Dictionary(uniqueKeysWithValues: Self.proportions.map { ($0.operation, $0.share) })
    var distribution = Distribution.uniform
    var longestScan = 1_000
    var ignored: [String] = []
    for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let line = String(line.trimming())
      guard let first = line.first, first != "#", first != "!" else { continue }
      guard let sign = line.firstIndex(where: { $0 == "=" || $0 == ":" }) else {
        throw DatasetError(
          .badLine, "'\(line)' isn't NAME=VALUE, such as readproportion=0.5", path: path, line: number + 1)
      }
      let name = String(line[..<sign].trimming())
      let value = String(line[line.index(after: sign)...].trimming())
      if let proportion = Self.proportions.first(where: { $0.property == name }) {
        guard let share = Self.share(value) else {
          throw DatasetError(
            .badLine, "\(name) is '\(value)', not a number from 0 up", path: path, line: number + 1)
        }
        weights[proportion.operation] = share
        continue
      }
      switch name {
      case "requestdistribution":
        guard let known = Distribution(rawValue: value) else {
          throw Self.unknown(value, path: path, line: number + 1)
        }
        distribution = known
      case "maxscanlength":
        guard let length = Int(value), length > 0 else {
          throw DatasetError(
            .badLine, "\(name) is '\(value)', not a number from 1 up", path: path, line: number + 1)
        }
        longestScan = length
      case "scanlengthdistribution" where value == "uniform": break
      default: ignored.append(name)
      }
    }
    try self.init(weights, distribution, longestScan: longestScan, ignored: ignored, path: path)
  }

  // MARK: Text

  /// The mix as it is written in results: `read=80,update=15,query=5,distribution=zipfian`. Shares are in percent, with at most
  /// four digits after the point.
  package var text: String {
    let parts = shares.map { part in
      let percent = (part.share * 1e6).rounded() / 1e4
      return "\(part.operation.rawValue)=" + (percent == percent.rounded() ? "\(Int(percent))" : "\(percent)")
    }
    return (parts + ["distribution=\(distribution.rawValue)"]).joined(separator: ",")
  }

  /// The mix of a results file: the text, and the longest scan if it isn't the usual one.
  package init(parsing text: String, longestScan: Int?) throws {
    let mix = try OperationMix(parsing: text)
    try self.init(
      Dictionary(uniqueKeysWithValues: mix.shares.map { ($0.operation, $0.share) }), mix.distribution,
      longestScan: longestScan ?? mix.longestScan, ignored: [], path: nil)
  }

  /// The operation for a uniform number from 0 to 1, excluding 1.
  func operation(_ uniform: Double) -> Operation {
    var sum = 0.0
    for (operation, share) in shares {
      sum += share
      if uniform < sum { return operation }
    }
    return shares.last?.operation ?? .read
  }

  /// Whether it runs queries.
  package var needsQueries: Bool { shares.contains { $0.operation == .query } }

  /// Whether it changes the database.
  var writes: Bool { shares.contains { [.update, .insert, .readModifyWrite].contains($0.operation) } }
}
