// Property names, resolved once and then looked up without creating a string.

/// A property name resolved against a shared key table.
///
/// A key is valid for bodies that use this table. If the table has grown and the key has no number, resolve
/// it again: later bodies may use a number for the name.
public struct Key: Sendable, Hashable {
  /// The number of the shared key, or -1 if the table doesn't have the name.
  let number: Int
  /// The name's bytes.
  let utf8: [UInt8]

  /// Resolves a name.
  package init(_ name: String, in sharedKeys: SharedKeys) {
    number = sharedKeys.number(of: name) ?? -1
    utf8 = Array(name.utf8)
  }

  /// The name.
  public var name: String { String(decoding: utf8, as: UTF8.self) }

  /// Whether the table had the name.
  public var isShared: Bool { number >= 0 }
}
