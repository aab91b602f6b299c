#if canImport(Glibc)
  import Glibc
#endif

/// The size of an engine's file, which may be a directory of files.
package enum FileSize {
  /// The bytes of a file, or of all files in a directory; 0 if they can't be seen. Of a file with holes, only what it
  /// takes counts.
  package static func of(_ path: String) -> Int {
    var status = stat()
    guard stat(path, &status) == 0 else { return 0 }
    guard status.st_mode & S_IFMT == S_IFDIR else { return Int(status.st_size) }
    var sum = 0
    for name in (try? FileTree.names(in: path)) ?? [] where lstat(path + "/" + name, &status) == 0 {
      sum += min(Int(status.st_size), Int(status.st_blocks) * 512)
    }
    return sum
  }
}
