import Storage
import System

#if canImport(Glibc)
  import Glibc
#endif

extension EngineDirectory {
  /// Gives the files of the directory its owner, its group and its permissions to read and write. A library makes its files with the
  /// access of the process: root would lock the owner out, and a directory that others may not read would hold files that they may.
  package func alignAccess() throws {
    var directory = stat()
    guard stat(path, &directory) == 0 else {
      throw StorageError.system(errno, "can't look at the directory", path)
    }
    let mode = directory.st_mode & 0o666
    for name in try FileTree.names(in: path) {
      let file = path + "/" + name
      var status = stat()
      // Files come and go while the library works.
      guard lstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      if status.st_uid != directory.st_uid || status.st_gid != directory.st_gid {
        // Only root may give files away.
        guard lchown(file, directory.st_uid, directory.st_gid) == 0 || errno == EPERM || errno == ENOENT
        else {
          throw StorageError.system(errno, "can't give the file to the owner of the directory", file)
        }
      }
      if status.st_mode & 0o777 != mode, chmod(file, mode) != 0, errno != EPERM, errno != ENOENT {
        throw StorageError.system(errno, "can't set the permissions of the file", file)
      }
    }
  }
}
