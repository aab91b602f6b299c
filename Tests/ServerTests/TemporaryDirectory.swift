import Foundation

/// A directory for one test, which is removed with the object. The tests of the listener link no databases.
final class TemporaryDirectory {
  let path = NSTemporaryDirectory() + "touchstone-" + UUID().uuidString

  init() { try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }
}
