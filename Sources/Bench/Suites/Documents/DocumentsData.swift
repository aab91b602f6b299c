import BenchmarkKit
import Bytes
import Datasets
import Storage
import Touchstone

/// The data that the workloads of the suite `documents` share: sizes, databases, and measurements that one
/// run makes for several rows.
final class DocumentsData: Sendable {
  /// The sizes of the workloads. The defaults suit two cores and a few minutes.
  struct Sizes: Sendable {
    let documents: Int
    let conflicted: Int
    let updates: Int
    let expiring: Int
    let counted: Int
    let readsEach: Int
    let blobs: [(bytes: Int, count: Int)]

    init(documents: Int?) {
      let scale = documents.map { Double($0) / 20_000 } ?? 1
      func scaled(_ count: Int, atLeast least: Int) -> Int { max(least, Int(Double(count) * scale)) }
      self.documents = documents ?? 20_000
      conflicted = scaled(1_000, atLeast: 5)
      updates = min(10_000, scaled(10_000, atLeast: 400) / 100 * 100)
      expiring = scaled(100_000, atLeast: 100)
      counted = scaled(1_000_000, atLeast: 2_000)
      readsEach = scaled(20_000, atLeast: 500)
      blobs = [
        (1_000, scaled(200, atLeast: 5)), (100_000, scaled(50, atLeast: 2)),
        (10_000_000, scaled(4, atLeast: 1)),
      ]
    }

    /// The updates around which times are measured. A tree reaches its full size only at twice the depth
    /// limit.
    func windows(depth: Int) -> [Int] {
      [100] + (depth >= 100 && updates > 2 * depth ? [2 * depth] : []) + [updates]
    }

    /// The number of documents that get such a history. It is small because building a deep tree takes long.
    var historyDocuments: Int { 4 }
  }

  let sizes: Sizes
  private let context: SuiteContext
  /// Measurements for later rows, by engine, round and workload.
  let measured = Lock<[String: [Double]]>([:])

  init(_ context: SuiteContext) {
    self.context = context
    sizes = Sizes(documents: context.settings.documents)
  }

  // MARK: Databases

  static let databaseName = "documents"

  func open(
    _ engine: ProbedEngine, in directory: String, depth: Int = 20,
    cacheBytes: Int = EngineOptions.defaultCacheBytes
  ) throws -> Database {
    try Database.open(
      DocumentsData.databaseName, in: directory,
      options: try context.databaseOptions(engine, cacheBytes: cacheBytes, depth: depth))
  }

  /// The directory of a database that `fill` fills once for all runs.
  func fixture(_ name: String, _ engine: ProbedEngine, _ fill: (Database) throws -> Void) throws -> String {
    try context.filled(
      "documents \(engine.type.name) \(name)", open: { try open(engine, in: $0) }, fill: fill)
  }

  // MARK: What is in them

  static func id(_ number: Int) -> String { "document-\(number)" }

  static func body(_ number: Int, version: Int) -> DocumentBody {
    [
      "type": "hotel", "number": .int(Int64(number)), "version": .int(Int64(version)),
      "name": .string("Hotel \(number % 977) of the Golden Lion"), "city": "Manchester", "vacancy": true,
      "description": "A small house beside the canal with twelve rooms, two of them on the ground floor.",
      "geo": ["lat": 53.4, "lon": -2.2], "public_likes": ["Julius", "Corrine", "Vallie"],
    ]
  }

  func saveAll(_ database: Database, _ count: Int, version: Int = 1) throws {
    try database.inBatch {
      for number in 0..<count {
        try database.save(DocumentsData.id(number), DocumentsData.body(number, version: version))
      }
    }
  }

  /// A revision ID as long as a real one. Equal numbers give equal IDs.
  private static func revision(_ generation: Int, _ number: Int, _ branch: Int) -> String {
    "\(generation)-\(Hex.text(UInt64(number * 1_000 + branch), digits: 40))"
  }

  /// All branches of all documents. Two branches of one document aren't adjacent.
  func stormOfRevisions() -> [PulledRevision] {
    (0..<DocumentsWorkload.branches).flatMap { branch in
      (0..<sizes.conflicted).map { number in
        PulledRevision(
          id: DocumentsData.id(number),
          history: [DocumentsData.revision(2, number, branch), DocumentsData.revision(1, number, 0)],
          body: DocumentsData.body(number, version: branch))
      }
    }
  }

  /// Saves documents as sync does. Every second one is a tombstone.
  func saveHalfTombstones(_ database: Database, _ count: Int) throws {
    for start in stride(from: 0, to: count, by: 50_000) {
      let pulled = (start..<min(start + 50_000, count)).lazy.map { number in
        PulledRevision(
          id: DocumentsData.id(number), history: [DocumentsData.revision(1, number, 0)],
          isDeleted: number % 2 == 1, body: number % 2 == 1 ? [:] : ["number": .int(Int64(number))])
      }
      try database.apply(pulled)
    }
  }

  /// The bytes of a blob. Each number has different bytes.
  static func blob(_ number: Int, bytes: Int) -> [UInt8] {
    var random = SeededRandom(seed: UInt64(number))
    var blob = [UInt8](repeating: 0, count: bytes)
    for index in blob.indices.prefix(4_096) { blob[index] = UInt8(random.below(256)) }
    return blob
  }

  func saveBlobs(_ blobs: [[UInt8]], _ database: Database) throws {
    for (number, bytes) in blobs.enumerated() {
      let blob = try database.makeBlob(bytes, contentType: "application/octet-stream")
      try database.save(DocumentsData.id(number), ["avatar": blob.jsonValue])
    }
  }
}
