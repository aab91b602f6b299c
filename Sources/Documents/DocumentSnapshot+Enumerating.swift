import Fleece
import Storage

extension DocumentSnapshot {
  /// Calls `body` with each document that is asked for, in order, until it returns false. The view ends when `body`
  /// returns. Nothing is collected: memory doesn't grow with the number of documents.
  ///
  /// In a batch, a write inside `body` throws `writeInScan`.
  public func enumerate(_ documents: AllDocuments = AllDocuments(), _ body: (DocumentView) throws -> Bool)
    throws
  {
    guard documents.limit > 0 else { return }
    let (transaction, context) = try open()
    let sharedKeys = try store.currentSharedKeys(transaction, context)
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    var left = documents.limit
    var skip = max(0, documents.skip)
    /// False when that is enough.
    func take(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool {
      let record = try DocumentRecord(value)
      if documents.mode == .onlyConflicts, !record.flags.contains(.conflicted) { return true }
      guard skip == 0 else {
        skip -= 1
        return true
      }
      left -= 1
      let view = DocumentView(idBytes: key, bytes: value, record: record, sharedKeys: sharedKeys)
      return try body(view) && left > 0
    }
    let keyspaces = context.keyspaces
    if let keys = documents.keys {
      for id in documents.isDescending ? keys.reversed() : keys {
        let goesOn = try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
          if let found = try transaction.get(key, in: keyspaces.docs) { return try take(key, found) }
          guard documents.mode == .includingDeleted,
            let found = try transaction.get(key, in: keyspaces.deleted)
          else { return true }
          return try take(key, found)
        }
        guard goesOn else { return }
      }
    } else if let range = documents.range {
      if documents.mode == .onlyConflicts, let ids = try conflictedIDs(range, transaction, keyspaces) {
        for id in documents.isDescending ? ids.reversed() : ids {
          let found = try id.withUnsafeBytes { key in
            try transaction.get(key, in: keyspaces.docs).map { try take(key, $0) }
          }
          if found == false { return }
        }
      } else if documents.mode == .includingDeleted, try transaction.count(of: keyspaces.deleted) > 0 {
        try merge(
          transaction.unsafeCursor(in: keyspaces.docs, range),
          transaction.unsafeCursor(in: keyspaces.deleted, range),
          isDescending: documents.isDescending, take)
      } else {
        let order: ScanOrder = documents.isDescending ? .descending : .ascending
        try transaction.unsafeScan(keyspaces.docs, range, order: order, fetch: .entries, take)
      }
    }
  }

  /// The IDs of conflicted documents, in order: from the changes, which have the flags without the bodies. Nil when
  /// there may be so many that the documents themselves are looked through.
  private func conflictedIDs(
    _ range: KeyRange, _ transaction: any ReadTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws -> [[UInt8]]? {
    // Each has at least one leaf besides the current one, whose body is there.
    let limit = try transaction.count(of: keyspaces.conflicts)
    guard limit > 0 else { return [] }
    guard try limit < max(1_000, transaction.count(of: keyspaces.docs) / 8) else { return nil }
    var ids: [[UInt8]] = []
    try transaction.unsafeScan(keyspaces.changes, order: .stored) { _, change in
      guard let flags = change.first else { throw DocumentRecord.damaged }
      if DocumentRecord.Flags(rawValue: flags).contains(.conflicted) {
        let id = UnsafeRawBufferPointer(rebasing: change[1...])
        if range.contains(id) { ids.append(Array(id)) }
      }
      return true
    }
    return ids.sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// The documents that are asked for, to keep.
  public func documents(_ documents: AllDocuments = AllDocuments()) throws -> [Document] {
    var found: [Document] = []
    try enumerate(documents) { view in
      found.append(try view.document())
      return true
    }
    return found
  }

  /// Goes through two cursors in one order.
  private func merge(
    _ first: any UnsafeCursor, _ second: any UnsafeCursor, isDescending: Bool,
    _ take: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    var left = isDescending ? try first.last() : try first.first()
    var right = isDescending ? try second.last() : try second.first()
    while true {
      let takesLeft: Bool
      switch (left, right) {
      case (nil, nil): return
      case (.some, nil): takesLeft = true
      case (nil, .some): takesLeft = false
      case (.some(let left), .some(let right)):
        takesLeft = (compareBytes(left.key, right.key) < 0) != isDescending
      }
      if takesLeft {
        guard let entry = left, try take(entry.key, entry.value) else { return }
        left = isDescending ? try first.previous() : try first.next()
      } else {
        guard let entry = right, try take(entry.key, entry.value) else { return }
        right = isDescending ? try second.previous() : try second.next()
      }
    }
  }
}

extension AllDocuments {
  /// The IDs between start and end; nil when none can be.
  fileprivate var range: KeyRange? {
    func bound(_ id: String?, _ isIn: Bool) -> KeyRange.Bound {
      // Every ID is greater than the empty one.
      guard let id, !id.isEmpty else { return .unbounded }
      return isIn ? .inclusive(Array(id.utf8)) : .exclusive(Array(id.utf8))
    }
    let start = bound(startID, includesStart)
    // Ascending to the empty ID, or descending from it, there is nothing.
    if !isDescending, endID == "" { return nil }
    if isDescending, startID == "" { return nil }
    let end = bound(endID, includesEnd)
    return isDescending ? KeyRange(lower: end, upper: start) : KeyRange(lower: start, upper: end)
  }
}

extension KeyRange {
  fileprivate func contains(_ key: UnsafeRawBufferPointer) -> Bool {
    func order(_ bound: [UInt8]) -> Int { bound.withUnsafeBytes { compareBytes(key, $0) } }
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
