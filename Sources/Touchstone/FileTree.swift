import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Directories with all that is in them. Symbolic links are never followed.
enum FileTree {
  /// Removes what is in a directory, but one name.
  static func removeContents(of path: String, but kept: String? = nil) throws {
    for name in try DatabaseDirectory.contents(of: path) where name != kept { try remove(path + "/" + name) }
  }

  /// Removes a file, or a directory with its contents; what isn't there is no error.
  static func remove(_ path: String) throws {
    guard let isDirectory = try isDirectory(path) else { return }
    if isDirectory { try removeContents(of: path) }
    guard (isDirectory ? rmdir(path) : unlink(path)) == 0 || errno == ENOENT else {
      throw StorageError.system(errno, "can't remove", path)
    }
  }

  /// Makes a file, or a directory with its contents, survive a power loss; but for its own name.
  static func sync(_ path: String) throws {
    guard let isDirectory = try isDirectory(path) else { return }
    if isDirectory {
      for name in try DatabaseDirectory.contents(of: path) { try sync(path + "/" + name) }
    }
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else { throw StorageError.system(errno, "can't open", path) }
    defer { close(file) }
    // Some file systems can't sync a directory and say so with EINVAL.
    guard fsync(file) == 0 || (isDirectory && errno == EINVAL) else {
      throw StorageError.system(errno, "can't sync", path)
    }
  }

  /// Nil when there is nothing.
  private static func isDirectory(_ path: String) throws -> Bool? {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      guard errno == ENOENT else { throw StorageError.system(errno, "can't read", path) }
      return nil
    }
    return status.st_mode & S_IFMT == S_IFDIR
  }
}
