import Foundation

/// A directory of its own for one test, removed with the object, unless TOUCHSTONE_KEEP is set to look at what is in it.
public final class TemporaryDirectory: Sendable {
  /// Its path, without a slash at the end.
  public let path: String

  /// Makes it, empty. Should that fail, so does the first use of a file in it.
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

  /// The names of what is in it, or in a directory of it, sorted.
  public func names(_ inner: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path + "/" + inner).sorted()
  }
}

/// Runs `body` with the path of a directory of its own, which is removed afterwards.
public func withTemporaryDirectory<Result>(_ body: (String) throws -> Result) rethrows -> Result {
  let directory = TemporaryDirectory()
  defer { withExtendedLifetime(directory) {} }
  return try body(directory.path)
}
