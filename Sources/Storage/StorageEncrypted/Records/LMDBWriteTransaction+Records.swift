import CLMDB
import Storage
import StorageLMDB

extension LMDBWriteTransaction {
  /// Reserves `count` bytes for a record. Fill them before the next write.
  func reserve(_ number: UInt64, _ count: Int, in records: Keyspace) throws -> UnsafeMutableRawPointer {
    var value = MDB_val(mv_size: count, mv_data: nil)
    let result = try withKey(number, records) { handle, key in
      mdb_put(transaction, handle, &key, &value, UInt32(MDB_RESERVE))
    }
    guard result == 0, let place = value.mv_data else {
      throw failed(result, "a record could not be written")
    }
    hasWritten = true
    return place
  }

  /// Removes a record. A missing record isn't an error.
  func remove(_ number: UInt64, in records: Keyspace) throws {
    let result = try withKey(number, records) { handle, key in mdb_del(transaction, handle, &key, nil) }
    if result == 0 { hasWritten = true }
    if result != 0, result != MDB_NOTFOUND { throw failed(result, "a record could not be removed") }
  }

  @inline(__always)
  private func withKey<Result>(
    _ number: UInt64, _ records: Keyspace, _ body: (MDB_dbi, inout MDB_val) throws -> Result
  ) throws -> Result {
    let handle = try database(of: records)
    var bigEndian = number.bigEndian
    return try withUnsafeMutableBytes(of: &bigEndian) { bytes in
      var key = MDB_val(UnsafeRawBufferPointer(bytes))
      return try body(handle, &key)
    }
  }
}
