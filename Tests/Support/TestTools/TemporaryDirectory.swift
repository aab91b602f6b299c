import Foundation

/// A temporary directory for one test. It is removed with the object, unless TOUCHSTONE_KEEP is set.
package final class TemporaryDirectory: Sendable {
  /// Its path, without a slash at the end.
  package let path: String

  /// Makes an empty directory. If that fails, the first use of a file in it fails.
  package init() {
    path = NSTemporaryDirectory() + "touchstone-" + UUID().uuidString
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    if environmentVariable("TOUCHSTONE_KEEP") != nil { return }
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The path of a file in it.
  package func file(_ name: String) -> String { path + "/" + name }

  /// Returns the sorted names in the directory, or in one of its subdirectories.
  package func names(_ inner: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path + "/" + inner).sorted()
  }
}

/// Runs `body` with the path of a temporary directory, which is removed afterwards.
package func withTemporaryDirectory<Result>(_ body: (String) throws -> Result) rethrows -> Result {
  let directory = TemporaryDirectory()
  defer { withExtendedLifetime(directory) {} }
  return try body(directory.path)
}
