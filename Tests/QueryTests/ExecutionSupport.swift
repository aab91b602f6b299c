import Foundation
import Query
import Touchstone

/// The engines that queries are tested on.
let executionEngines: [EngineName] = [.sqlite, .lmdb, .sqlcipher, .sqlcipherPlain, .lmdbEncrypted]

/// A database in a directory of its own, closed and removed at the end.
func withQueryDatabase(_ engine: EngineName, _ body: (Database) throws -> Void) throws {
  let path = NSTemporaryDirectory() + "touchstone-query-" + UUID().uuidString
  try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(atPath: path) }
  var options = DatabaseOptions(engine: engine, durability: .none)
  if try Engines.type(engine).encrypts { options.key = try .raw([UInt8](repeating: 7, count: 32)) }
  let database = try Database.open("test", in: path, options: options)
  try body(database)
  try database.close()
}

extension Database {
  /// Saves documents of JSON by their IDs.
  func fill(_ documents: [(String, String)]) throws {
    try inBatch {
      for (id, json) in documents { try save(id, .json(Array(json.utf8))) }
    }
  }

  /// The rows of a query as JSON.
  func rows(_ text: String, _ parameters: [String: JSONValue] = [:], usesIndexes: Bool = true) throws
    -> [String]
  {
    try query(text, options: .init(usesIndexes: usesIndexes)).run(parameters).map { try $0.json() }
  }
}

/// A reproducible source of random numbers (SplitMix64).
struct ExecutionGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
