import Documents

extension Database {
  /// How often `update` reads and saves in transactions of their own before it does both in one.
  private static let separateAttempts = 3

  /// Reads a value, changes it and saves it, until no other write comes in between.
  ///
  /// The last attempt is one write transaction, so nobody can come in between. `save` throws `conflict` if the
  /// document was changed since it was read.
  func update<Value, Result>(
    _ id: String, attempts: Int, read: () throws -> Value, _ change: (inout Value) throws -> Void,
    save: (inout Value) throws -> Result
  ) throws -> Result {
    /// Returns nil if another write came first.
    func attempt() throws -> Result? {
      var value = try read()
      try change(&value)
      do { return try save(&value) } catch let error as DocumentError where error.code == .conflict {
        return nil
      }
    }
    func last() throws -> Result {
      if let result = try attempt() { return result }
      throw DocumentError(
        .conflict, "the closure that changes the document has also saved it, so its change wasn't saved",
        documentID: id)
    }
    let store = try writable
    let more = max(1, attempts) - 1
    for _ in 0..<(store.isInBatch ? more : min(more, Self.separateAttempts)) {
      if let result = try attempt() { return result }
    }
    return try store.isInBatch ? last() : store.inBatch { try last() }
  }
}
