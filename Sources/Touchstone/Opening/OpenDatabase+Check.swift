import Documents

extension OpenDatabase {
  /// The check of documents and indexes, and of an encrypted database's files when it is deep.
  func check(
    deep: Bool, limit: Int, onFile: @escaping (FileEntropy) -> Void, progress: @escaping (Int) throws -> Void
  ) throws -> [IntegrityFault] {
    guard deep, isEncrypted else { return try store.check(deep: deep, limit: limit, progress: progress) }
    let search: (IntegrityCheck) throws -> Void = { [self] check in
      // A compaction has files that aren't named yet.
      let files = try whileFilesStay {
        try PlaintextCheck(
          directory: directory, description: description.withLock { $0 }, files: heldFiles, onFile: onFile)
      }
      try files.run(check, store)
    }
    return try heldFiles.using {
      try store.check(
        deep: deep, limit: limit, others: [(PlaintextCheck.subject, search)], progress: progress)
    }
  }
}
