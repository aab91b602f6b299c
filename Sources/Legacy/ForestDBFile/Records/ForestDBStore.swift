// The record that a header names lists the stores, also called key-value instances. Its key is KV_header and a zero
// byte. Its body:
//
//   u64 number of stores     u64 next number
//   for each store: u16 length of the name, with its zero byte     the name
//                   u64 number     u64 last sequence     u64 × 6 (not used)
//
// The default store has the number 0 and isn't listed. Keys begin with the number of their store, 8 bytes.

/// A store of a file: keys and values with sequences of their own.
package struct ForestDBStore: Sendable, Hashable {
  /// The name, `default` for the default store.
  package let name: String
  let number: UInt64
  /// The sequence of the last committed change.
  package let lastSequence: UInt64

  static let maximumCount = 10_000

  /// Reads the list.
  static func list(_ reader: RecordReader, _ header: ForestDBHeader) throws -> [ForestDBStore] {
    func damaged(_ message: String) -> ForestDBError {
      ForestDBError(
        .damaged, "the list of stores is damaged (\(message))", path: reader.file.path,
        offset: header.storeList)
    }
    guard header.storeList != nowhere else {
      throw ForestDBError(
        .foreign, "the file has no stores, so Couchbase Lite didn't write it", path: reader.file.path,
        offset: UInt64(header.block) * UInt64(BlockFile.blockBytes))
    }
    switch try reader.read(at: header.storeList) {
    case .record: break
    case .damaged(let message): throw damaged(message)
    default: throw damaged("there is no record")
    }
    guard reader.flags.contains(.system), reader.key.elementsEqual("KV_header\0".utf8) else {
      throw damaged("there is another record")
    }
    guard let body = reader.body(), let bytes = body.baseAddress, body.count >= 16 else {
      throw damaged("its body can't be read")
    }
    let count: UInt64 = bytes.integer(0)
    guard count <= maximumCount else { throw damaged("it has \(count) stores") }
    var stores = [ForestDBStore(name: "default", number: 0, lastSequence: header.lastSequence)]
    var offset = 16
    for _ in 0..<count {
      guard offset + 2 <= body.count else { throw damaged("it ends early") }
      let length = Int(bytes.integer(offset, as: UInt16.self))
      let end = offset + 2 + length
      guard end + 64 <= body.count else { throw damaged("it ends early") }
      let name = body[(offset + 2)..<end].prefix { $0 != 0 }
      let number: UInt64 = bytes.integer(end)
      guard !stores.contains(where: { $0.number == number }) else {
        throw damaged("two stores have one number")
      }
      stores.append(
        ForestDBStore(
          name: String(decoding: name, as: UTF8.self), number: number, lastSequence: bytes.integer(end + 8)))
      offset = end + 64
    }
    return stores
  }
}
