import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A temporary directory in which something new is made, beside its final place. This process holds a flock
/// on it. A directory that isn't locked was left by a crash; the next one that is made removes it.
///
/// Its file `replaces` names the database beside it whose files are being replaced. What a crash left in that
/// database's directory is removed too.
///
/// One that resumes has the name of its target, and stays after a failure that may pass. The next operation with the same
/// target goes on in it; no other one removes it.
final class PartialDirectory: Sendable {
  static let prefix = ".touchstone-partial-"
  static let resumingPrefix = ".touchstone-unfinished-"
  private static let replaced = "replaces"

  let path: String
  private let descriptor: Int32
  private let isKept = Lock(false)

  /// Makes a directory beside `target`.
  init(beside target: String) throws {
    let directory = DatabaseDirectory.parent(of: target)
    Self.removeAbandoned(in: directory)
    for _ in 0..<100 {
      let path = "\(directory)/\(Self.prefix)\(String(UInt64.random(in: (1 << 60)...UInt64.max), radix: 16))"
      // Nobody else sees what isn't finished.
      guard mkdir(path, 0o700) == 0 else {
        if errno == EEXIST { continue }
        if errno == ENOENT { throw DatabaseDirectory.noParent(of: target) }
        throw StorageError.system(errno, "can't make the directory", path)
      }
      // Until it is locked, another process may take it for an abandoned one.
      guard let descriptor = Self.locked(path) else { continue }
      self.path = path
      self.descriptor = descriptor
      return
    }
    throw StorageError(.inUse, "can't create a directory for new files: all names are taken", path: directory)
  }

  /// Makes a directory that resumes beside `target`, or takes the one that an interrupted operation has left. Throws `inUse`
  /// if another one works in it, and `permissionDenied` if it isn't a directory of this user.
  init(resuming target: String) throws {
    // Long names are cut, and may share a directory, one after the other.
    let name = String(decoding: try DatabaseDirectory(target).name.utf8.prefix(200), as: UTF8.self)
    path = "\(DatabaseDirectory.parent(of: target))/\(Self.resumingPrefix)\(name)"
    descriptor = try Self.taken(path, for: target)
  }

  /// Makes or takes a directory that resumes, and locks it.
  private static func taken(_ path: String, for target: String) throws -> Int32 {
    var status = stat()
    // Another process may remove an empty directory that isn't locked yet.
    for _ in 0..<100 {
      if mkdir(path, 0o700) != 0 {
        if errno == ENOENT { throw DatabaseDirectory.noParent(of: target) }
        guard errno == EEXIST else { throw StorageError.system(errno, "can't make the directory", path) }
        guard
          lstat(path, &status) != 0 || status.st_uid == geteuid() && status.st_mode & S_IFMT == S_IFDIR
        else {
          throw StorageError(
            .permissionDenied, "the directory for new files isn't one of this user; remove it", path: path)
        }
      }
      if let descriptor = locked(path) { return descriptor }
      // Who looks for abandoned directories locks each for a moment.
      if lstat(path, &status) == 0 { usleep(10_000) }
    }
    throw DatabaseError(.inUse, "another process is making the database", path: target)
  }

  /// Removes the directory with its contents. The object must not be used afterwards.
  func remove() { try? FileTree.remove(path) }

  /// Leaves the directory for the next operation that resumes, unless it is empty. Returns whether it stays.
  func keep() -> Bool {
    let isEmpty = (try? FileTree.names(in: path).isEmpty) ?? true
    return isKept.withLock { isKept in
      isKept = !isEmpty
      return isKept
    }
  }

  deinit {
    if !isKept.withLock({ $0 }) { remove() }
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Renames `inner`, a path in this directory, to `target`, in one step that survives a power loss. Throws
  /// `alreadyExists` if there is something at `target`.
  func publish(_ inner: String, as target: String) throws {
    try FileTree.sync(inner)
    // A rename replaces another directory only if that is empty.
    guard rename(inner, target) == 0 else {
      guard errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR else {
        throw StorageError.system(errno, "can't put the new database in its place", target)
      }
      throw DatabaseError(
        .alreadyExists, "the new database can't be made: a file or directory with this name exists",
        path: target)
    }
    try AtomicFile.syncDirectory(of: target)
  }

  /// Notes that the files of the database at `target` will be replaced by files of this directory.
  func replaces(_ target: String) throws {
    let name = target.utf8.split(separator: UInt8(ascii: "/")).last ?? "".utf8[...]
    try AtomicFile.write(name, to: path + "/" + Self.replaced)
  }

  private static func locked(_ path: String) -> Int32? {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
    guard descriptor >= 0 else { return nil }
    var (named, opened) = (stat(), stat())
    // Another process may have removed it, and a third one may have made it again.
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0, stat(path, &named) == 0, fstat(descriptor, &opened) == 0,
      named.st_ino == opened.st_ino, named.st_dev == opened.st_dev
    {
      return descriptor
    }
    close(descriptor)
    return nil
  }

  /// Removes the partial directories in `directory` that a crash left. What can't be removed stays, and so does one that resumes, unless
  /// it is empty: its database got its name just before the crash.
  static func removeAbandoned(in directory: String) {
    for name in (try? DatabaseDirectory.contents(of: directory)) ?? [] {
      let path = directory + "/" + name
      if name.hasPrefix(resumingPrefix), let descriptor = locked(path) {
        rmdir(path)
        close(descriptor)
      }
      guard name.hasPrefix(prefix) else { continue }
      guard let descriptor = locked(path) else { continue }
      if let bytes = try? AtomicFile.read(path + "/" + replaced, limit: 255),
        !bytes.contains(UInt8(ascii: "/")),
        let target = try? DatabaseDirectory(String(decoding: bytes, as: UTF8.self), in: directory)
      {
        try? OpenDatabase.removeLeftovers(of: target)
      }
      try? FileTree.remove(path)
      flock(descriptor, LOCK_UN)
      close(descriptor)
    }
  }
}
