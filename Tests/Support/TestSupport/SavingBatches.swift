import Touchstone

extension Database {
  /// Saves a document for each number, all in one batch.
  package func saveBatch(
    _ numbers: some Sequence<Int>, _ document: (Int) throws -> (id: String, body: DocumentBody)
  ) throws {
    try inBatch {
      for number in numbers {
        let (id, body) = try document(number)
        try save(id, body)
      }
    }
  }
}
