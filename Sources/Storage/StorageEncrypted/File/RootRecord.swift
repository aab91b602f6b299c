// Record 1, the root. Each commit writes it again. It is short enough for a leaf of LMDB.
//
//   root      := seal ciphertext tag
//   plaintext := transaction:u64 nextNumber:u64 nextKeyspace:u64 keyspaces:u32 byteCount:u32 list zeros
//   list      := keyspace*                        when they fit
//              | reference height:u8              byteCount is all ones: of the tree that holds them, when they don't
//              | reference                        of a value in chunks that holds them: as older releases wrote it
//   keyspace  := number:u64 shape:u8 height:u8 nameBytes:u8 count:u64 large:u64 root:reference name
//
// In the tree, the key of a keyspace is its number, big-endian, and the value is the keyspace. A commit
// writes only the changed parts of the tree, however many keyspaces there are.
//
// `transaction` counts the commits. `nextNumber` is the number of the next record. `nextKeyspace` is the
// number of the next keyspace.

import Storage

enum RootRecord {
  /// The size of the whole record, in bytes. LMDB stores up to 2,022 bytes in a leaf.
  static let byteCount = 1_984
  /// The plaintext size of the record.
  static let payloadBytes = byteCount - Seal.byteCount - RecordFormat.tagBytes
  static let headerBytes = 32
  static let maximumInlineBytes = payloadBytes - headerBytes
  private static let itemBytes = 27 + Reference.byteCount

  /// The `byteCount` of a root whose keyspaces are in a tree.
  static let treeMark = UInt32.max
  /// The maximum number of keyspaces that can fit into the root, whatever their names are.
  static let maximumInlineKeyspaces = maximumInlineBytes / (itemBytes + 1)

  static func encode(_ table: KeyspaceTable) -> [UInt8] { table.items.flatMap { encode($0) } }

  static func encode(_ item: KeyspaceTable.Item) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: itemBytes)
    bytes.withUnsafeMutableBytes { fixed in
      fixed.storeBytes(of: UInt64(item.keyspace.number).littleEndian, toByteOffset: 0, as: UInt64.self)
      fixed[8] = item.keyspace.shape.rawValue
      fixed[9] = UInt8(item.tree.height)
      fixed[10] = UInt8(item.name.utf8.count)
      fixed.storeBytes(of: UInt64(item.tree.count).littleEndian, toByteOffset: 11, as: UInt64.self)
      fixed.storeBytes(of: UInt64(item.tree.large).littleEndian, toByteOffset: 19, as: UInt64.self)
      if let start = fixed.baseAddress { item.tree.root.write(to: start + 27) }
    }
    return bytes + item.name.utf8
  }

  /// Returns the keyspaces of a list, or nil if the list is invalid.
  static func decode(_ list: UnsafeRawBufferPointer, count: Int) -> KeyspaceTable? {
    var table = KeyspaceTable()
    var offset = 0
    for _ in 0..<count {
      guard offset <= list.count,
        let (item, size) = decode(UnsafeRawBufferPointer(rebasing: list[offset...])), table.add(item)
      else { return nil }
      offset += size
    }
    return table
  }

  /// Returns the keyspace at the start of some bytes and its size, or nil if the bytes are invalid.
  static func decode(_ list: UnsafeRawBufferPointer) -> (item: KeyspaceTable.Item, byteCount: Int)? {
    guard list.count >= itemBytes, let start = list.baseAddress else { return nil }
    let byteCount = itemBytes + Int(list[10])
    let number = UInt64(littleEndian: start.loadUnaligned(as: UInt64.self))
    let entries = UInt64(littleEndian: start.loadUnaligned(fromByteOffset: 11, as: UInt64.self))
    let large = UInt64(littleEndian: start.loadUnaligned(fromByteOffset: 19, as: UInt64.self))
    guard byteCount <= list.count, let shape = KeyspaceShape(rawValue: list[8]),
      let number = Int(exactly: number), let entries = Int(exactly: entries), let large = Int(exactly: large),
      Int(list[9]) <= TreePath.maximumHeight
    else { return nil }
    let name = UnsafeRawBufferPointer(rebasing: list[itemBytes..<byteCount])
    let tree = Tree(root: Reference(start + 27), height: Int(list[9]), count: entries, large: large)
    let keyspace = Keyspace(number: number, shape: shape)
    return (
      KeyspaceTable.Item(name: String(decoding: name, as: UTF8.self), keyspace: keyspace, tree: tree),
      byteCount
    )
  }
}
