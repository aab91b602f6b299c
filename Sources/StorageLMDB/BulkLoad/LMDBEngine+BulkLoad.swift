import CLMDB
import Glibc
import Storage

extension LMDBEngine: BulkLoadingEngine {
  /// `BulkLoadingEngine.bulkLoad`.
  ///
  /// Pages go behind those that the file has, then the records of the trees, where they are, and the number of the last
  /// page into the meta page. LMDB finds them when a transaction begins, as it finds another process's commit.
  public func bulkLoad(_ body: (any BulkLoad) throws -> Void) throws -> Bool {
    try environment.checkProcess()
    guard isBulkLoad, !isReadOnly else { return false }
    return try queue.exclusively { try load(body) }
  }

  private func load(_ body: (any BulkLoad) throws -> Void) throws -> Bool {
    let snapshot = try environment.beginOwnRead()
    defer { snapshot.end() }
    let transaction = snapshot.slot.transaction
    let number = UInt64(mdb_txn_id(transaction))
    let meta = try PageFile(path: path).meta(of: number)
    guard meta.pageBytes == TreeBuilder.pageBytes else { return false }
    var places: [Keyspace: Int] = [:]
    for (name, keyspace) in try snapshot.keyspaces() {
      guard let place = try emptyRecord(name, transaction) else { return false }
      places[keyspace] = place
    }
    let descriptor = Glibc.open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { throw StorageError.lmdb(errno, "the file could not be opened", path: path) }
    // LMDB has its locks on another file.
    defer { _ = Glibc.close(descriptor) }
    let pages = PageStream(descriptor, path: path, following: meta.lastPage + 1)
    let load = TreeLoad(path: path, keyspaces: Set(places.keys), pages: pages)
    try body(load)
    try load.finish()
    for (keyspace, record) in load.records {
      guard let place = places[keyspace] else { continue }
      try record.bytes.withUnsafeBytes { try pages.write($0, at: place) }
    }
    let lastPage = pages.following - 1
    // Meta pages take turns.
    let metaPlace = Int(number & 1) * meta.pageBytes + MetaPage.lastPageOffset
    try withUnsafeBytes(of: lastPage) { try pages.write($0, at: metaPlace) }
    return true
  }

  /// Where in the file the record of a keyspace's tree stands; nil when it isn't empty.
  private func emptyRecord(_ name: String, _ transaction: OpaquePointer) throws -> Int? {
    let mainDatabase: MDB_dbi = 1
    let name = Array(name.utf8)
    let (result, value): (Int32, MDB_val) = name.withUnsafeBytes { name in
      var key = MDB_val(name)
      var value = MDB_val()
      return (mdb_get(transaction, mainDatabase, &key, &value), value)
    }
    guard result == 0, value.mv_size == TreeRecord.size, let start = value.mv_data else {
      throw StorageError.lmdb(result, "a keyspace's tree could not be found", path: path)
    }
    let record = TreeRecord(UnsafeRawBufferPointer(found: value))
    guard record.isEmpty, record.flags == 0 else { return nil }
    // The page that it stands on begins with its number.
    let offset = Int(bitPattern: start) & (TreeBuilder.pageBytes - 1)
    let page = (start - offset).load(as: UInt64.self)
    return Int(page) * TreeBuilder.pageBytes + offset
  }
}
