import Foundation
import Storage

/// Every file below a directory with its bytes.
package func files(below directory: String) throws -> [String: [UInt8]] {
  var files: [String: [UInt8]] = [:]
  for name in try FileManager.default.subpathsOfDirectory(atPath: directory) {
    // Nil for directories.
    files[name] = FileManager.default.contents(atPath: directory + "/" + name).map { [UInt8]($0) }
  }
  return files
}

extension StorageEngine {
  /// Runs `body` with the engine, and closes it.
  package func closing(_ body: (Self) throws -> Void) throws {
    try body(self)
    try close()
  }
}
