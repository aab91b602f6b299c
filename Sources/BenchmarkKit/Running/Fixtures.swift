import Foundation

#if canImport(Glibc)
  import Glibc
#endif

/// Directories that are filled once and used by many runs: databases that reading workloads share, and that
/// writing ones begin with a copy of.
public final class Fixtures: @unchecked Sendable {
  // Runs come one at a time; the lock is for the compiler and for tests.
  private let lock = NSLock()
  private let parent: String
  private var directories: [String: TrialDirectory] = [:]

  /// Fixtures that lie in `parent`.
  public init(in parent: String) { self.parent = parent }

  deinit { removeAll() }

  /// The directory of that name, which `fill` has filled. It is closed and synced: its bytes are on the disk.
  public func directory(_ name: String, fill: (String) throws -> Void) throws -> String {
    lock.lock()
    defer { lock.unlock() }
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

  /// Copies the files of a directory to another, and syncs them, so that the run that comes next doesn't pay for
  /// writing the copy.
  public static func copy(_ source: String, to target: String) throws {
    for name in try FileManager.default.contentsOfDirectory(atPath: source) {
      try FileManager.default.copyItem(atPath: "\(source)/\(name)", toPath: "\(target)/\(name)")
    }
    try syncFiles(in: target)
  }

  /// Removes all of them.
  public func removeAll() {
    lock.lock()
    defer { lock.unlock() }
    for directory in directories.values { directory.remove() }
    directories = [:]
  }

  private static func syncFiles(in directory: String) throws {
    // What lies in directories below as well.
    for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
      let descriptor = open("\(directory)/\(name)", O_RDONLY | O_CLOEXEC)
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      fsync(descriptor)
    }
  }
}
