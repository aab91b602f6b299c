import Glibc
import Storage

/// Names of files, as the system resolves them.
enum FilePath {
  /// Which file a path leads to now.
  struct Identity: Hashable {
    let device: UInt64
    let inode: UInt64
  }

  static func identity(of path: String) -> Identity? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }

  static func exists(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0
  }

  /// The path from the root, whatever the working directory becomes.
  static func absolute(_ path: String) -> String {
    // By bytes: a combining mark after a slash makes another Character of both.
    guard path.utf8.first != UInt8(ascii: "/"), let folder = getcwd(nil, 0) else { return path }
    defer { free(folder) }
    return String(cString: folder) + "/" + path
  }

  /// The absolute path without links; of a file that isn't there yet, its folder's and its name.
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

  /// The folder a path names a file in, and that file's name.
  static func split(_ path: String) -> (folder: String, name: String) {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return (".", path) }
    let folder = String(path[..<slash])
    return (folder.isEmpty ? "/" : folder, String(path[path.utf8.index(after: slash)...]))
  }

  /// Makes a rename or a new name in the folder of `path` last.
  static func syncFolder(of path: String) -> Int32 {
    let descriptor = open(split(path).folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return errno }
    defer { _ = Glibc.close(descriptor) }
    return fsync(descriptor) == 0 ? 0 : errno
  }
}
