import Documents

extension Database {
  /// Looks for faults, beside readers and writers; empty when the database is sound.
  ///
  /// The engine checks its file; then documents, revision trees, changes, bodies kept aside, counts, indexes, and
  /// whether blobs are there with their lengths. `deep` looks into every body and reads every blob as well. At most
  /// `limit` faults are found. `progress` is told now and then how many entries were looked at; what it throws ends
  /// the check and is rethrown.
  public func check(
    deep: Bool = false, limit: Int = 1_000, progress: @escaping (Int) throws -> Void = { _ in }
  ) throws -> [IntegrityFault] {
    try store.check(deep: deep, limit: limit, progress: progress)
  }
}
