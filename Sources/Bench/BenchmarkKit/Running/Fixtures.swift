import FoundationEssentials
import System

#if canImport(Glibc)
  import Glibc
#endif

/// Directories that are filled once and used by many runs. Workloads that read share a database. Workloads
/// that write start with a copy of it.
package final class Fixtures: Sendable {
  // Runs are serial. The lock is for the compiler and for tests.
  private let directories = Lock<[String: TrialDirectory]>([:])
  private let parent: String

  /// Makes fixtures in the directory `parent`.
  package init(in parent: String) { self.parent = parent }

  deinit { removeAll() }

  /// Returns the directory of that name, and calls `fill` to fill it the first time. Its files are then
  /// synced.
  package func directory(_ name: String, fill: (String) throws -> Void) throws -> String {
    try directories.withLock { directories in
      if let directory = directories[name] { return directory.path }
      let directory = try TrialDirectory(in: parent)
      do {
        try fill(directory.path)
        try Fixtures.syncFiles(in: directory.path)
      } catch {
        directory.remove()
        throw error
      }
      directories[name] = directory
      return directory.path
    }
  }

  /// Copies the files of a directory to another one and syncs them, so that the next run doesn't pay for
  /// writing the copy.
  package static func copy(_ source: String, to target: String) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: source) {
      try FileManager.default.copyItem(atPath: "\(source)/\(name)", toPath: "\(target)/\(name)")
    }
    try syncFiles(in: target)
  }

  /// Removes all directories.
  package func removeAll() {
    directories.withLock { directories in
      for directory in directories.values { directory.remove() }
      directories = [:]
    }
  }

  private static func syncFiles(in directory: String) throws {
    // Includes files in subdirectories.
    for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
      let descriptor = open("\(directory)/\(name)", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      fsync(descriptor)
    }
  }
}
