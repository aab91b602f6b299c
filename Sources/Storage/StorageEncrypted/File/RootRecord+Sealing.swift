import Glibc
import Storage

extension RootRecord {
  /// Encrypts a root into its place. `list` holds the keyspaces, unless a tree holds them.
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
      let directory = state.table.directory
      let byteCount = directory.height > 0 ? treeMark : UInt32(list.count)
      start.storeBytes(of: byteCount.littleEndian, toByteOffset: 28, as: UInt32.self)
      if directory.height > 0 {
        directory.root.write(to: start + headerBytes)
        start.storeBytes(
          of: UInt8(directory.height), toByteOffset: headerBytes + Reference.byteCount, as: UInt8.self)
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
