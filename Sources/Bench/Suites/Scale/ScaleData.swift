import BenchmarkKit
import Datasets
import Storage
import Touchstone

/// The data that the workloads of the suite `scale` share: databases of each size, and the numbers of
/// operations, which are the same at every size.
struct ScaleData: Sendable {
  /// The documents that a run inserts.
  let inserts: Int
  /// The documents that a run reads.
  let reads: Int
  /// The indexed queries of a run.
  let queries: Int
  /// The opens of a run.
  static let opens = 10
  /// Documents per transaction of a run that inserts.
  static let insertBatch = 100
  /// One of this many documents is updated before a compaction.
  static let updateEvery = 10

  private let context: SuiteContext

  init(_ context: SuiteContext, largest: Int) {
    self.context = context
    inserts = max(200, min(5_000, largest / 20))
    reads = max(500, min(20_000, largest))
    queries = max(5, min(200, largest / 100))
  }

  /// The queries without an index in a run. There are more if one is short.
  static func scans(size: Int) -> Int { max(1, min(20, 100_000 / size)) }

  func open(_ engine: ProbedEngine, in directory: String) throws -> Database {
    try context.open("scale", engine, in: directory)
  }

  /// The directory of a database with `size` documents and an index on the city.
  func filled(_ engine: ProbedEngine, size: Int) throws -> String {
    try context.filled("scale \(engine.type.name) \(size)", open: { try open(engine, in: $0) }) { database in
      try ScaleData.save(database, 0..<size, version: 1, batch: 10_000)
      try database.createIndex("city", on: ["city"])
    }
  }

  /// Saves documents in transactions of `batch`.
  static func save(_ database: Database, _ numbers: Range<Int>, every step: Int = 1, version: Int, batch: Int)
    throws
  {
    var number = numbers.lowerBound
    while number < numbers.upperBound {
      try database.inBatch {
        for _ in 0..<batch where number < numbers.upperBound {
          try HotelDocument.json(number, version: version).withUnsafeBytes {
            _ = try database.save(HotelDocument.id(number), json: $0)
          }
          number += step
        }
      }
    }
  }
}
