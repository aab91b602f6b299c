import FoundationEssentials

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
    try FileManager.default.contentsOfDirectory(atPath: directory).reduce(0) { total, name in
      guard let attributes = try? FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)") else {
        return total
      }
      if attributes[.type] as? FileAttributeType == .typeDirectory {
        return total + (try fileBytes(in: "\(directory)/\(name)"))
      }
      return total + ((attributes[.size] as? Int) ?? 0)
    }
  }
}
