import CLMDB
import Glibc
import Storage

extension Environment {
  private static let freeDatabase: MDB_dbi = 0

  package func statistics(of snapshot: LMDBReadTransaction) throws -> EngineStatistics {
    let transaction = snapshot.slot.transaction
    var entries: [String: Int] = [:]
    for (name, keyspace) in try snapshot.keyspaces() { entries[name] = try snapshot.count(of: keyspace) }
    var free = MDB_stat()
    let result = mdb_stat(transaction, Self.freeDatabase, &free)
    if result != 0 { throw StorageError.lmdb(result, "statistics could not be read", path: path) }
    var info = MDB_envinfo()
    mdb_env_info(handle, &info)
    var status = stat()
    // The file may no longer have its name, after a compaction. So its descriptor is used.
    guard fstat(descriptor, &status) == 0 else {
      throw StorageError.lmdb(errno, "the file's size could not be read", path: path)
    }
    return EngineStatistics(
      fileBytes: Int(status.st_size), pageBytes: Int(free.ms_psize), freePages: try freePages(transaction),
      totalPages: info.me_last_pgno + 1, entries: entries,
      // Without the snapshot that is read from.
      openReaders: pool.openCount - 1)
  }

  /// LMDB's own descriptor of the data file.
  private var descriptor: Int32 { handle.dataDescriptor }

  /// Counts the free pages. Each record of the free list begins with its number of pages.
  private func freePages(_ transaction: OpaquePointer) throws -> Int {
    var cursor: OpaquePointer?
    let opened = mdb_cursor_open(transaction, Self.freeDatabase, &cursor)
    guard opened == 0, let cursor else {
      throw StorageError.lmdb(opened, "the free list could not be read", path: path)
    }
    defer { mdb_cursor_close(cursor) }
    var key = MDB_val()
    var value = MDB_val()
    var pages = 0
    var result = mdb_cursor_get(cursor, &key, &value, MDB_FIRST)
    while result == 0 {
      let record = UnsafeRawBufferPointer(value)
      let count = record.count >= 8 ? record.loadUnaligned(as: Int.self) : -1
      guard count >= 0, count <= record.count / 8 - 1 else {
        throw error(.damaged, "a record of the free list says that it has \(count) pages")
      }
      pages += count
      result = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)
    }
    if result != MDB_NOTFOUND {
      throw StorageError.lmdb(result, "the free list could not be read", path: path)
    }
    return pages
  }

  /// Returns the pages of the file for reading without LMDB.
  private func pageFile() throws -> PageFile {
    try PageFile(descriptor: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), path: path)
  }

  /// Returns a check for searches in a named database of a snapshot, or nil if the snapshot has no such
  /// database. The database isn't a user's keyspace. Call it inside `PageFile.withPinnedMeta`.
  package func searchPathCheck(_ snapshot: OpaquePointer, databaseNamed name: String) throws
    -> SearchPathCheck?
  {
    let file = try pageFile()
    let checked =
      checkedAtOpen.areTrees(of: snapshot) ? checkedAtOpen : try CheckedTrees(file, of: snapshot)
    return SearchPathCheck(file, checked, databaseNamed: name)
  }

  /// Writes a compacting copy of the last commit to a new file. It holds a snapshot while it runs.
  package func backup(to path: String) throws {
    // While this snapshot is open, the environment can't be closed.
    let snapshot = try beginOwnRead()
    defer { snapshot.end() }
    try Backup(environment: self, path: path).run()
  }

  /// Always throws: LMDB can't compact a file in place.
  package func compact() throws {
    if pool.isClosed { throw error(.closed, "the database is closed") }
    throw error(.unsupported, "LMDB can't make a file smaller in place; make a backup instead")
  }

  /// Checks all pages that a snapshot uses. Call it inside `PageFile.withPinnedMeta`.
  private func check(_ snapshot: LMDBReadTransaction, _ keyspaces: [String: Keyspace]) throws -> PageCheck {
    let file = try pageFile()
    var check = PageCheck(
      file: file, meta: try file.meta(of: UInt64(mdb_txn_id(snapshot.slot.transaction))),
      sequences: Set(keyspaces.filter { $0.value.shape == .sequences }.map { Array($0.key.utf8) }))
    check.run(.everything)
    return check
  }

  /// A test whether a snapshot uses a page. The pages of LMDB itself at the beginning count as used.
  package func pageUse(of snapshot: LMDBReadTransaction) throws -> (Int) -> Bool {
    let check = try check(snapshot, try snapshot.keyspaces())
    return { $0 < 2 || check.uses(UInt64($0)) }
  }

  package func checkIntegrity(of snapshot: LMDBReadTransaction) throws -> [String] {
    let keyspaces = try snapshot.keyspaces()
    let check = try check(snapshot, keyspaces)
    var faults = check.faults
    if faults.isEmpty, check.lostPages != 0 {
      faults.append("\(check.lostPages) pages are neither in use nor in the free list")
    }
    // A dropped keyspace leaves a husk: an empty tree without an entry in the catalog.
    let known = Set(keyspaces.keys.map { Array($0.utf8) } + [Array(Catalog.databaseName.utf8)])
    for tree in check.trees where !known.contains(tree.name) && !tree.record.isEmpty {
      faults.append("\(PageCheck.describe(tree.name)) has entries and isn't in the catalog")
    }
    return faults
  }

  package var settings: [(name: String, value: String)] {
    let sync =
      switch durability {
      case .full: "none"
      case .normal: "MDB_NOMETASYNC"
      case .none: "MDB_NOSYNC"
      }
    return [
      ("flags", "MDB_NOSUBDIR|MDB_NOTLS" + (usesLockFile ? "" : "|MDB_NOLOCK")),
      ("durability flag", sync),
      ("mapsize", String(MapSize.current(of: handle))),
      ("maxreaders", String(Self.maximumReaders + 2 * Self.reservedReaders)),
      ("maxdbs", String(Self.maximumHandles)),
    ]
  }
}
