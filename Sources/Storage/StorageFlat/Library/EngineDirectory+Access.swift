import Storage
import System

#if canImport(Glibc)
  import Glibc
#endif

extension EngineDirectory {
  /// Gives the files of the directory its owner, its group and its permissions to read and write. A library makes its files with the
  /// access of the process: root would lock the owner out, and a directory that others may not read would hold files that they may.
  package func alignAccess() throws {
    guard let directory = FileAccess(of: path) else {
      throw StorageError.system(errno, "can't look at the directory", path)
    }
    let access = directory.with(mode: directory.mode & 0o666)
    for name in try FileTree.names(in: path) {
      let file = path + "/" + name
      var status = stat()
      guard lstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
      do { try access.apply(to: file) } catch let error as StorageError
        where error.code == .permissionDenied || error.code == .notFound
      {
        // Only root may give files away. Files come and go while the library works.
      }
    }
  }
}
