import Storage

extension DocumentStore {
  /// Adds a part to every later check, for example for an index. It replaces a part with the same subject.
  package func addIntegrityChecker(_ checker: any IntegrityChecker) {
    checkers.withLock { checkers in
      checkers.removeAll { $0.subject == checker.subject }
      checkers.append(checker)
    }
  }

  /// Removes the part with this subject from later checks.
  package func removeIntegrityChecker(_ subject: String) {
    checkers.withLock { $0.removeAll { $0.subject == subject } }
  }

  /// Checks the engine's file, and if that is sound, documents, blobs and indexes. `others` are additional parts that run last.
  package func check(
    deep: Bool = false, limit: Int = 1_000,
    others: [(subject: String, check: (IntegrityCheck) throws -> Void)] = [],
    progress: @escaping (Int) throws -> Void = { _ in }
  ) throws -> [IntegrityFault] {
    var faults =
      try (context.engine as? any EngineMaintenance)?.checkIntegrity()
      .map { IntegrityFault("engine", $0) } ?? []
    // What a damaged file says of documents is worth nothing, and on LMDB reading it can end the process.
    guard faults.isEmpty else { return Array(faults.prefix(limit)) }
    do {
      faults = try withSnapshot(attempts: 1) { transaction, context in
        let documents = DocumentSnapshot(self, transaction, context, isOfBatch: false)
        defer { documents.end() }
        let check = IntegrityCheck(
          transaction, documents, isDeep: deep, limit: limit, progress: progress)
        do {
          try DocumentCheck(check, context.keyspaces, blobs: blobs).run(self)
          try checkIndexes(check, context)
          for checker in checkers.withLock({ $0 }) {
            try check.part(checker.subject) { try checker.check(check) }
          }
          for other in others { try check.part(other.subject) { try other.check(check) } }
        } catch is IntegrityCheck.LimitReached {}
        return check.faults
      }
    } catch let stopped as IntegrityCheck.Stopped { throw stopped.reason }
    return faults
  }
}
