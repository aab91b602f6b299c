import FoundationEssentials
import System

#if canImport(Glibc)
  import Glibc
#endif

/// A new directory for one run.
package struct TrialDirectory {
  /// Its path.
  package let path: String

  /// Makes a directory in `parent`. Throws if that fails.
  package init(in parent: String) throws {
    path = "\(parent)/touchstone-bench-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// Removes the directory with its contents. Errors are ignored.
  package func remove() { try? FileManager.default.removeItem(atPath: path) }

  /// The total size of all files in a directory, in bytes. Files may disappear meanwhile, as merged ones of RocksDB do.
  package static func fileBytes(in directory: String) throws -> Int {
    try FileTree.names(in: directory).reduce(0) { total, name in
      let path = "\(directory)/\(name)"
      var status = stat()
      guard lstat(path, &status) == 0 else { return total }
      guard status.st_mode & S_IFMT == S_IFDIR else { return total + Int(status.st_size) }
      return total + ((try? fileBytes(in: path)) ?? 0)
    }
  }
}
