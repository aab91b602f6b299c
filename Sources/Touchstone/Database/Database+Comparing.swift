import Documents

extension Database {
  /// Compares everything in this database with what is in `other`, whatever their engines, and calls `report` with
  /// each difference in the order of the documents' IDs; says how many documents and tombstones were compared.
  ///
  /// Equal are databases with the same documents, tombstones, revision trees, flags, bodies that are still here, local
  /// documents, expirations, indexes, and blobs, whose bytes are read; sequences count only when asked for. Both are
  /// read from one snapshot each; memory doesn't grow with them. `progress` is called now and then with the number of
  /// documents so far; what it or `report` throws ends the comparison. Throws `damaged` for what can't be read.
  @discardableResult
  public func compare(
    with other: Database, sequences: Bool = false, progress: @escaping (Int) throws -> Void = { _ in },
    report: @escaping (DocumentDifference) throws -> Void
  ) throws -> Int {
    try store.compare(with: other.store, sequences: sequences, progress: progress, report: report)
  }
}
