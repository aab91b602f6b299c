import Logs
import Storage

/// The names of a database's files, and the leftovers of interrupted operations: files with such names that
/// `database.json` doesn't name. The caller that removes them must hold the lock exclusively.
extension DatabaseDirectory {
  /// `key.json`, `key-2.json`, …
  static func isKeyFile(_ name: String) -> Bool { isNumbered(name, "key", ".json") }

  /// `lock`, and those of turns to work.
  static func isLock(_ name: String) -> Bool { name == "lock" || name.hasPrefix(DirectoryTurn.prefix) }

  /// `Attachments`, `Attachments-2`, …
  static func isBlobDirectory(_ name: String) -> Bool { isNumbered(name, blobs, "") }

  private static func isNumbered(_ name: String, _ prefix: String, _ suffix: String) -> Bool {
    guard name.hasPrefix(prefix), name.hasSuffix(suffix),
      name.utf8.count >= prefix.utf8.count + suffix.utf8.count
    else { return false }
    let number = name.dropFirst(prefix.count).dropLast(suffix.count)
    return number.isEmpty
      || (number.first == "-" && number.count > 1
        && number.dropFirst().allSatisfy { ("0"..."9").contains($0) })
  }

  /// The names of the leftover files, sorted.
  func leftovers(_ description: Description) throws -> [String] {
    try contents().filter { name in
      if name.hasPrefix("data-") {
        return name != description.file && !name.hasPrefix(description.file + "-")
      }
      if Self.isKeyFile(name) { return name != description.key }
      if Self.isBlobDirectory(name) { return name != description.blobs ?? Self.blobs }
      // Temporary files of `AtomicFile`.
      return name.hasPrefix("database.json.new-") || (name.hasPrefix("key") && name.contains(".json.new-"))
    }
  }

  func removeLeftovers(_ description: Description) throws {
    let names = try leftovers(description)
    guard !names.isEmpty else { return }
    for name in names { try FileTree.remove(file(name)) }
    try AtomicFile.syncDirectory(of: descriptionPath)
    Log.write(
      .info, .database, path,
      "removed files that aren't in use: \(names.joined(separator: ", "))")
  }

  // MARK: Names for a second set of files

  /// A name for the engine's next file, different from the one in use. The highest number is followed by 1.
  func nextDataFile(after description: Description, fileExtension: String) -> String {
    let number = description.file.dropFirst("data-".count).prefix { $0.isNumber }
    return "data-\(max(1, (Int(number) ?? 0) &+ 1)).\(fileExtension)"
  }

  /// A name for a key file, different from the one in use.
  func nextKeyFile(after description: Description) -> String {
    description.key == Self.key ? "key-2.json" : Self.key
  }

  /// A name for a directory of blobs, different from the one in use. If that doesn't exist, its own name.
  func nextBlobDirectory(after description: Description) throws -> String {
    let current = description.blobs ?? Self.blobs
    guard isThere(file(current)) else { return current }
    return current == Self.blobs ? "\(Self.blobs)-2" : Self.blobs
  }
}
