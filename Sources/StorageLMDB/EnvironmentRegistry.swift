import Storage
import Synchronization

/// Which files this process has open: LMDB loses its locks when one is opened twice.
enum EnvironmentRegistry {
  private struct Entry {
    let environment: Environment
    let canonicalPath: String
    let identity: FilePath.Identity?
    /// Of the process that opened it: a forked child's copies count for nothing.
    let forkGeneration: Int
  }

  private static let entries = Mutex<[Entry]>([])

  /// Opens the file, unless this process has it open under this or another name. Keeps the environment until
  /// `remove`.
  static func open(path: String, options: EngineOptions) throws -> Environment {
    let forkGeneration = ForkGuard.register()
    return try entries.withLock { entries in
      let canonical = FilePath.canonical(path)
      let identity = FilePath.identity(of: path)
      let isOpen = entries.contains { entry in
        entry.forkGeneration == forkGeneration
          && (entry.canonicalPath == canonical || (identity != nil && entry.identity == identity))
      }
      if isOpen {
        throw StorageError(
          .inUse, "this process has the file open already; share that engine or close it", path: path)
      }
      let environment = try Environment(path: path, options: options, forkGeneration: forkGeneration)
      entries.append(
        Entry(
          environment: environment, canonicalPath: canonical, identity: FilePath.identity(of: path),
          forkGeneration: forkGeneration))
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
