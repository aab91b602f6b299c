import CFileSystem

#if canImport(Glibc)
  import Glibc
#endif

/// Who may use a file: its owner, group, mode and access control list (docs/permissions.md).
///
/// A file that takes the place of another one gets its access, so that a private file stays private, a shared one
/// stays shared, and the owner isn't locked out when somebody else replaces it.
package struct FileAccess: Sendable, Equatable {
  /// The number of the owner.
  package var owner: UInt32
  /// The number of the group.
  package var group: UInt32
  /// The bits for reading, writing and executing: 0o640. Of a directory also those by which files in it get its group
  /// (0o2000) and stay with their owners (0o1000).
  package var mode: UInt32
  /// The access control list, in the system's form; nil if there is none.
  var list: [UInt8]?

  private static let listName = "system.posix_acl_access"
  private static let maximumListBytes = 64 << 10

  /// The access of the file or directory at `path`. Symbolic links are followed. Nil if it can't be asked for.
  package init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    self.init(status)
    list = Self.read { getxattr(path, Self.listName, $0, $1) }
  }

  private init(_ status: stat) {
    owner = status.st_uid
    group = status.st_gid
    mode = UInt32(status.st_mode) & (status.st_mode & S_IFMT == S_IFDIR ? 0o3777 : 0o777)
  }

  /// The same access with these bits of the mode only.
  package func limited(to bits: UInt32) -> FileAccess {
    var access = self
    access.mode &= bits
    return access
  }

  /// The same owner and group, with another mode and no list.
  package func with(mode: UInt32) -> FileAccess {
    var access = self
    access.mode = mode
    access.list = nil
    return access
  }

  /// The access of a directory with files that have this access: who can read them can list it.
  package var ofDirectory: FileAccess { with(mode: mode & 0o3666 | (mode >> 2 & 0o111)) }

  package static func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Gives the engine's file at `path` this access. If the engine's file is a directory, its files stay as they are: who
  /// can't enter it can't use them.
  package func applyToFileOrDirectory(_ path: String) throws {
    try (Self.isDirectory(path) ? ofDirectory : self).apply(to: path)
  }

  /// Gives the file or directory at `path` this access. A symbolic link is refused.
  package func apply(to path: String) throws {
    var flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
    var descriptor = open(path, flags)
    // A file that only others may read.
    if descriptor < 0, errno == EACCES {
      flags = O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
      descriptor = open(path, flags)
    }
    guard descriptor >= 0 else { throw StorageError.system(errno, "can't set the permissions of", path) }
    defer { close(descriptor) }
    try apply(to: descriptor, path: path)
  }

  /// Gives an open file this access. `path` is for errors.
  ///
  /// The system lets only root give a file away. For others, the file becomes theirs if nobody loses a right by that:
  /// the old owner still has his as a member of the group, or everybody has them. Otherwise throws
  /// `permissionDenied`.
  package func apply(to descriptor: Int32, path: String) throws {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw failed(path) }
    let found = FileAccess(status)
    if found.owner != owner || found.group != group, fchown(descriptor, owner, group) != 0 {
      let keepsGroup = found.group == group || fchown(descriptor, .max, group) == 0
      let (ownersRights, groupsRights) = (mode >> 6 & 0o6, mode >> 3 & 0o6)
      let needed = (found.owner == owner ? 0 : ownersRights) | (keepsGroup ? 0 : groupsRights)
      guard needed & ~(keepsGroup ? groupsRights : mode) == 0 else {
        throw StorageError(
          .permissionDenied,
          found.owner == owner
            ? "its group (\(group)) would lose access: only a member of the group, or root, can replace it"
            : "its owner (user \(owner)) would lose access: only that user, or root, can replace it",
          path: path)
      }
    }
    let old = Self.read { fgetxattr(descriptor, Self.listName, $0, $1) }
    if old != list {
      if let list {
        guard fsetxattr(descriptor, Self.listName, list, list.count, 0) == 0 else { throw failed(path) }
      } else {
        // Inherited from the directory. It would give others more than the old file did.
        guard fremovexattr(descriptor, Self.listName) == 0 || errno == ENODATA else { throw failed(path) }
      }
    }
    guard found.mode != mode || old != list else { return }
    // With a list, the bits of the group limit its entries.
    guard fchmod(descriptor, mode_t(mode)) == 0 else { throw failed(path) }
  }

  private func failed(_ path: String) -> StorageError {
    .system(errno, "can't set the permissions of", path)
  }

  private static func read(_ call: (UnsafeMutableRawPointer?, Int) -> Int) -> [UInt8]? {
    // Most files have no list, which needs no memory to find out.
    let size = call(nil, 0)
    guard size > 0, size <= maximumListBytes else { return nil }
    var bytes = [UInt8](repeating: 0, count: size)
    let count = bytes.withUnsafeMutableBytes { call($0.baseAddress, size) }
    return count > 0 ? Array(bytes.prefix(count)) : nil
  }
}
