import Documents

extension Database {
  /// Checks the database for faults and returns them; empty if the database is sound. Readers and writers can
  /// go on.
  ///
  /// The engine checks its file first. If that finds faults, the check ends. Then documents, revision trees, changes, separately stored bodies,
  /// counts and indexes are checked, and that blobs exist with the right lengths. `deep` also reads every
  /// body and every blob. In an encrypted database, `deep` also searches all files of the directory for
  /// plaintext (docs/encryption.md). The check reports at most `limit` faults.
  ///
  /// - Parameters:
  ///   - deep: whether bodies and blobs are read too.
  ///   - limit: the maximum number of faults to report.
  ///   - progress: receives the number of entries checked so far, from time to time. If it throws, the check
  ///     ends and rethrows the error.
  ///   - onFile: receives the entropy of each file, in a deep check of an encrypted database.
  public func check(
    deep: Bool = false, limit: Int = 1_000, progress: @escaping (Int) throws -> Void = { _ in },
    onFile: @escaping (FileEntropy) -> Void = { _ in }
  ) throws -> [IntegrityFault] {
    _ = try store
    return try open.check(deep: deep, limit: limit, onFile: onFile, progress: progress)
  }
}
