import Datasets
import Touchstone

extension LoadedDataset {
  /// The ID of a document, as text.
  func idText(_ number: Int) -> String { String(decoding: id(number), as: UTF8.self) }

  /// Saves all documents in one transaction.
  func save(in database: Database) throws {
    try database.inBatch {
      for number in 0..<count { try database.save(idText(number), json: json(number)) }
    }
  }
}
