import CSQLite
import Storage

extension EngineConnection {
  typealias Reference = (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference
  typealias FollowBody = (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool

  /// Implements `FastReads.follow` from entries to documents. One statement reads the entries, and for each
  /// key the row where it was found the last time.
  func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: Reference, _ body: FollowBody
  ) throws {
    let slot = try slot(of: keyspace)
    let targetSlot = try self.slot(of: target)
    guard let bounds = ScanBounds(range, keyspace.shape) else { return }
    countUse()
    let kind: ScanVariant.Kind = order == .descending ? .descending : .ascending
    let statement = try takeFollow(kind, slot, target)
    state.pointee.lent &+= 1
    defer {
      _ = csqlite_reset(functions, statement)
      giveFollow(statement, kind, slot, target)
      endLending()
    }
    try bounds.bound(to: statement, functions, lower: kind.bindsLower, upper: kind.bindsUpper) {
      try ScanEnd.with(bounds, isDescending: kind == .descending) { end in
        try withoutActuallyEscaping(reference) { reference in
          try withoutActuallyEscaping(body) { body in
            let visit = FollowVisit(self, target, targetSlot, until: end, reference, body)
            let code = visit.run(statement, functions)
            if let error = visit.error { throw error }
            if code != SQLITE_ROW, code != SQLITE_DONE { throw failure(code, statement, slot) }
          }
        }
      }
    }
  }

  private func takeFollow(_ kind: ScanVariant.Kind, _ slot: Slot, _ target: Keyspace) throws
    -> OpaquePointer
  {
    if let statement = slot.pointee.takeFollow(kind, into: target.number, functions) { return statement }
    return try prepare(Self.followSQL(kind, slot.pointee.keyspace, target), slot)
  }

  private func giveFollow(
    _ statement: OpaquePointer, _ kind: ScanVariant.Kind, _ slot: Slot, _ target: Keyspace
  ) {
    if !slot.pointee.giveFollow(statement, kind, into: target.number) {
      _ = csqlite_finalize(functions, statement)
    }
  }

  private static func followSQL(_ kind: ScanVariant.Kind, _ keyspace: Keyspace, _ target: Keyspace) -> String
  {
    let (condition, order) =
      kind == .descending ? ("e.key < ?2", "e.key DESC") : ("e.key >= ?1", "e.key")
    return """
      SELECT 1 FROM \(SQLiteLayout.table(keyspace.number)) AS e
      LEFT JOIN \(SQLiteLayout.table(target.number)) AS d ON d.id = csqlite_refer(e.key, e.value)
      WHERE \(condition) AND csqlite_follow(e.key, e.value, d.key, d.value) ORDER BY \(order)
      """
  }
}
