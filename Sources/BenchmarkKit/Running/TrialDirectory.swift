import Foundation

/// A new directory that nobody else has.
public struct TrialDirectory {
  /// Where it is.
  public let path: String

  /// Makes one in `parent`. Throws when it can't be made.
  public init(in parent: String) throws {
    path = "\(parent)/touchstone-bench-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  /// Removes it and everything in it, as far as that can be done.
  public func remove() { try? FileManager.default.removeItem(atPath: path) }

  /// Bytes of all files in it.
  public static func fileBytes(in directory: String) throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: directory).reduce(0) { total, name in
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
      if attributes[.type] as? FileAttributeType == .typeDirectory {
        return total + (try fileBytes(in: "\(directory)/\(name)"))
      }
      return total + ((attributes[.size] as? Int) ?? 0)
    }
  }
}
