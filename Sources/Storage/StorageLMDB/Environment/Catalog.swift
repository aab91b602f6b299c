// The catalog: the keyspaces of a file. It is a named database beside theirs. No keyspace can have its name.
// Each keyspace is the named database of the same name.
//
//   catalog    := "@state" → state, (name → entry)*
//   state      := format:u32 version:u64 nextNumber:u64      big-endian; format is 1
//   entry      := number:u64 shape:u8                        big-endian
//
// `version` counts the changes of the catalog. A snapshot needs one read to find out whether it has a catalog
// that is already known. A dropped keyspace leaves its emptied named database behind (a husk), but no entry.
// Older snapshots still read the husk. A new keyspace of the same name reuses it.

import CLMDB
import Glibc
import Storage

/// The keyspaces of one state of the file, with this process's handles. Immutable.
final class Catalog: Sendable {
  static let databaseName = "@catalog"
  static let stateKey = "@state"
  static let format: UInt32 = 1

  struct Item: Sendable {
    let name: String
    let keyspace: Keyspace
    let handle: MDB_dbi
  }

  let version: UInt64
  let nextNumber: Int
  let items: [String: Item]
  /// The handles by keyspace number, for hot paths. Valid as long as this object.
  let table: HandleTable

  init(version: UInt64, nextNumber: Int, items: [String: Item]) {
    self.version = version
    self.nextNumber = nextNumber
    self.items = items
    table = HandleTable(items.values)
  }

  deinit { table.deallocate() }

  func adding(_ name: String, shape: KeyspaceShape, handle: MDB_dbi) -> Catalog {
    var items = items
    items[name] = Item(name: name, keyspace: Keyspace(number: nextNumber, shape: shape), handle: handle)
    return Catalog(version: version + 1, nextNumber: nextNumber + 1, items: items)
  }

  func removing(_ name: String) -> Catalog {
    var items = items
    items[name] = nil
    return Catalog(version: version + 1, nextNumber: nextNumber, items: items)
  }
}

extension Keyspace {
  /// Returns whether a key is valid in this keyspace.
  @inlinable @inline(__always)
  package func takes(_ key: UnsafeRawBufferPointer) -> Bool {
    if key.count == 0 || key.count > StorageLimits.maximumKeyBytes { return false }
    return shape != .sequences || (key.count == 8 && key[0] < 0x80)
  }
}
