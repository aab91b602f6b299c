import CSQLite
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The files that this process has open, and through which library.
///
/// SQLite's locks belong to a process: two copies of its code over one file would not see each other's, and
/// either would drop the other's when it closes the file. One library may open a file many times.
enum OpenFiles {
  fileprivate struct Identity: Hashable {
    let device: UInt64
    let inode: UInt64
  }

  private struct Use {
    let library: String
    /// `csqlite_forks()` when it was opened.
    let forks: UInt64
    var count: Int
    /// How many of them are being closed.
    var closing = 0
  }

  private static let uses = Lock<[Identity: Use]>([:])

  /// A file held for one library, until `release`.
  struct Claim: Sendable {
    fileprivate let identity: Identity

    /// Gives it up once `close` has closed the file; when that throws, it is kept.
    ///
    /// When the file has been removed, closing it frees its inode, and a file that another thread makes may get that.
    /// Who claims it meanwhile waits, and isn't told that it is open through another library.
    func release(_ close: () throws -> Void) rethrows {
      OpenFiles.uses.withLock { $0[identity]?.closing += 1 }
      var isClosed = false
      defer {
        OpenFiles.uses.withLock { uses in
          uses[identity]?.closing -= 1
          if isClosed { uses[identity]?.count -= 1 }
          if uses[identity]?.count == 0 { uses[identity] = nil }
        }
      }
      try close()
      isClosed = true
    }
  }

  /// Notes that `library` opens the file at `path`. Throws `inUse` when another one has it open, or the
  /// parent had it at a fork.
  static func claim(_ path: String, library: String) throws -> Claim {
    var status = stat()
    guard stat(path, &status) == 0 else { throw SQLiteFile.systemError("opening a database", path) }
    let identity = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    while try !claim(identity, path, library) { usleep(200) }
    return Claim(identity: identity)
  }

  /// False when another library is just closing it.
  private static func claim(_ identity: Identity, _ path: String, _ library: String) throws -> Bool {
    try uses.withLock { uses in
      var use = uses[identity] ?? Use(library: library, forks: csqlite_forks(), count: 0)
      guard use.forks == csqlite_forks() else {
        // The library's notes of the locks that it holds came along, and the locks did not.
        throw StorageError(
          .inUse, "opening a database: it was open when this process was forked from its parent", path: path)
      }
      guard use.library == library else {
        if use.closing == use.count { return false }
        throw StorageError(
          .inUse, "opening a database: this process has the file open through \(use.library)", path: path)
      }
      use.count += 1
      uses[identity] = use
      return true
    }
  }
}
