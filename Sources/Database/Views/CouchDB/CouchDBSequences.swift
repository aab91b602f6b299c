import Documents

/// Writes and reads the sequences of a database as clients of CouchDB get them. They carry a mark of the database, because a client may
/// keep one for longer than the database lives: behind its number in another database of that name there may be changes that the client
/// has never seen.
///
///     sequence := number "-g" mark
///     mark     := 8 hexadecimal digits      the first ones of the database's public UUID
package struct CouchDBSequences: Sendable {
  /// What stands behind the number.
  package let mark: String

  /// Sequences of the database with that public UUID.
  package init(publicUUID: String) {
    mark = "-g" + publicUUID.prefix(8)
  }

  /// Sequences of a store's documents.
  package init(_ store: DocumentStore) { self.init(publicUUID: DocumentID.uuidText(store.publicUUID)) }

  /// The text of a sequence.
  package func text(_ sequence: UInt64) -> String { "\(sequence)\(mark)" }

  /// The number of a sequence that a client has sent; nil if it is none. It is 0, the beginning, if it is marked as one of another
  /// database, and what it says if it has no mark, as those of Couchbase Lite.
  package func number(_ text: some StringProtocol) -> UInt64? {
    let digits = text.utf8.prefix { $0 &- 0x30 < 10 }
    guard !digits.isEmpty, let number = UInt64(String(decoding: digits, as: UTF8.self)) else { return nil }
    let rest = text.utf8.dropFirst(digits.count)
    if rest.isEmpty || rest.elementsEqual(mark.utf8) { return number }
    guard rest.count > 1, rest.first == UInt8(ascii: "-"), rest.dropFirst().allSatisfy({ Self.isOfMark($0) })
    else { return nil }
    return 0
  }

  /// Whether a byte may be in a mark: base64 for URLs, as CouchDB's.
  private static func isOfMark(_ byte: UInt8) -> Bool {
    byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
  }
}
