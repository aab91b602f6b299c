import Documents

extension OpenDatabase {
  /// Checks documents, indexes and views. A deep check of an encrypted database also checks its files.
  func check(
    deep: Bool, limit: Int, onFile: @escaping (FileEntropy) -> Void, progress: @escaping (Int) throws -> Void
  ) throws -> [IntegrityFault] {
    let views: (subject: String, check: (IntegrityCheck) throws -> Void) = (
      "views", { [self] in try self.views.check($0) }
    )
    guard deep, isEncrypted else {
      return try store.check(deep: deep, limit: limit, others: [views], progress: progress)
    }
    let search: (IntegrityCheck) throws -> Void = { [self] check in
      // A compaction makes files that `database.json` doesn't name yet.
      let files = try whileFilesStay {
        try PlaintextCheck(
          directory: directory, description: description.withLock { $0 }, files: heldFiles, onFile: onFile)
      }
      try files.run(check, store)
    }
    return try heldFiles.using {
      try store.check(
        deep: deep, limit: limit, others: [views, (PlaintextCheck.subject, search)], progress: progress)
    }
  }
}
