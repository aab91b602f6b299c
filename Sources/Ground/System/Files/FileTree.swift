import CFileSystem

#if canImport(Glibc)
  import Glibc
#endif

/// Operations on files, and on directories with their contents. Symbolic links are never followed.
package enum FileTree {
  /// The names of the files and directories in a directory, in the system's order.
  package static func names(in path: String) throws -> [String] {
    guard let directory = opendir(path) else {
      throw StorageError.system(errno, "can't read the directory", path)
    }
    defer { closedir(directory) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(directory) else {
        guard errno == 0 else { throw StorageError.system(errno, "can't read the directory", path) }
        return names
      }
      // Not by way of a pointer to the field: the record may be shorter than the type says.
      let name = String(
        cString: UnsafeRawPointer(entry).advanced(by: nameOffset).assumingMemoryBound(to: CChar.self))
      if name != ".", name != ".." { names.append(name) }
    }
  }

  private static let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name) ?? 0

  /// Removes the contents of a directory, except for one name.
  package static func removeContents(of path: String, but kept: String? = nil) throws {
    for name in try names(in: path).sorted() where name != kept { try remove(path + "/" + name) }
  }

  /// Removes a file, or a directory with its contents. A missing file isn't an error.
  package static func remove(_ path: String) throws {
    guard let isDirectory = try isDirectory(path) else { return }
    if isDirectory { try removeContents(of: path) }
    guard (isDirectory ? rmdir(path) : unlink(path)) == 0 || errno == ENOENT else {
      throw StorageError.system(errno, "can't remove", path)
    }
  }

  /// From this number of files on, the whole file system is synced. That takes as long as syncing one or two
  /// files.
  private static let singleFiles = 32

  /// Syncs a file, or a directory with its contents, so that it survives a power loss. Its own name isn't
  /// synced.
  package static func sync(_ path: String) throws {
    if try count(path, upTo: singleFiles) >= singleFiles {
      let directory = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
      guard directory >= 0 else { throw StorageError.system(errno, "can't open", path) }
      defer { close(directory) }
      if syncfs(directory) == 0 { return }
    }
    try syncEach(path)
  }

  /// The number of files and directories, at most `limit`.
  private static func count(_ path: String, upTo limit: Int) throws -> Int {
    guard let isDirectory = try isDirectory(path) else { return 0 }
    var count = 1
    guard isDirectory else { return count }
    for name in try names(in: path).sorted() where count < limit {
      count += try self.count(path + "/" + name, upTo: limit - count)
    }
    return count
  }

  private static func syncEach(_ path: String) throws {
    guard let isDirectory = try isDirectory(path) else { return }
    if isDirectory {
      for name in try names(in: path).sorted() { try syncEach(path + "/" + name) }
    }
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else { throw StorageError.system(errno, "can't open", path) }
    defer { close(file) }
    // Some file systems can't sync a directory and say so with EINVAL.
    guard fsync(file) == 0 || (isDirectory && errno == EINVAL) else {
      throw StorageError.system(errno, "can't sync", path)
    }
  }

  /// Nil if nothing exists at `path`.
  private static func isDirectory(_ path: String) throws -> Bool? {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      guard errno == ENOENT else { throw StorageError.system(errno, "can't read", path) }
      return nil
    }
    return status.st_mode & S_IFMT == S_IFDIR
  }
}
