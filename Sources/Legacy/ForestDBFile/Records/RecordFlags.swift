/// What the head of a record says of it.
struct RecordFlags: OptionSet {
  let rawValue: UInt8
  static let compressed = RecordFlags(rawValue: 0x02)
  static let deleted = RecordFlags(rawValue: 0x04)
  /// Written in a transaction: a commit mark or the trie makes it count.
  static let inTransaction = RecordFlags(rawValue: 0x08)
  static let commitMark = RecordFlags(rawValue: 0x10)
  /// Something of the library itself.
  static let system = RecordFlags(rawValue: 0x20)
}
