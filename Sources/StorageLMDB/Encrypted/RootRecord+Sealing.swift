import Glibc
import Storage

extension RootRecord {
  /// Encrypts a root into its place. `list` holds the keyspaces, or the reference of the value that does.
  static func write(
    _ state: FileState, list: [UInt8], to place: UnsafeMutableRawPointer, _ cipher: RecordCipher,
    _ sealer: Sealer
  ) throws {
    let seal = try sealer.take()
    try withUnsafeTemporaryAllocation(byteCount: payloadBytes, alignment: 16) { payload in
      let start = payload.baseAddress.unsafelyUnwrapped
      memset(start, 0, payloadBytes)
      start.storeBytes(of: state.transaction.littleEndian, as: UInt64.self)
      start.storeBytes(of: state.nextNumber.littleEndian, toByteOffset: 8, as: UInt64.self)
      start.storeBytes(of: UInt64(state.nextKeyspace).littleEndian, toByteOffset: 16, as: UInt64.self)
      start.storeBytes(of: UInt32(state.table.items.count).littleEndian, toByteOffset: 24, as: UInt32.self)
      let byteCount = state.list?.count ?? list.count
      start.storeBytes(of: UInt32(byteCount).littleEndian, toByteOffset: 28, as: UInt32.self)
      if let reference = state.list?.reference {
        reference.write(to: start + headerBytes)
      } else {
        list.withUnsafeBytes { list in
          if let from = list.baseAddress { memcpy(start + headerBytes, from, list.count) }
        }
      }
      seal.write(to: place)
      try cipher.seal(
        start, count: payloadBytes, Reference(number: RecordFormat.rootNumber, seal: seal), .root,
        into: place + Seal.byteCount)
      explicit_bzero(start, payloadBytes)
    }
  }
}

extension RecordReader {
  /// Reads the root of this reader's transaction.
  func root() throws -> FileState {
    let number = RecordFormat.rootNumber
    guard let record = try record(number), record.count == RootRecord.byteCount,
      let start = record.baseAddress
    else { throw damaged(number, "is missing, or has another size") }
    let seal = Seal(start)
    return try withUnsafeTemporaryAllocation(byteCount: RootRecord.payloadBytes, alignment: 16) { payload in
      let bytes = payload.baseAddress.unsafelyUnwrapped
      defer { explicit_bzero(bytes, RootRecord.payloadBytes) }
      let isAuthentic = try cipher.open(
        start + Seal.byteCount, count: RootRecord.payloadBytes, Reference(number: number, seal: seal), .root,
        into: bytes)
      guard isAuthentic else { throw damaged(number, "isn't what was written") }
      return try root(UnsafeRawBufferPointer(payload))
    }
  }

  private func root(_ payload: UnsafeRawBufferPointer) throws -> FileState {
    let nextKeyspace = UInt64(littleEndian: payload.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
    let count = UInt32(littleEndian: payload.loadUnaligned(fromByteOffset: 24, as: UInt32.self))
    let byteCount = Int(UInt32(littleEndian: payload.loadUnaligned(fromByteOffset: 28, as: UInt32.self)))
    let list = UnsafeRawBufferPointer(rebasing: payload[RootRecord.headerBytes...])
    var table: KeyspaceTable?
    var outside: (reference: Reference, count: Int)?
    if byteCount <= RootRecord.maximumInlineBytes {
      table = RootRecord.decode(UnsafeRawBufferPointer(rebasing: list[..<byteCount]), count: Int(count))
    } else if let start = list.baseAddress {
      let reference = Reference(start)
      outside = (reference, byteCount)
      table = RootRecord.decode(try large(reference, count: byteCount).contents, count: Int(count))
    }
    guard let table, let nextKeyspace = Int(exactly: nextKeyspace) else {
      throw damaged(RecordFormat.rootNumber, "has no sound structure")
    }
    return FileState(
      transaction: UInt64(littleEndian: payload.loadUnaligned(as: UInt64.self)),
      nextNumber: UInt64(littleEndian: payload.loadUnaligned(fromByteOffset: 8, as: UInt64.self)),
      nextKeyspace: nextKeyspace, table: table, list: outside)
  }
}
