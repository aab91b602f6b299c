import BenchmarkKit
import Datasets
import Touchstone

/// The data that the workloads of the suite `cold` share: one database of each engine, which isn't changed.
final class ColdData: Sendable {
  static let databaseName = "cold"
  static let indexName = "byCity"
  static let query = "SELECT name FROM _ WHERE city = $city"
  static let documentsPerCity = 20
  static let blobBytes = 100_000

  let documents: Int
  let reads: Int
  let queries: Int
  let blobs: Int
  private let context: SuiteContext

  init(_ context: SuiteContext) {
    self.context = context
    documents = context.settings.documents ?? 20_000
    reads = max(10, min(1_000, documents / 10))
    queries = max(2, min(50, documents / 100))
    blobs = max(2, min(50, documents / 100))
  }

  var cities: Int { max(1, documents / ColdData.documentsPerCity) }

  static func city(_ number: Int) -> String { "City \(number)" }

  func open(_ engine: ProbedEngine, in directory: String) throws -> Database {
    try context.open(ColdData.databaseName, engine, in: directory)
  }

  /// A database with documents of about 1,000 bytes. They are saved in random order, so that related
  /// documents are on different pages.
  func filled(_ engine: ProbedEngine) throws -> String {
    try context.filled("cold \(engine.type.name)", open: { try open(engine, in: $0) }) { database in
      var random = SeededRandom(seed: context.settings.seed)
      try database.inBatches(of: 1_000, random.order(documents)) { number in
        try database.save(DocumentsData.id(number), body(number))
      }
      try database.createIndex(ColdData.indexName, on: ["city"])
      for number in 0..<blobs {
        let blob = try database.makeBlob(
          DocumentsData.blob(number, bytes: ColdData.blobBytes), contentType: "application/octet-stream")
        try database.save(ColdData.blobID(number), ["avatar": blob.jsonValue])
      }
    }
  }

  static func blobID(_ number: Int) -> String { "with-blob-\(number)" }

  private func body(_ number: Int) -> DocumentBody {
    var random = SeededRandom(seed: UInt64(number))
    let text = (0..<90).map { _ in String(random.next(), radix: 36).prefix(9) }.joined(separator: " ")
    return [
      "number": .int(Int64(number)), "name": .string("Person \(number)"),
      "city": .string(ColdData.city(number % cities)), "text": .string(text),
    ]
  }
}
