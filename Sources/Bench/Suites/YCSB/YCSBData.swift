import BenchmarkKit
import Datasets
import Touchstone

/// The data that the workloads of a YCSB run share: the documents and their databases.
final class YCSBData: Sendable {
  static let fieldCount = 10
  static let fieldBytes = 100
  static let bodyCount = 512
  static let databaseName = "usertable"

  /// The number of documents that are loaded.
  let documents: Int
  /// The number of operations of a run, by all of its threads.
  let operations: Int
  /// The IDs of all documents that are loaded, or inserted by a run, by their numbers.
  let ids: [String]
  /// For each loaded document, the number of loaded documents from its ID on.
  let remaining: [Int32]
  let fieldNames: [String]
  private let bodies: [[UInt8]]
  private let fields: [String]
  private let context: SuiteContext

  init(_ context: SuiteContext) {
    self.context = context
    let documents = context.settings.documents ?? 10_000
    self.documents = documents
    operations = min(100_000, max(100, documents / 5))
    // A run has fewer inserts than operations.
    ids = (0..<documents + operations).map(YCSBData.id)
    let ids = ids
    let order = (0..<documents).sorted { ids[$0] < ids[$1] }
    var remaining = [Int32](repeating: 0, count: documents)
    for (rank, number) in order.enumerated() { remaining[number] = Int32(documents - rank) }
    self.remaining = remaining
    fieldNames = (0..<YCSBData.fieldCount).map { "field\($0)" }
    var random = SeededRandom(seed: context.settings.seed)
    let letters = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .".utf8)
    func field() -> String {
      let bytes = (0..<YCSBData.fieldBytes).map { _ in letters[random.below(letters.count)] }
      return String(decoding: bytes, as: UTF8.self)
    }
    let names = fieldNames
    bodies = (0..<YCSBData.bodyCount).map { _ in
      let members = names.map { "\"\($0)\":\"\(field())\"" }
      return Array("{\(members.joined(separator: ","))}".utf8)
    }
    fields = (0..<YCSBData.bodyCount).map { _ in field() }
  }

  /// The ID of a document: "user" and the hash of its number. The order of IDs is unrelated to that of
  /// numbers.
  static func id(_ number: Int) -> String { "user\(FNV1a.hash(UInt64(number)).asMagnitude)" }

  /// A body of ten fields, as JSON.
  func body(_ number: Int) -> [UInt8] { bodies[number % YCSBData.bodyCount] }

  /// The value of a field.
  func field(_ number: Int) -> String { fields[number % YCSBData.bodyCount] }

  /// The size of a document in bytes: its ID and its JSON.
  func bytes(_ number: Int) -> Int { ids[number].utf8.count + body(0).count }

  // MARK: Databases

  func open(_ engine: ProbedEngine, in directory: String) throws -> Database {
    try context.open(YCSBData.databaseName, engine, in: directory)
  }

  func load(_ database: Database) throws {
    try database.inBatches(of: YCSBWorkload.loadBatch, 0..<documents) { number in
      try body(number).withUnsafeBytes { _ = try database.save(ids[number], json: $0) }
    }
  }

  /// The directory of a database with all documents. If the run writes, it is a copy.
  func loaded(_ engine: ProbedEngine, _ trial: TrialContext, writes: Bool) throws -> String {
    let fixture = try context.filled(
      "ycsb \(engine.type.name)", open: { try open(engine, in: $0) }, fill: load)
    guard writes else { return fixture }
    try engine.copy(fixture, to: trial.directory)
    return trial.directory
  }
}
