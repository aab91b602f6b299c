import Documents

extension Database {
  /// Looks for faults, beside readers and writers; empty when the database is sound.
  ///
  /// The engine checks its file; then documents, revision trees, changes, bodies kept aside, counts, indexes, and
  /// whether blobs are there with their lengths. `deep` looks into every body and reads every blob as well; and in an
  /// encrypted database, it looks for plaintext in all files of its directory (docs/encryption.md). At most `limit`
  /// faults are found.
  ///
  /// - Parameters:
  ///   - progress: is told now and then how many entries were looked at; what it throws ends the check and is rethrown.
  ///   - onFile: is told of each file of an encrypted database, by a deep check, how random its bytes look.
  public func check(
    deep: Bool = false, limit: Int = 1_000, progress: @escaping (Int) throws -> Void = { _ in },
    onFile: @escaping (FileEntropy) -> Void = { _ in }
  ) throws -> [IntegrityFault] {
    _ = try store
    return try open.check(deep: deep, limit: limit, onFile: onFile, progress: progress)
  }
}
