import Foundation
import Query
import Touchstone

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
