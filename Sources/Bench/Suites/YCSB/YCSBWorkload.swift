import BenchmarkKit

/// The workloads A to F of the Yahoo! Cloud Serving Benchmark, and the load before them. Source: Cooper,
/// Silberstein, Tam, Ramakrishnan and Sears, "Benchmarking Cloud Serving Systems with YCSB", 2010.
enum YCSBWorkload: String, CaseIterable {
  case load
  case updateHeavy = "a-update-heavy"
  case readMostly = "b-read-mostly"
  case readOnly = "c-read-only"
  case readLatest = "d-read-latest"
  case shortRanges = "e-short-ranges"
  case readModifyWrite = "f-read-modify-write"

  /// Documents per transaction of the load.
  static let loadBatch = 1_000
  /// The number of entries in the longest scan.
  static let longestScan = 100

  var summary: String {
    switch self {
    case .load: "inserts of all documents in the order of their numbers, 1,000 a transaction"
    case .updateHeavy: "A: 50% reads, 50% updates, zipfian"
    case .readMostly: "B: 95% reads, 5% updates, zipfian"
    case .readOnly: "C: reads, zipfian or uniform"
    case .readLatest: "D: 95% reads of the latest, 5% inserts"
    case .shortRanges: "E: 95% scans of up to 100 documents, 5% inserts, zipfian"
    case .readModifyWrite: "F: 50% reads, 50% reads whose documents are changed and saved, zipfian"
    }
  }

  /// What an operation does with the chosen document.
  enum Operation: UInt8 {
    case read, update, insert, scan, readModifyWrite
  }

  /// The operation with its share, and the operation of the rest.
  var mix: (share: Double, operation: Operation, rest: Operation) {
    switch self {
    case .load: (1, .insert, .insert)
    case .updateHeavy: (0.5, .update, .read)
    case .readMostly: (0.05, .update, .read)
    case .readOnly: (1, .read, .read)
    case .readLatest: (0.05, .insert, .read)
    case .shortRanges: (0.05, .insert, .scan)
    case .readModifyWrite: (0.5, .readModifyWrite, .read)
    }
  }

  /// How documents are chosen.
  enum Choice: String {
    case zipfian, latest, uniform
  }

  var writes: Bool { self != .readOnly }

  /// The parameters that vary within a workload.
  struct Variant: Sendable {
    var choice: Choice
    var threads = 1
    /// Operations per second; nil for a closed loop.
    var rate: Int?
    /// Whether the choice differs from the workload's default.
    var namesChoice = false

    var parameters: Parameters {
      var parameters: Parameters = ["threads": .integer(threads)]
      if let rate { parameters["rate"] = .integer(rate) }
      if namesChoice { parameters["keys"] = .string(choice.rawValue) }
      return parameters
    }
  }

  /// Each workload with every number of threads. C also runs with uniform choice, and A and B at the rates
  /// with the largest number of threads.
  func variants(threads: [Int], rates: [Int]) -> [Variant] {
    if self == .load { return [Variant(choice: .zipfian)] }
    let choice: Choice = self == .readLatest ? .latest : .zipfian
    var variants = threads.map { Variant(choice: choice, threads: $0) }
    if self == .readOnly { variants.append(Variant(choice: .uniform, namesChoice: true)) }
    if self == .updateHeavy || self == .readMostly {
      variants += rates.map { Variant(choice: choice, threads: threads.max() ?? 1, rate: $0) }
    }
    return variants
  }
}
