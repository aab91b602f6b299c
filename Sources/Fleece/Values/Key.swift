// Property names and paths, resolved once and then looked up without making a string.

/// A property name resolved against a shared key table.
///
/// It holds for bodies whose names are numbered by that table; resolve again when the table has grown and the key
/// has no number yet, as bodies encoded later may refer to the name by one.
public struct Key: Sendable, Hashable {
  /// The shared key's number, or -1 when the table lacks the name.
  let number: Int
  /// The name's bytes.
  let utf8: [UInt8]

  /// Resolves a name.
  public init(_ name: String, in sharedKeys: SharedKeys) {
    number = sharedKeys.number(of: name) ?? -1
    utf8 = Array(name.utf8)
  }

  /// The name.
  public var name: String { String(decoding: utf8, as: UTF8.self) }

  /// Whether the table had the name.
  public var isShared: Bool { number >= 0 }
}
