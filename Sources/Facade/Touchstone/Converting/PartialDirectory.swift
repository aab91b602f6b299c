import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A temporary directory in which something new is made, beside its final place. This process holds a flock
/// on it. A directory that isn't locked was left by a crash; the next one that is made removes it.
///
/// Its file `replaces` names the database beside it whose files are being replaced. What a crash left in that
/// database's directory is removed too.
final class PartialDirectory: Sendable {
  static let prefix = ".touchstone-partial-"
  private static let replaced = "replaces"

  let path: String
  private let descriptor: Int32

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

  /// Removes the directory with its contents. The object must not be used afterwards.
  func remove() { try? FileTree.remove(path) }

  deinit {
    remove()
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
    var status = stat()
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0, stat(path, &status) == 0 { return descriptor }
    close(descriptor)
    return nil
  }

  /// Removes the partial directories in `directory` that a crash left. What can't be removed stays.
  static func removeAbandoned(in directory: String) {
    for name in (try? DatabaseDirectory.contents(of: directory)) ?? [] where name.hasPrefix(prefix) {
      let path = directory + "/" + name
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
