/// The rule for names of keyspaces. It is the same on every engine, so that data of one engine fits another.
package enum KeyspaceName {
  /// Returns whether a name is valid: 1 to 64 ASCII letters, digits, `.`, `-` and `_`.
  package static func isValid(_ name: String) -> Bool {
    1...StorageLimits.maximumKeyspaceNameBytes ~= name.utf8.count
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }

  /// Throws `invalidArgument` for a name that isn't valid. `path` is the engine's file.
  package static func check(_ name: String, path: String? = nil) throws {
    guard isValid(name) else {
      throw StorageError(
        .invalidArgument,
        """
        a keyspace's name is 1 to \(StorageLimits.maximumKeyspaceNameBytes) of the ASCII letters, digits, \
        '.', '-' and '_', not \"\(name.prefix(2 * StorageLimits.maximumKeyspaceNameBytes))\"
        """, path: path)
    }
  }
}
