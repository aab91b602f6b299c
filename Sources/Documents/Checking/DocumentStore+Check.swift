import Storage

extension DocumentStore {
  /// Makes a part of every later check: an index, or what else is kept beside the documents. One of the same
  /// subject is replaced.
  public func addIntegrityChecker(_ checker: any IntegrityChecker) {
    checkers.withLock { checkers in
      checkers.removeAll { $0.subject == checker.subject }
      checkers.append(checker)
    }
  }

  /// Takes the part of that subject out of later checks.
  public func removeIntegrityChecker(_ subject: String) {
    checkers.withLock { $0.removeAll { $0.subject == subject } }
  }

  /// Looks for faults in one snapshot, beside writers: the engine's file with the engine's own check, then documents,
  /// revision trees, changes, bodies kept aside, counts, blobs by their lengths, and what was added. `deep` also
  /// looks at every checksum, into every body, and reads every blob. Empty when all is sound.
  ///
  /// At most `limit` faults are found. `others` are parts of this check alone, at its end. `progress` is called with the number of entries looked at now and then; what it
  /// throws ends the check and is rethrown.
  public func check(
    deep: Bool = false, limit: Int = 1_000,
    others: [(subject: String, check: (IntegrityCheck) throws -> Void)] = [],
    progress: @escaping (Int) throws -> Void = { _ in }
  ) throws -> [IntegrityFault] {
    var faults =
      try (context.engine as? any EngineMaintenance)?.checkIntegrity()
      .map { IntegrityFault("engine", $0) } ?? []
    guard faults.count < limit else { return Array(faults.prefix(limit)) }
    do {
      faults += try withSnapshot(attempts: 1) { transaction, context in
        let documents = DocumentSnapshot(self, transaction, context, isOfBatch: false)
        defer { documents.end() }
        let check = IntegrityCheck(
          transaction, documents, isDeep: deep, limit: limit - faults.count, progress: progress)
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
