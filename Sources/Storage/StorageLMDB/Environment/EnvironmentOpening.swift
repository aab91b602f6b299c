import CLMDB
import Glibc
import Storage

/// The steps that open an environment and make sure that its file can be mapped safely.
struct EnvironmentOpening {
  let path: String
  let options: EngineOptions
  let mapBytes: Int

  struct Opened {
    let handle: OpaquePointer
    /// Nil if the process may not write the lock file.
    let room: LockFileRoom?
    /// The marks of snapshots, if the process may not write the lock file.
    let marks: SnapshotMarks?
    let catalogHandle: MDB_dbi
    let transaction: Int
    let catalog: Catalog
    let handles: [String: MDB_dbi]
    let checked: CheckedTrees
  }

  /// Opens the environment. The caller holds the `OpeningLock` and removes a new file if this throws.
  func run() throws -> Opened {
    switch try FileHeader.inspect(path) {
    case .lmdb: break
    case .empty:
      // A new file, or the rest of a creation that was interrupted by the end of the process.
      if options.isReadOnly || options.creation == .openExisting {
        throw StorageError(.notADatabase, "the file is empty", path: path)
      }
    }
    return try openPrepared()
  }

  private func openPrepared() throws -> Opened {
    try OpeningLock.makeLockFile(of: path)
    let room = try LockFileRoom(of: path)
    // Its end would end LMDB's locks.
    defer { withExtendedLifetime(room) {} }
    let (environment, usesLockFile) = try openEnvironment()
    do {
      var dead: Int32 = 0
      if usesLockFile { mdb_reader_check(environment, &dead) }
      let marks = usesLockFile ? nil : SnapshotMarks(environment.dataDescriptor, path: path)
      // This mark protects all later snapshots too.
      let marked = try marks?.mark(
        newest: { environment.lastTransaction }, begin: { environment.lastTransaction }, undo: {})
      defer { if let marked { marks?.remove(marked) } }
      let checked = try checkStructure(environment)
      return try openCatalog(environment, room, marks, checked)
    } catch {
      mdb_env_close(environment)
      throw error
    }
  }

  private var flags: UInt32 {
    var flags = MDB_NOSUBDIR | MDB_NOTLS
    if options.isReadOnly { flags |= MDB_RDONLY }
    switch options.durability {
    case .full: break
    case .normal: flags |= MDB_NOMETASYNC
    case .none: flags |= MDB_NOSYNC
    }
    return UInt32(flags)
  }

  private func openEnvironment() throws -> (OpaquePointer, usesLockFile: Bool) {
    var mapBytes = mapBytes
    // On a file system for reading only, LMDB would silently open without locks.
    var usesLockFile = !options.isReadOnly || FilePath.mayWrite(path + "-lock")
    while true {
      var created: OpaquePointer?
      var result = mdb_env_create(&created)
      guard result == 0, let environment = created else {
        throw StorageError.lmdb(result, "the database could not be opened", path: path)
      }
      mdb_env_set_mapsize(environment, mapBytes)
      let slots = Environment.maximumReaders + 2 * Environment.reservedReaders
      mdb_env_set_maxreaders(environment, UInt32(slots))
      mdb_env_set_maxdbs(environment, UInt32(Environment.maximumHandles))
      result = mdb_env_open(environment, path, flags | (usesLockFile ? 0 : UInt32(MDB_NOLOCK)), 0o644)
      if result == 0 { return (environment, usesLockFile) }
      mdb_env_close(environment)
      switch result {
      case ENOMEM where mapBytes > 1 << 30:
        // The address space is limited, so the next attempt asks for half of it.
        mapBytes /= 2
      case EACCES where options.isReadOnly && usesLockFile, EROFS where options.isReadOnly && usesLockFile:
        // The folder can't be written, so LMDB can't create a lock file.
        usesLockFile = false
      default:
        throw StorageError.lmdb(result, "the database could not be opened", path: path)
      }
    }
  }

  /// Checks the pages at the start of all trees, on a pinned snapshot, before LMDB follows any of them.
  private func checkStructure(_ environment: OpaquePointer) throws -> CheckedTrees {
    try PageFile.withPinnedMeta {
      let transaction = try beginRead(environment)
      defer { mdb_txn_abort(transaction) }
      return try CheckedTrees(PageFile(path: path), of: transaction)
    }
  }

  private func beginRead(_ environment: OpaquePointer) throws -> OpaquePointer {
    var transaction: OpaquePointer?
    let result = mdb_txn_begin(environment, nil, UInt32(MDB_RDONLY), &transaction)
    guard result == 0, let transaction else {
      throw StorageError.lmdb(result, "the database could not be read", path: path)
    }
    return transaction
  }

  private func openCatalog(
    _ environment: OpaquePointer, _ room: LockFileRoom?, _ marks: SnapshotMarks?, _ checked: CheckedTrees
  ) throws -> Opened {
    if let opened = try openExistingCatalog(environment, room, marks, checked) { return opened }
    try makeCatalog(environment)
    guard let opened = try openExistingCatalog(environment, room, marks, checked) else {
      throw StorageError(.damaged, "the catalog was created but can't be found", path: path)
    }
    return opened
  }

  private func openExistingCatalog(
    _ environment: OpaquePointer, _ room: LockFileRoom?, _ marks: SnapshotMarks?, _ checked: CheckedTrees
  ) throws -> Opened? {
    let transaction = try beginRead(environment)
    do {
      var handle: MDB_dbi = 0
      let result = mdb_dbi_open(transaction, Catalog.databaseName, 0, &handle)
      if result == MDB_NOTFOUND {
        try refuseForeign(transaction)
        mdb_txn_abort(transaction)
        return nil
      }
      if result != 0 { throw StorageError.lmdb(result, "the catalog could not be opened", path: path) }
      let records = CatalogRecords(transaction: transaction, handle: handle, path: path)
      guard let state = try records.state() else {
        throw StorageError(.damaged, "the catalog has no state", path: path)
      }
      let keyspaces = try records.keyspaces()
      let handles = try Self.openHandles(transaction, keyspaces.map(\.name), besides: [:], path: path)
      guard let catalog = try Self.catalog(keyspaces, state, handles, path: path) else {
        throw StorageError(.damaged, "the catalog names a keyspace that doesn't exist", path: path)
      }
      let number = mdb_txn_id(transaction)
      mdb_txn_commit(transaction)
      return Opened(
        handle: environment, room: room, marks: marks, catalogHandle: handle, transaction: number,
        catalog: catalog, handles: handles, checked: checked.withoutKeyspaces)
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
  }

  /// Throws unless a file without a catalog is new. Any other file belongs to another program or is damaged. A new
  /// catalog would hide its data and overwrite its pages.
  private func refuseForeign(_ transaction: OpaquePointer) throws {
    var statistics = MDB_stat()
    let mainDatabase: MDB_dbi = 1
    let result = mdb_stat(transaction, mainDatabase, &statistics)
    if result != 0 || statistics.ms_entries > 0 {
      throw StorageError(
        .notADatabase, "this is an LMDB file of another program: it has no catalog", path: path)
    }
    guard mdb_txn_id(transaction) == 0 else {
      throw StorageError(
        .damaged, "the newest commit of the file has no data: a meta page is damaged", path: path)
    }
    if options.isReadOnly {
      throw StorageError(.notADatabase, "the creation of the file was never finished", path: path)
    }
  }

  private func makeCatalog(_ environment: OpaquePointer) throws {
    var begun: OpaquePointer?
    var result = mdb_txn_begin(environment, nil, 0, &begun)
    guard result == 0, let transaction = begun else {
      throw StorageError.lmdb(result, "the catalog could not be made", path: path)
    }
    do {
      var handle: MDB_dbi = 0
      result = mdb_dbi_open(transaction, Catalog.databaseName, UInt32(MDB_CREATE), &handle)
      let records = CatalogRecords(transaction: transaction, handle: handle, path: path)
      // Another process may have created it first.
      if result == 0, try records.state() == nil {
        result = records.put(Catalog(version: 1, nextNumber: 1, items: [:]))
      }
      if result != 0 { throw StorageError.lmdb(result, "the catalog could not be made", path: path) }
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
    result = mdb_txn_commit(transaction)
    if result != 0 {
      let isFull = result == EIO && FilePath.isFull(path)
      throw StorageError.lmdb(isFull ? ENOSPC : result, "the catalog could not be made", path: path)
    }
  }

  /// Opens the named databases that have no handle yet. Skips those that the transaction doesn't see.
  static func openHandles(
    _ transaction: OpaquePointer, _ names: [String], besides known: [String: MDB_dbi], path: String
  ) throws -> [String: MDB_dbi] {
    var opened: [String: MDB_dbi] = [:]
    for name in names where known[name] == nil {
      var handle: MDB_dbi = 0
      let result = mdb_dbi_open(transaction, name, 0, &handle)
      if result == MDB_NOTFOUND { continue }
      if result != 0 { throw StorageError.lmdb(result, "keyspace \(name) could not be opened", path: path) }
      opened[name] = handle
    }
    return opened
  }

  /// Returns the catalog of these keyspaces, or nil if one of them has no handle. Throws `damaged` for a
  /// number that is used twice or out of range, because entries are found by it.
  static func catalog(
    _ keyspaces: [(name: String, keyspace: Keyspace)], _ state: CatalogRecords.State,
    _ handles: [String: MDB_dbi], path: String
  ) throws -> Catalog? {
    let nextNumber = Int(clamping: state.nextNumber)
    var items: [String: Catalog.Item] = [:]
    var numbers: Set<Int> = []
    for (name, keyspace) in keyspaces {
      guard keyspace.number < nextNumber, numbers.insert(keyspace.number).inserted else {
        throw StorageError(
          .damaged,
          "the catalog's number of keyspace \(name), \(keyspace.number), belongs to another keyspace or is too high",
          path: path)
      }
      guard let handle = handles[name] else { return nil }
      items[name] = Catalog.Item(name: name, keyspace: keyspace, handle: handle)
    }
    return Catalog(version: state.version, nextNumber: nextNumber, items: items)
  }
}

extension OpaquePointer {
  /// LMDB's descriptor of an environment's data file.
  var dataDescriptor: Int32 {
    var descriptor: mdb_filehandle_t = -1
    mdb_env_get_fd(self, &descriptor)
    return descriptor
  }

  /// The number of the last committed transaction of any process.
  var lastTransaction: Int {
    var info = MDB_envinfo()
    mdb_env_info(self, &info)
    return info.me_last_txnid
  }
}
