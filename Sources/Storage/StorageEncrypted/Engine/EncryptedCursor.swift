import CLMDB
import Storage
import StorageLMDB

/// A cursor over a range of one tree. It holds the nodes of its path.
final class EncryptedCursor: Cursor {
  private enum Place {
    case beforeFirst
    case onEntry
    case afterLast
  }

  private let owner: EncryptedTransaction
  private let keyspace: Keyspace
  private let lower: KeyBound
  private let upper: KeyBound
  private let path = TreePath()
  // Read and written in every move. A check of exclusive access would cost as much as the rest of the move.
  @exclusivity(unchecked) private var place = Place.beforeFirst
  /// The value of the current entry, if it is large and was read.
  @exclusivity(unchecked) private var large: LargeValue?
  /// The number of closures that its entry is lent to.
  @exclusivity(unchecked) private var lent = 0
  /// The transaction's count of writes when the cursor was placed.
  @exclusivity(unchecked) private var writes: Int

  init(_ keyspace: Keyspace, _ range: KeyRange, _ owner: EncryptedTransaction) {
    self.owner = owner
    self.keyspace = keyspace
    writes = owner.writes
    lower = .copying(range.lower)
    upper = .copying(range.upper)
  }

  deinit {
    lower.deallocate()
    upper.deallocate()
  }

  private var reader: NodeRecordReader { owner.reader }

  // MARK: Moving

  func seek(_ key: RawSpan) throws -> Bool {
    let tree = try beginPlacing()
    return try key.withUnsafeBytes { key in
      if key.count == 0 || lower.isAbove(MDB_val(key)) { return try moveToFirst(tree) }
      _ = try path.descend(tree, to: key, reader)
      guard path.leaf >= 0 else { return leave(.afterLast) }
      if path.index >= path.leafNode.count, try !path.moveToNextLeaf(reader) { return leave(.afterLast) }
      return arrive(otherwise: .afterLast)
    }
  }

  func first() throws -> Bool { try moveToFirst(beginPlacing()) }

  func last() throws -> Bool { try moveToLast(beginPlacing()) }

  func next() throws -> Bool {
    let tree = try beginMove()
    switch place {
    case .beforeFirst: return try moveToFirst(tree)
    case .afterLast: return false
    case .onEntry: break
    }
    // If the read fails, the cursor stands on no entry.
    place = .afterLast
    let index = path.index + 1
    path.index = index
    if index >= path.leafNode.count, try !path.moveToNextLeaf(reader) { return leave(.afterLast) }
    return arrive(otherwise: .afterLast)
  }

  func previous() throws -> Bool {
    let tree = try beginMove()
    switch place {
    case .beforeFirst: return false
    case .afterLast: return try moveToLast(tree)
    case .onEntry: break
    }
    place = .beforeFirst
    let index = path.index - 1
    path.index = index
    if index < 0, try !path.moveToPreviousLeaf(reader) { return leave(.beforeFirst) }
    return arrive(otherwise: .beforeFirst)
  }

  private func moveToFirst(_ tree: Tree) throws -> Bool {
    guard try path.moveToFirst(tree, from: lower, reader) else { return leave(.afterLast) }
    return arrive(otherwise: .afterLast)
  }

  private func moveToLast(_ tree: Tree) throws -> Bool {
    guard try path.moveToLast(tree, to: upper, reader) else { return leave(.beforeFirst) }
    return arrive(otherwise: .beforeFirst)
  }

  private func leave(_ side: Place) -> Bool {
    place = side
    return false
  }

  @inline(__always)
  private func arrive(otherwise side: Place) -> Bool {
    guard path.isOnEntry else { return leave(side) }
    let key = MDB_val(path.leafNode.leafKey(path.index))
    if side == .afterLast ? upper.isBelow(key) : lower.isAbove(key) { return leave(side) }
    place = .onEntry
    return true
  }

  // MARK: Lending

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    try owner.checkOpen()
    guard place == .onEntry, writes == owner.writes else { throw notOnEntry() }
    let node = path.leafNode
    let index = path.index
    lent &+= 1
    owner.beginLending()
    defer {
      lent &-= 1
      owner.endLending()
    }
    let key = node.leafKey(index)
    switch node.value(index) {
    case .inline(let value): try withExtendedLifetime(node) { try body(key.bytes, value.bytes) }
    case .large(let reference, let count):
      let value = try large ?? reader.large(reference, count: count)
      large = value
      try withExtendedLifetime((node, value)) { try body(key.bytes, value.contents.bytes) }
    }
  }

  // MARK: Checks

  /// Checks a move that doesn't depend on the current position. Returns the current tree.
  @inline(__always)
  private func beginPlacing() throws -> Tree {
    let tree = try owner.tree(of: keyspace)
    if lent > 0 { throw owner.lentBytes("a move of a cursor") }
    writes = owner.writes
    large = nil
    place = .beforeFirst
    return tree
  }

  /// Checks a move that starts from the current position.
  @inline(__always)
  private func beginMove() throws -> Tree {
    let tree = try owner.tree(of: keyspace)
    if lent > 0 { throw owner.lentBytes("a move of a cursor") }
    guard writes == owner.writes else { throw notOnEntry() }
    large = nil
    return tree
  }

  @inline(never)
  private func notOnEntry() -> StorageError {
    owner.file.error(.notOnEntry, "the cursor is on no entry; place it with seek, first or last")
  }
}
