import Documents

extension Database {
  /// Compares this database with `other`, regardless of their engines. Calls `report` with each difference,
  /// in the order of document IDs. Returns the number of documents and tombstones compared.
  ///
  /// Two databases are equal if these are equal: documents, tombstones, revision trees, flags, bodies that
  /// are still stored, local documents, expirations, indexes and the bytes of blobs. Sequences are compared
  /// only if `sequences` is true. With `onlyCurrent`, only the current revision of each document and tombstone and its blobs are
  /// compared: what databases that replicate have in common. Each database is read from one snapshot. The memory used doesn't depend on
  /// their sizes. `progress` receives the number of documents compared so far, from time to time. If
  /// `progress` or `report` throws, the comparison ends. Throws `damaged` for data that can't be read.
  @discardableResult
  public func compare(
    with other: Database, sequences: Bool = false, onlyCurrent: Bool = false,
    progress: @escaping (Int) throws -> Void = { _ in },
    report: @escaping (DocumentDifference) throws -> Void
  ) throws -> Int {
    try compareCounting(
      with: other, sequences: sequences, onlyCurrent: onlyCurrent, progress: progress, report: report
    ).documents
  }

  /// The same, with the number of revisions too.
  package func compareCounting(
    with other: Database, sequences: Bool = false, onlyCurrent: Bool = false,
    progress: @escaping (Int) throws -> Void = { _ in },
    report: @escaping (DocumentDifference) throws -> Void
  ) throws -> ComparedCounts {
    try holdingBlobs {
      try other.holdingBlobs {
        try store.compare(
          with: other.store, sequences: sequences, onlyCurrent: onlyCurrent, progress: progress,
          report: report)
      }
    }
  }
}
