import CLMDB
import Glibc
import Storage

// What an environment refuses, and the errors of LMDB in words.

extension Environment {
  /// Throws `readOnly` if the file was opened for reading only, and `unsupported` in a forked child.
  package func checkWritable() throws {
    if ForkGuard.generation != forkGeneration { throw forked() }
    if isReadOnly { throw error(.readOnly, "this database is open for reading only") }
  }

  @inline(never)
  package func error(_ code: StorageError.Code, _ message: String) -> StorageError {
    StorageError(code, message, path: path)
  }

  @inline(never)
  package func invalidKey(_ key: UnsafeRawBufferPointer, _ keyspace: Keyspace) -> StorageError {
    if keyspace.shape == .sequences {
      return error(
        .invalidKey,
        "keys of a keyspace of sequences are 8 bytes, big-endian and below 2^63; this one has \(key.count)")
    }
    return error(
      .invalidKey, "keys are 1 to \(StorageLimits.maximumKeyBytes) bytes; this one has \(key.count)")
  }

  @inline(never)
  package func noSuchKeyspace(_ keyspace: Keyspace) -> StorageError {
    error(.noSuchKeyspace, "there is no keyspace number \(keyspace.number) in this transaction")
  }

  @inline(never)
  package func valueTooLarge(_ count: Int) -> StorageError {
    error(
      .valueTooLarge, "values are at most \(StorageLimits.maximumValueBytes) bytes; this one has \(count)")
  }

  @inline(never)
  func forked() -> StorageError {
    error(.unsupported, "this database was opened before a fork; open it again in the child process")
  }

  @inline(never)
  func lostCatalog() -> StorageError { error(.damaged, "the catalog has no state") }

  /// Makes the error of a failed write. Notes a full map, so that the next write grows it.
  func writeError(_ result: Int32, _ what: String) -> StorageError {
    if result == MDB_MAP_FULL {
      wantsLargerMap.store(true, ordering: .relaxed)
      return StorageError(
        .mapFull,
        "\(what): the map of \(MapSize.current(of: handle)) bytes is full; end all snapshots, and it is doubled "
          + "before the next write",
        path: path, engineCode: Int(result), engineMessage: String(cString: mdb_strerror(result)))
    }
    if result == EIO, FilePath.isFull(path) {
      return StorageError(
        .diskFull, what, path: path, engineCode: Int(result),
        engineMessage: "the write was incomplete: the disk is full, or the file size limit is reached")
    }
    return .lmdb(result, what, path: path)
  }
}
