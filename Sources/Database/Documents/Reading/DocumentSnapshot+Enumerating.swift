import Fleece
import Storage

extension DocumentSnapshot {
  /// Calls `body` with each selected document, in order, until it returns false. The view is valid until
  /// `body` returns.
  ///
  /// Documents aren't collected, so memory use doesn't grow with their number. The exception is
  /// `onlyConflicts`, which may collect the IDs of the conflicted documents first. In a batch, a write inside
  /// `body` throws `writeInScan`.
  public func enumerate(_ documents: AllDocuments = AllDocuments(), _ body: (DocumentView) throws -> Bool)
    throws
  {
    guard documents.limit > 0 else { return }
    let (transaction, context) = try open()
    let sharedKeys = try sharedKeys
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    var left = documents.limit
    var skip = max(0, documents.skip)
    /// Returns false when the enumeration should end.
    func take(_ key: RawSpan, _ value: RawSpan) throws -> Bool {
      try cancellation?.check()
      let view = try DocumentView(
        idBytes: key, record: value, sharedKeys: sharedKeys, blobs: store.blobSource)
      if documents.mode == .onlyConflicts, !view.isConflicted { return true }
      guard skip == 0 else {
        skip -= 1
        return true
      }
      left -= 1
      return try body(view) && left > 0
    }
    let keyspaces = context.keyspaces
    if let keys = documents.keys {
      // No document has an invalid ID.
      for id in documents.isDescending ? keys.reversed() : keys where DocumentID.isStorable(id) {
        let goesOn = try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
          let key = key.bytes
          let goesOn = try transaction.withValue(at: key, in: keyspaces.docs) { try take(key, $0) }
          if let goesOn { return goesOn }
          guard documents.mode == .includingDeleted else { return true }
          return try transaction.withValue(at: key, in: keyspaces.deleted) { try take(key, $0) } ?? true
        }
        guard goesOn else { return }
      }
    } else {
      try walk(documents, transaction, context, take)
    }
  }

  /// Calls `take` with the entry of each document in the range of `documents`, in order, until it returns
  /// false. With `onlyConflicts`, it may leave out documents without conflicts.
  func walk(
    _ documents: AllDocuments, _ transaction: any ReadTransaction, _ context: DocumentStore.Context,
    _ take: (RawSpan, RawSpan) throws -> Bool
  ) throws {
    let keyspaces = context.keyspaces
    if let range = documents.range {
      if documents.order == .sequence {
        let order: ScanOrder = documents.isDescending ? .descending : .ascending
        try transaction.scan(keyspaces.changes, order: order) { _, change in
          let change = try StoredChange(change)
          guard range.contains(change.id) else { return true }
          let id = change.id
          let goesOn = try transaction.withValue(at: id, in: keyspaces.docs) { try take(id, $0) }
          if let goesOn { return goesOn }
          guard documents.mode == .includingDeleted else { return true }
          return try transaction.withValue(at: id, in: keyspaces.deleted) { try take(id, $0) } ?? true
        }
      } else if documents.mode == .onlyConflicts, let ids = try conflictedIDs(range, transaction, keyspaces) {
        for id in documents.isDescending ? ids.reversed() : ids {
          let key = id.span.bytes
          if try transaction.withValue(at: key, in: keyspaces.docs, { try take(key, $0) }) == false { return }
        }
      } else if documents.mode == .includingDeleted, try transaction.hasEntries(keyspaces.deleted) {
        try merge(
          transaction.cursor(in: keyspaces.docs, range), transaction.cursor(in: keyspaces.deleted, range),
          isDescending: documents.isDescending, take)
      } else {
        let order: ScanOrder = documents.isDescending ? .descending : .ascending
        try transaction.scan(keyspaces.docs, range, order: order, fetch: .entries, take)
      }
    }
  }

  /// Returns the IDs of conflicted documents, in ascending order. It reads them from the changes, which have
  /// the flags but no bodies. Returns nil when there may be so many that a scan of the documents is better.
  private func conflictedIDs(
    _ range: KeyRange, _ transaction: any ReadTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws -> [[UInt8]]? {
    // Each conflicted document has at least one leaf besides the current one, and that leaf's body is in this
    // keyspace.
    guard try transaction.hasEntries(keyspaces.conflicts) else { return [] }
    let most = try transaction.entryCount(of: keyspaces.conflicts).estimate
    guard try most < max(1_000, transaction.entryCount(of: keyspaces.docs).estimate / 8) else { return nil }
    var ids: [[UInt8]] = []
    try transaction.scan(keyspaces.changes, order: .stored) { _, change in
      let change = try StoredChange(change)
      if change.flags.contains(.conflicted), range.contains(change.id) {
        ids.append([UInt8](copying: change.id))
      }
      return true
    }
    return ids.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// Returns copies of the selected documents.
  public func documents(_ documents: AllDocuments = AllDocuments()) throws -> [Document] {
    var found: [Document] = []
    try enumerate(documents) { view in
      found.append(try view.document())
      return true
    }
    return found
  }

  /// Iterates over two cursors in one common order.
  private func merge(
    _ first: any Cursor, _ second: any Cursor, isDescending: Bool, _ take: (RawSpan, RawSpan) throws -> Bool
  ) throws {
    var hasFirst = isDescending ? try first.last() : try first.first()
    var hasSecond = isDescending ? try second.last() : try second.first()
    while hasFirst || hasSecond {
      var takesFirst = hasFirst
      if hasFirst, hasSecond {
        let order = try first.withEntry { key, _ in try second.withEntry { other, _ in key.compare(other) } }
        takesFirst = (order < 0) != isDescending
      }
      guard try (takesFirst ? first : second).withEntry(take) else { return }
      if takesFirst {
        hasFirst = isDescending ? try first.previous() : try first.next()
      } else {
        hasSecond = isDescending ? try second.previous() : try second.next()
      }
    }
  }
}

extension AllDocuments {
  /// The range between start and end, nil if no ID can be in it.
  fileprivate var range: KeyRange? {
    func bound(_ id: String?, _ isIn: Bool) -> KeyRange.Bound {
      // The empty ID is lower than every ID.
      guard let id, !id.isEmpty else { return .unbounded }
      return isIn ? .inclusive(Array(id.utf8)) : .exclusive(Array(id.utf8))
    }
    let start = bound(startID, includesStart)
    // No ID precedes the empty ID. So ascending to it, or descending from it, gives nothing.
    if !isDescending, endID == "" { return nil }
    if isDescending, startID == "" { return nil }
    let end = bound(endID, includesEnd)
    let range = isDescending ? KeyRange(lower: end, upper: start) : KeyRange(lower: start, upper: end)
    guard let prefix, !prefix.isEmpty else { return range }
    return range.intersection(withPrefix: Array(prefix.utf8))
  }
}

extension KeyRange {
  /// Returns the keys of the range that begin with these bytes, which are UTF-8.
  fileprivate func intersection(withPrefix prefix: [UInt8]) -> KeyRange {
    // No byte of UTF-8 is 0xFF.
    var end = prefix
    end[end.count - 1] += 1
    var range = KeyRange(lower: .inclusive(prefix), upper: .exclusive(end))
    switch lower {
    case .unbounded: break
    case .inclusive(let key), .exclusive(let key):
      // An exclusive bound at the prefix itself is the narrower one.
      if !key.lexicographicallyPrecedes(prefix) { range.lower = lower }
    }
    switch upper {
    case .unbounded: break
    case .inclusive(let key), .exclusive(let key):
      if key.lexicographicallyPrecedes(end) { range.upper = upper }
    }
    return range
  }

  fileprivate func contains(_ key: RawSpan) -> Bool {
    func order(_ bound: [UInt8]) -> Int { key.compare(bound.span.bytes) }
    switch lower {
    case .unbounded: break
    case .inclusive(let bound): if order(bound) < 0 { return false }
    case .exclusive(let bound): if order(bound) <= 0 { return false }
    }
    switch upper {
    case .unbounded: return true
    case .inclusive(let bound): return order(bound) <= 0
    case .exclusive(let bound): return order(bound) < 0
    }
  }
}
