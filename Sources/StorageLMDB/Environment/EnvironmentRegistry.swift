import Storage

/// Which files this process has open: LMDB loses its locks when one is opened twice.
enum EnvironmentRegistry {
  private struct Entry {
    let environment: Environment
    let canonicalPath: String
    let identity: FilePath.Identity?

    func isOf(_ path: String, _ identity: FilePath.Identity?) -> Bool {
      canonicalPath == path || (identity != nil && self.identity == identity)
    }
  }

  // Assigned by `renew` alone, in a process that has one thread then.
  private nonisolated(unsafe) static var entries = Lock<[Entry]>([])

  /// In a forked child: another thread of the parent may have held the lock, and won't give it back here.
  static func renew() { entries = Lock([]) }

  /// Opens the file, or makes it, unless this process has it open under this or another name. Keeps the environment
  /// until `remove`. A new file whose opening fails is removed.
  static func open(path: String, options: EngineOptions, mapBytes: Int) throws -> Environment {
    try withLock(path, options) { path, lock in
      try open(path: path, options: options, mapBytes: mapBytes, lock)
    }
  }

  /// Calls `body` with the absolute path and the lock of openings. Removes a new file when it throws.
  static func withLock<Result>(
    _ path: String, _ options: EngineOptions, _ body: (String, OpeningLock) throws -> Result
  ) throws -> Result {
    let path = FilePath.absolute(path)
    // Said first: the other open may hold the lock for long.
    if isOpen(path) { throw inUse(path) }
    let lock = try OpeningLock(path, options)
    do {
      if lock.isNew, options.durability == .full {
        // LMDB syncs the file, but not its name.
        let failure = FilePath.syncFolder(of: path)
        if failure != 0 { throw StorageError.lmdb(failure, "the folder could not be synced", path: path) }
      }
      return try body(path, lock)
    } catch {
      lock.removeWhatIsNew()
      throw error
    }
  }

  private static func isOpen(_ path: String) -> Bool {
    let canonical = FilePath.canonical(path)
    let identity = FilePath.identity(of: path)
    return entries.withLock { entries in entries.contains { $0.isOf(canonical, identity) } }
  }

  private static func inUse(_ path: String) -> StorageError {
    StorageError(
      .inUse, "this process has the file open already; share that engine or close it", path: path)
  }

  /// Opens the file under a lock that the caller holds.
  static func open(path: String, options: EngineOptions, mapBytes: Int, _ lock: OpeningLock) throws
    -> Environment
  {
    let forkGeneration = ForkGuard.register()
    return try entries.withLock { entries in
      let canonical = FilePath.canonical(path)
      let identity = FilePath.identity(of: path)
      if entries.contains(where: { $0.isOf(canonical, identity) }) { throw inUse(path) }
      let environment = try Environment(
        path: path, options: options, mapBytes: mapBytes, forkGeneration: forkGeneration,
        hadLockFile: lock.hadLockFile)
      entries.append(
        Entry(
          environment: environment, canonicalPath: canonical, identity: FilePath.identity(of: path)))
      return environment
    }
  }

  /// Forgets a file that `close` closes.
  ///
  /// Nothing is opened meanwhile: when the file has been removed, closing it frees its inode, and a file that another
  /// thread makes may get that. It would be taken for the one that is still noted here.
  static func remove(_ environment: Environment, _ close: () -> Void) {
    // Released after the lock: the last reference ends the environment.
    let removed: Environment? = entries.withLock { entries in
      close()
      guard let index = entries.firstIndex(where: { $0.environment === environment }) else { return nil }
      return entries.remove(at: index).environment
    }
    _ = removed
  }
}
