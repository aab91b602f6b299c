import CLMDB
import Glibc
import Storage

/// A compacting copy to a new file.
///
/// LMDB writes the pages of one snapshot in order, without free pages, to a file with a temporary name. The
/// copy gets its final name when it is complete and synced.
struct Backup {
  let environment: Environment
  let path: String

  func run() throws {
    if FilePath.exists(path) { throw exists() }
    let partial = "\(path).partial-\(getpid())-\(UInt32.random(in: 0...(.max)))"
    defer { unlink(partial) }
    var result = try copy(to: partial)
    if result != 0 {
      throw failed(result == EIO && FilePath.isFull(FilePath.split(path).folder) ? ENOSPC : result)
    }
    try removeHusks(partial)
    result = sync(partial)
    if result == 0 { result = NewFileName.take(path, for: partial) }
    if result == EEXIST { throw exists() }
    if result == 0 { result = FilePath.syncFolder(of: path) }
    if result != 0 { throw failed(result) }
  }

  /// Writes the copy. Whoever may use the data file may use it, and nobody else, from its first byte on.
  private func copy(to partial: String) throws -> Int32 {
    let descriptor = open(partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return errno }
    defer { close(descriptor) }
    try FileAccess(of: environment.path)?.apply(to: descriptor, path: path)
    return mdb_env_copyfd2(environment.handle, descriptor, UInt32(MDB_CP_COMPACT))
  }

  private func exists() -> StorageError {
    StorageError(.alreadyExists, "a backup needs a new file, but this file exists", path: path)
  }

  private func failed(_ result: Int32) -> StorageError {
    // LMDB reports `MDB_INCOMPATIBLE` if the used and the free pages don't add up.
    .lmdb(result == MDB_INCOMPATIBLE ? MDB_CORRUPTED : result, "the backup could not be written", path: path)
  }

  private func sync(_ file: String) -> Int32 {
    let descriptor = open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return errno }
    defer { close(descriptor) }
    return fsync(descriptor) == 0 ? 0 : errno
  }

  /// Removes the husks of dropped keyspaces from the copy. No other process knows the file yet.
  private func removeHusks(_ file: String) throws {
    var created: OpaquePointer?
    var result = mdb_env_create(&created)
    guard result == 0, let copy = created else { throw failed(result) }
    defer { mdb_env_close(copy) }
    var status = stat()
    guard stat(file, &status) == 0 else { throw failed(errno) }
    // Room for the data and for the writes of the drops. The address space may not suffice for a second map
    // as large as that of the open file.
    mdb_env_set_mapsize(copy, 2 * Int(status.st_size) + (16 << 20))
    mdb_env_set_maxdbs(copy, 2)
    result = mdb_env_open(copy, file, UInt32(MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOSYNC), 0o644)
    if result != 0 { throw failed(result) }
    let husks = try husks(of: copy, file)
    if husks.isEmpty { return }
    var begun: OpaquePointer?
    result = mdb_txn_begin(copy, nil, 0, &begun)
    guard result == 0, let transaction = begun else { throw failed(result) }
    for husk in husks where result == 0 {
      var handle: MDB_dbi = 0
      result = mdb_dbi_open(transaction, husk, 0, &handle)
      if result == 0 { result = mdb_drop(transaction, handle, 1) }
    }
    if result == 0 { result = mdb_txn_commit(transaction) } else { mdb_txn_abort(transaction) }
    if result != 0 { throw failed(result) }
  }

  private func husks(of copy: OpaquePointer, _ file: String) throws -> [String] {
    var begun: OpaquePointer?
    var result = mdb_txn_begin(copy, nil, UInt32(MDB_RDONLY), &begun)
    guard result == 0, let transaction = begun else { throw failed(result) }
    defer { mdb_txn_abort(transaction) }
    var catalog: MDB_dbi = 0
    result = mdb_dbi_open(transaction, Catalog.databaseName, 0, &catalog)
    if result != 0 { throw failed(result) }
    let records = CatalogRecords(transaction: transaction, handle: catalog, path: file)
    let known = Set(try records.keyspaces().map(\.name) + [Catalog.databaseName])
    let mainDatabase: MDB_dbi = 1
    var cursor: OpaquePointer?
    result = mdb_cursor_open(transaction, mainDatabase, &cursor)
    guard result == 0, let cursor else { throw failed(result) }
    defer { mdb_cursor_close(cursor) }
    var found: [String] = []
    var key = MDB_val()
    result = mdb_cursor_get(cursor, &key, nil, MDB_FIRST)
    while result == 0 {
      let name = String(decoding: UnsafeRawBufferPointer(key), as: UTF8.self)
      if !known.contains(name) { found.append(name) }
      result = mdb_cursor_get(cursor, &key, nil, MDB_NEXT)
    }
    if result != MDB_NOTFOUND { throw failed(result) }
    return found
  }
}
