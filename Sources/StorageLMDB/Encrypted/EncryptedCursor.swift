import CLMDB
import Storage

/// A cursor over a range of one tree. It holds the nodes that it stands in.
final class EncryptedCursor: UnsafeCursor {
  private enum Place {
    case beforeFirst
    case onEntry
    case afterLast
  }

  private let tree: Tree
  private let reader: RecordReader
  private let lower: KeyBound
  private let upper: KeyBound
  private let path = TreePath()
  // Read and written in every move; a check of exclusive access costs as much as the rest of one.
  @exclusivity(unchecked) private var place = Place.beforeFirst
  @exclusivity(unchecked) private var value: LargeValue?
  /// Whose cursor it is: one of the two.
  private let owner: EncryptedReadTransaction?
  private let writer: EncryptedWriteTransaction?
  private let keyspace: Keyspace?

  init(_ tree: Tree, _ range: KeyRange, _ reader: RecordReader, owner: EncryptedReadTransaction) {
    self.tree = tree
    self.reader = reader
    self.owner = owner
    writer = nil
    keyspace = nil
    lower = .copying(range.lower)
    upper = .copying(range.upper)
  }

  init(_ keyspace: Keyspace, _ range: KeyRange, _ reader: RecordReader, writer: EncryptedWriteTransaction) {
    tree = Tree()
    self.reader = reader
    self.writer = writer
    self.keyspace = keyspace
    owner = nil
    lower = .copying(range.lower)
    upper = .copying(range.upper)
  }

  deinit {
    lower.deallocate()
    upper.deallocate()
  }

  /// The tree as it is now.
  @inline(__always)
  private func current() throws -> Tree {
    if let writer, let keyspace { return try writer.tree(of: keyspace) }
    precondition(owner?.isOpen ?? false, "a cursor was used after its transaction had ended")
    return tree
  }

  func seek(_ key: UnsafeRawBufferPointer) throws -> Entry? {
    if key.count == 0 || lower.isAbove(MDB_val(key)) { return try first() }
    _ = try path.descend(try current(), to: key, reader)
    guard path.leaf >= 0 else { return leave(.afterLast) }
    if path.index >= path.leafNode.count, try !path.moveToNextLeaf(reader) { return leave(.afterLast) }
    return try arrive(otherwise: .afterLast)
  }

  func first() throws -> Entry? {
    guard try path.moveToFirst(try current(), from: lower, reader) else { return leave(.afterLast) }
    return try arrive(otherwise: .afterLast)
  }

  func last() throws -> Entry? {
    guard try path.moveToLast(try current(), to: upper, reader) else { return leave(.beforeFirst) }
    return try arrive(otherwise: .beforeFirst)
  }

  func next() throws -> Entry? {
    switch place {
    case .beforeFirst: return try first()
    case .afterLast: return nil
    case .onEntry: break
    }
    _ = try current()
    let index = path.index + 1
    path.index = index
    if index >= path.leafNode.count, try !path.moveToNextLeaf(reader) { return leave(.afterLast) }
    return try arrive(otherwise: .afterLast)
  }

  func previous() throws -> Entry? {
    switch place {
    case .beforeFirst: return nil
    case .afterLast: return try last()
    case .onEntry: break
    }
    _ = try current()
    let index = path.index - 1
    path.index = index
    if index < 0, try !path.moveToPreviousLeaf(reader) { return leave(.beforeFirst) }
    return try arrive(otherwise: .beforeFirst)
  }

  private func leave(_ side: Place) -> Entry? {
    place = side
    value = nil
    return nil
  }

  @inline(__always)
  private func arrive(otherwise side: Place) throws -> Entry? {
    guard path.isOnEntry else { return leave(side) }
    let node = path.leafNode
    let index = path.index
    let key = node.leafKey(index)
    if side == .afterLast ? upper.isBelow(MDB_val(key)) : lower.isAbove(MDB_val(key)) { return leave(side) }
    place = .onEntry
    switch node.value(index) {
    case .inline(let bytes): return Entry(key: key, value: bytes)
    case .large(let reference, let count):
      let large = try reader.large(reference, count: count)
      value = large
      return Entry(key: key, value: large.contents)
    }
  }
}
