import CSQLite
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The files that this process has open, with the library of each.
///
/// SQLite's locks belong to a process. Two copies of its code don't see each other's locks on a file, and
/// each releases the other's when it closes the file. One library may open a file many times.
enum OpenFiles {
  fileprivate struct Identity: Hashable {
    let device: UInt64
    let inode: UInt64

    init?(_ path: String) {
      var status = stat()
      guard stat(path, &status) == 0 else { return nil }
      self.init(status)
    }

    init?(_ descriptor: Int32) {
      var status = stat()
      guard fstat(descriptor, &status) == 0 else { return nil }
      self.init(status)
    }

    private init(_ status: stat) {
      device = UInt64(status.st_dev)
      inode = UInt64(status.st_ino)
    }
  }

  private struct Use {
    let library: String
    /// The value of `csqlite_forks()` when the file was opened.
    let forks: UInt64
    var count: Int
    /// The number of uses that are being closed.
    var closing = 0
    /// The engine's own descriptors, by path. Closing one drops SQLite's locks on its file, so they stay open until
    /// the last use ends.
    var descriptors: [String: Int32] = [:]
  }

  private static let uses = Lock<[Identity: Use]>([:])

  /// The claim of a file for one library, until `release`.
  struct Claim: Sendable {
    fileprivate let identity: Identity

    /// Calls `close` and then gives up the claim. If `close` throws, the claim stays.
    ///
    /// If the file was removed, closing it frees its inode, and a new file of another thread may get the same
    /// inode. A claim of that file waits until `close` is done, and doesn't throw that another library has it
    /// open.
    func release(_ close: () throws -> Void) rethrows {
      OpenFiles.uses.withLock { $0[identity]?.closing += 1 }
      var isClosed = false
      defer {
        OpenFiles.uses.withLock { uses in
          uses[identity]?.closing -= 1
          if isClosed { uses[identity]?.count -= 1 }
          if let use = uses[identity], use.count == 0 {
            for descriptor in use.descriptors.values { _ = Glibc.close(descriptor) }
            uses[identity] = nil
          }
        }
      }
      try close()
      isClosed = true
    }

    /// Opens the claimed file once more with `open`. Throws `notFound` if the file was removed, or another one has its path.
    func opening<Opened>(_ path: String, _ open: () throws -> Opened, close: (Opened) -> Void) throws
      -> Opened
    {
      try check(path)
      let opened = try open()
      do { try check(path) } catch {
        close(opened)
        throw error
      }
      return opened
    }

    private func check(_ path: String) throws {
      guard Identity(path) != identity else { return }
      throw StorageError(
        .notFound, "the file of the open database was removed, or another one has its path", path: path)
    }

    /// Returns a descriptor for reading the claimed file, or a file beside it, at `path`. It stays open as long as the
    /// claimed file. Nil if there is no file.
    func descriptor(of path: String) throws -> Int32? {
      try OpenFiles.uses.withLock { uses in
        if let known = uses[identity]?.descriptors[path] {
          // Another process may have removed a file beside the claimed one, and made it anew.
          let opened = Identity(known)
          if opened == identity { return known }
          guard let named = Identity(path) else { return nil }
          if opened == named { return known }
          _ = Glibc.close(known)
          uses[identity]?.descriptors[path] = nil
        }
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
          if errno == ENOENT { return nil }
          throw SQLiteFile.systemError("the database can't be read", path)
        }
        uses[identity]?.descriptors[path] = descriptor
        return descriptor
      }
    }
  }

  /// Claims the file at `path` for `library`. Throws `inUse` if another library has it open, or if the parent
  /// process had it open at a fork.
  static func claim(_ path: String, library: String) throws -> Claim {
    guard let identity = Identity(path) else {
      throw SQLiteFile.systemError("the database can't be opened", path)
    }
    while try !claim(identity, path, library) { usleep(200) }
    return Claim(identity: identity)
  }

  /// Claims a file. Returns false while another library is closing it.
  private static func claim(_ identity: Identity, _ path: String, _ library: String) throws -> Bool {
    try uses.withLock { uses in
      var use = uses[identity] ?? Use(library: library, forks: csqlite_forks(), count: 0)
      guard use.forks == csqlite_forks() else {
        // The child inherited the library's records of its locks, but not the locks.
        throw StorageError(
          .inUse, "the database can't be opened: it was open when this process was forked", path: path)
      }
      guard use.library == library else {
        if use.closing == use.count { return false }
        throw StorageError(
          .inUse, "the database can't be opened: this process has the file open with \(use.library)",
          path: path)
      }
      use.count += 1
      uses[identity] = use
      return true
    }
  }
}
