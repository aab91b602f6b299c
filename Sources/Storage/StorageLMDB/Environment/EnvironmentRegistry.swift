import Storage

/// The files that this process has open. LMDB would lose its locks if a file were opened twice.
package enum EnvironmentRegistry {
  private struct Entry {
    let environment: Environment
    let canonicalPath: String
    let identity: FilePath.Identity?

    func isOf(_ path: String, _ identity: FilePath.Identity?) -> Bool {
      canonicalPath.utf8.elementsEqual(path.utf8) || (identity != nil && self.identity == identity)
    }
  }

  // Assigned only by `renew`, in a child process that has only one thread then.
  private nonisolated(unsafe) static var entries = Lock<[Entry]>([])

  /// Replaces the list in a forked child. Another thread of the parent may have held its lock, which would
  /// never be released in the child.
  static func renew() { entries = Lock([]) }

  /// Opens or creates the file. Throws `inUse` if this process has it open under this or another name. Keeps
  /// the environment until `remove`. Removes a new file if its opening fails.
  static func open(path: String, options: EngineOptions, mapBytes: Int) throws -> Environment {
    try withLock(path, options) { path, lock in
      try open(path: path, options: options, mapBytes: mapBytes, lock)
    }
  }

  /// Calls `body` with the absolute path and the opening lock. Removes a new file if `body` throws.
  package static func withLock<Result>(
    _ path: String, _ options: EngineOptions, _ body: (String, OpeningLock) throws -> Result
  ) throws -> Result {
    let path = FilePath.absolute(path)
    // Checked before the lock, which the other opening may hold for long.
    if isOpen(path) { throw inUse(path) }
    let lock = try OpeningLock(path, options)
    do {
      if lock.isNew, options.durability != .none {
        // LMDB syncs the file but not its name.
        let failure = FilePath.syncFolder(of: path)
        if failure != 0 { throw StorageError.lmdb(failure, "the folder could not be synced", path: path) }
      }
      return try body(path, lock)
    } catch {
      lock.removeWhatIsNew()
      throw error
    }
  }

  /// The number of files that are open.
  static var count: Int { entries.withLock { $0.count } }

  private static func isOpen(_ path: String) -> Bool {
    let canonical = FilePath.canonical(path)
    let identity = FilePath.identity(of: path)
    return entries.withLock { entries in entries.contains { $0.isOf(canonical, identity) } }
  }

  private static func inUse(_ path: String) -> StorageError {
    StorageError(
      .inUse, "this process already has the file open; use that engine, or close it first", path: path)
  }

  /// Opens the file. The caller holds the opening lock.
  package static func open(
    path: String, options: EngineOptions, mapBytes: Int, _ lock: OpeningLock
  ) throws -> Environment {
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

  /// Removes an environment from the list. `close` closes its file.
  ///
  /// Nothing else is opened meanwhile. If the file was removed, closing it frees its inode, and a new file of
  /// another thread may get the same inode. That file would be mistaken for the one still in the list.
  static func remove(_ environment: Environment, _ close: () -> Void) {
    // Released after the lock, because the last reference deinitializes the environment.
    let removed: Environment? = entries.withLock { entries in
      close()
      guard let index = entries.firstIndex(where: { $0.environment === environment }) else { return nil }
      return entries.remove(at: index).environment
    }
    _ = removed
  }
}
