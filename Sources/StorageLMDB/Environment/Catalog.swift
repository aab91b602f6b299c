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

  /// Returns whether a name is valid: 1 to 64 ASCII letters, digits, `.`, `-` and `_`.
  static func isValid(_ name: String) -> Bool {
    let bytes = name.utf8
    return (1...StorageLimits.maximumKeyspaceNameBytes).contains(bytes.count)
      && bytes.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}

/// The handles by keyspace number: a hash table with open addressing and a power of two as its size, at most
/// half full. Numbers are mostly consecutive, so a lookup is usually one load and one comparison.
struct HandleTable: @unchecked Sendable {
  private struct Slot {
    var number: Int
    var handle: MDB_dbi
  }

  private let slots: UnsafeMutablePointer<Slot>
  private let mask: Int

  /// The table of no keyspaces.
  static let none = HandleTable([])

  init(_ items: some Collection<Catalog.Item>) {
    var capacity = 16
    while capacity < items.count * 2 { capacity *= 2 }
    slots = .allocate(capacity: capacity)
    slots.initialize(repeating: Slot(number: -1, handle: 0), count: capacity)
    mask = capacity - 1
    for item in items {
      var index = item.keyspace.number & mask
      while slots[index].number != -1 { index = (index + 1) & mask }
      slots[index] = Slot(number: item.keyspace.number, handle: item.handle)
    }
  }

  func deallocate() { slots.deallocate() }

  /// Returns the handle of a keyspace, or 0 if there is none. Handle 0 is LMDB's free list and never a
  /// keyspace.
  @inline(__always)
  func handle(of number: Int) -> MDB_dbi {
    var index = number & mask
    while true {
      let slot = slots[index]
      if slot.number == number { return slot.handle }
      if slot.number == -1 { return 0 }
      index = (index + 1) & mask
    }
  }
}

/// The catalog's records in the file.
struct CatalogRecords {
  struct State {
    var version: UInt64
    var nextNumber: UInt64
  }

  let transaction: OpaquePointer
  let handle: MDB_dbi
  let path: String

  /// Returns the catalog's state in this transaction, or nil if the file has none yet.
  func state() throws -> State? {
    let value: UnsafeRawBufferPointer? = try Catalog.stateKey.withBytes { key in
      var key = MDB_val(key)
      var value = MDB_val()
      let result = mdb_get(transaction, handle, &key, &value)
      if result == MDB_NOTFOUND { return nil }
      if result != 0 { throw StorageError.lmdb(result, "the catalog could not be read", path: path) }
      return UnsafeRawBufferPointer(value)
    }
    guard let value else { return nil }
    guard value.count == 20 else {
      throw StorageError(.damaged, "the catalog's state has \(value.count) bytes instead of 20", path: path)
    }
    let format = UInt32(bigEndian: value.loadUnaligned(as: UInt32.self))
    guard format == Catalog.format else {
      throw StorageError(
        .unsupportedVersion, "the catalog has format \(format); this release reads format \(Catalog.format)",
        path: path)
    }
    return State(
      version: UInt64(bigEndian: value.loadUnaligned(fromByteOffset: 4, as: UInt64.self)),
      nextNumber: UInt64(bigEndian: value.loadUnaligned(fromByteOffset: 12, as: UInt64.self)))
  }

  /// Returns all keyspaces of this transaction.
  func keyspaces() throws -> [(name: String, keyspace: Keyspace)] {
    var cursor: OpaquePointer?
    let opened = mdb_cursor_open(transaction, handle, &cursor)
    guard opened == 0, let cursor else {
      throw StorageError.lmdb(opened, "the catalog could not be read", path: path)
    }
    defer { mdb_cursor_close(cursor) }
    var found: [(String, Keyspace)] = []
    var key = MDB_val()
    var value = MDB_val()
    var result = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
    while result == 0 {
      let bytes = UnsafeRawBufferPointer(key)
      // LMDB takes names as C strings.
      guard !bytes.isEmpty, !bytes.contains(0) else {
        throw StorageError(.damaged, "the catalog has a keyspace with an invalid name", path: path)
      }
      let name = String(decoding: bytes, as: UTF8.self)
      if name != Catalog.stateKey { found.append((name, try Self.decode(value, name, path))) }
      result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
    }
    guard result == MDB_NOTFOUND else {
      throw StorageError.lmdb(result, "the catalog could not be read", path: path)
    }
    return found
  }

  private static func decode(_ value: MDB_val, _ name: String, _ path: String) throws -> Keyspace {
    let bytes = UnsafeRawBufferPointer(value)
    guard bytes.count == 9, let shape = KeyspaceShape(rawValue: bytes[8]),
      let number = Int(exactly: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))), number > 0
    else { throw StorageError(.damaged, "the catalog's entry of keyspace \(name) is invalid", path: path) }
    return Keyspace(number: number, shape: shape)
  }

  func put(_ catalog: Catalog) -> Int32 {
    var bytes: [UInt8] = []
    withUnsafeBytes(of: Catalog.format.bigEndian) { bytes += $0 }
    withUnsafeBytes(of: catalog.version.bigEndian) { bytes += $0 }
    withUnsafeBytes(of: UInt64(catalog.nextNumber).bigEndian) { bytes += $0 }
    return put(Catalog.stateKey, bytes)
  }

  func put(_ name: String, _ keyspace: Keyspace) -> Int32 {
    var bytes: [UInt8] = []
    withUnsafeBytes(of: UInt64(keyspace.number).bigEndian) { bytes += $0 }
    return put(name, bytes + [keyspace.shape.rawValue])
  }

  func remove(_ name: String) -> Int32 {
    name.withBytes { key in
      var key = MDB_val(key)
      return mdb_del(transaction, handle, &key, nil)
    }
  }

  private func put(_ name: String, _ bytes: [UInt8]) -> Int32 {
    name.withBytes { key in
      bytes.withUnsafeBytes { value in
        var key = MDB_val(key)
        var value = MDB_val(value)
        return mdb_put(transaction, handle, &key, &value, 0)
      }
    }
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

extension MDB_val {
  @inlinable @inline(__always)
  package init(_ bytes: UnsafeRawBufferPointer) {
    self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }
}

extension UnsafeRawBufferPointer {
  @inlinable @inline(__always)
  package init(_ value: MDB_val) { self.init(start: value.mv_data, count: value.mv_size) }

  /// The bytes of a value that LMDB has found, whose pointer is never null.
  @inlinable @inline(__always)
  package init(found value: MDB_val) {
    self.init(start: value.mv_data.unsafelyUnwrapped, count: value.mv_size)
  }
}

extension String {
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    var copy = self
    return try copy.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
  }
}
