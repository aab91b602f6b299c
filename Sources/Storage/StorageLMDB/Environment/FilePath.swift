import Glibc
import Storage

/// Paths and identities of files, as the system resolves them.
enum FilePath {
  /// The file that a path leads to now.
  struct Identity: Hashable {
    let device: UInt64
    let inode: UInt64
  }

  static func identity(of path: String) -> Identity? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }

  /// Returns whether the process may write the file, or make it if there is none.
  static func mayWrite(_ path: String) -> Bool {
    if faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 { return true }
    return errno == ENOENT && faccessat(AT_FDCWD, split(path).folder, W_OK, AT_EACCESS) == 0
  }

  static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// Returns the absolute path. It stays valid if the working directory changes.
  static func absolute(_ path: String) -> String {
    // Compares bytes: a slash and a combining mark form a single Character.
    guard path.utf8.first != UInt8(ascii: "/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return String(cString: folder) + "/" + path
  }

  /// Returns the absolute path without symbolic links. If the file doesn't exist yet, only its folder is
  /// resolved.
  static func canonical(_ path: String) -> String {
    if let real = realpath(path, nil) {
      defer { free(real) }
      return String(cString: real)
    }
    let (folder, name) = split(path)
    guard let real = realpath(folder, nil) else { return path }
    defer { free(real) }
    let text = String(cString: real)
    return text == "/" ? "/" + name : text + "/" + name
  }

  /// Returns the folder of a path and the name of the file.
  static func split(_ path: String) -> (folder: String, name: String) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (".", path) }
    let folder = String(path[..<slash])
    return (folder.isEmpty ? "/" : folder, String(path[path.utf8.index(after: slash)...]))
  }

  /// Syncs the folder of `path`, so that a new or changed name in it survives a power loss. Returns 0 or an
  /// `errno`.
  static func syncFolder(of path: String) -> Int32 {
    let descriptor = open(split(path).folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return errno }
    defer { _ = Glibc.close(descriptor) }
    return fsync(descriptor) == 0 ? 0 : errno
  }
}
