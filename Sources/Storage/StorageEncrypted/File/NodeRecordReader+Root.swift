import Glibc
import Storage

extension NodeRecordReader {
  /// Reads the root in this reader's transaction.
  func root() throws -> FileState {
    let number = RecordFormat.rootNumber
    guard let record = try record(number), record.count == RootRecord.byteCount,
      let start = record.baseAddress
    else { throw damaged(number, "is missing or has the wrong size") }
    let seal = Seal(start)
    return try withUnsafeTemporaryAllocation(byteCount: RootRecord.payloadBytes, alignment: 16) { payload in
      let bytes = payload.baseAddress.unsafelyUnwrapped
      defer { explicit_bzero(bytes, RootRecord.payloadBytes) }
      let isAuthentic = try cipher.open(
        start + Seal.byteCount, count: RootRecord.payloadBytes, Reference(number: number, seal: seal), .root,
        into: bytes)
      guard isAuthentic else { throw damaged(number, "fails authentication") }
      return try root(UnsafeRawBufferPointer(payload))
    }
  }

  private func root(_ payload: UnsafeRawBufferPointer) throws -> FileState {
    let nextKeyspace = UInt64(littleEndian: payload.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
    let count = UInt32(littleEndian: payload.loadUnaligned(fromByteOffset: 24, as: UInt32.self))
    let byteCount = UInt32(littleEndian: payload.loadUnaligned(fromByteOffset: 28, as: UInt32.self))
    let list = UnsafeRawBufferPointer(rebasing: payload[RootRecord.headerBytes...])
    guard let start = list.baseAddress else { throw damaged(RecordFormat.rootNumber, "is empty") }
    var table: KeyspaceTable?
    var outside: (reference: Reference, count: Int)?
    if byteCount == RootRecord.treeMark {
      let height = Int(list[Reference.byteCount])
      guard (1...TreePath.maximumHeight).contains(height) else {
        throw damaged(RecordFormat.rootNumber, "has an invalid structure")
      }
      table = try directory(Tree(root: Reference(start), height: height, count: Int(count)))
    } else if byteCount <= RootRecord.maximumInlineBytes {
      table = RootRecord.decode(UnsafeRawBufferPointer(rebasing: list[..<Int(byteCount)]), count: Int(count))
    } else {
      outside = (Reference(start), Int(byteCount))
      let value = try large(Reference(start), count: Int(byteCount))
      table = withExtendedLifetime(value) { RootRecord.decode(value.contents, count: Int(count)) }
    }
    guard let table, let nextKeyspace = Int(exactly: nextKeyspace) else {
      throw damaged(RecordFormat.rootNumber, "has an invalid structure")
    }
    return FileState(
      transaction: UInt64(littleEndian: payload.loadUnaligned(as: UInt64.self)),
      nextNumber: UInt64(littleEndian: payload.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
      nextKeyspace: nextKeyspace, table: table, list: outside)
  }

  /// Reads the keyspaces from their tree. Returns nil if they don't match the root.
  private func directory(_ tree: Tree) throws -> KeyspaceTable? {
    var table = KeyspaceTable()
    var isSound = true
    try TreeScan(tree: tree, reader: self, fetch: .entries).run(.all, .ascending) { _, value in
      isSound = value.withUnsafeBytes { value in
        guard let (item, byteCount) = RootRecord.decode(value), byteCount == value.count else { return false }
        return table.add(item)
      }
      return isSound
    }
    guard isSound, table.items.count == tree.count else { return nil }
    table.directory = tree
    return table
  }
}
