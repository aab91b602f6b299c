import Foundation

/// A temporary directory for one test. It is removed with the object, unless TOUCHSTONE_KEEP is set.
public final class TemporaryDirectory: Sendable {
  /// Its path, without a slash at the end.
  public let path: String

  /// Makes an empty directory. If that fails, the first use of a file in it fails.
  public init() {
    path = NSTemporaryDirectory() + "touchstone-" + UUID().uuidString
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    if environmentVariable("TOUCHSTONE_KEEP") != nil { return }
    try? FileManager.default.removeItem(atPath: path)
  }

  /// The path of a file in it.
  public func file(_ name: String) -> String { path + "/" + name }

  /// Returns the sorted names in the directory, or in one of its subdirectories.
  public func names(_ inner: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path + "/" + inner).sorted()
  }
}

/// Runs `body` with the path of a temporary directory, which is removed afterwards.
public func withTemporaryDirectory<Result>(_ body: (String) throws -> Result) rethrows -> Result {
  let directory = TemporaryDirectory()
  defer { withExtendedLifetime(directory) {} }
  return try body(directory.path)
}
