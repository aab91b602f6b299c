import Storage

/// Which files this process has open: LMDB loses its locks when one is opened twice.
enum EnvironmentRegistry {
  private struct Entry {
    let environment: Environment
    let canonicalPath: String
    let identity: FilePath.Identity?
  }

  // Assigned by `renew` alone, in a process that has one thread then.
  private nonisolated(unsafe) static var entries = Lock<[Entry]>([])

  /// In a forked child: another thread of the parent may have held the lock, and won't give it back here.
  static func renew() { entries = Lock([]) }

  /// Opens the file, unless this process has it open under this or another name. Keeps the environment until
  /// `remove`.
  static func open(path: String, options: EngineOptions, mapBytes: Int) throws -> Environment {
    let forkGeneration = ForkGuard.register()
    let path = FilePath.absolute(path)
    return try entries.withLock { entries in
      let canonical = FilePath.canonical(path)
      let identity = FilePath.identity(of: path)
      let isOpen = entries.contains { entry in
        entry.canonicalPath == canonical || (identity != nil && entry.identity == identity)
      }
      if isOpen {
        throw StorageError(
          .inUse, "this process has the file open already; share that engine or close it", path: path)
      }
      let environment = try Environment(
        path: path, options: options, mapBytes: mapBytes, forkGeneration: forkGeneration)
      entries.append(
        Entry(
          environment: environment, canonicalPath: canonical, identity: FilePath.identity(of: path)))
      return environment
    }
  }

  static func remove(_ environment: Environment) {
    // Released after the lock: the last reference ends the environment.
    let removed: Environment? = entries.withLock { entries in
      guard let index = entries.firstIndex(where: { $0.environment === environment }) else { return nil }
      return entries.remove(at: index).environment
    }
    _ = removed
  }
}
