import CLMDB
import Storage

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
