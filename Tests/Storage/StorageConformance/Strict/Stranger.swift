import Storage

/// Commits between the write transactions of a `StrictEngine`, without telling anybody: what another process
/// does.
final class Stranger: Sendable {
  private let commitOnce: @Sendable (any StorageEngine) throws -> Void
  private let wrapped: any StorageEngine
  private let second: Lock<Second>

  private struct Second: @unchecked Sendable {
    /// Opens another engine over the same data. Nil once it was called.
    var open: (() throws -> any StorageEngine)?
    var engine: (any StorageEngine)?
  }

  init(
    _ commitOnce: @escaping @Sendable (any StorageEngine) throws -> Void, _ wrapped: any StorageEngine,
    _ open: (() throws -> any StorageEngine)?
  ) {
    self.commitOnce = commitOnce
    self.wrapped = wrapped
    second = Lock(Second(open: open))
  }

  func commit() throws {
    try second.withLock { second in
      if let open = second.open {
        second.open = nil
        // LMDB lets a process open a file only once.
        do { second.engine = try open() } catch let error as StorageError where error.code == .inUse {}
      }
      try commitOnce(second.engine ?? wrapped)
    }
  }

  func close() throws {
    try second.withLock { second in
      try second.engine?.close()
      second.engine = nil
    }
  }
}

extension Strictness {
  /// A stranger that writes something that nobody reads, and removes it again.
  package static let idleStranger: @Sendable (any StorageEngine) throws -> Void = { engine in
    try engine.write { transaction in
      let keyspace = try transaction.createKeyspace("strangers", shape: .entries)
      try transaction.put([0], [1], in: keyspace)
    }
    try engine.write { transaction in
      guard let keyspace = try transaction.keyspace(named: "strangers") else { return }
      try transaction.dropKeyspace(keyspace)
    }
  }
}
