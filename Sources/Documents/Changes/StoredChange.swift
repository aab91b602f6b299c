import Storage

// An entry of the keyspace `changes`, under the sequence: flags:u8 (DocumentRecord.Flags), then the document's ID.

/// An entry of the changes in place.
struct StoredChange: ~Escapable {
  let flags: DocumentRecord.Flags
  /// The ID of the document that changed.
  let id: RawSpan

  @_lifetime(copy value)
  init(_ value: RawSpan) throws {
    guard value.byteCount > 1 else {
      throw DocumentError(.damaged, "an entry of the changes can't be read")
    }
    flags = DocumentRecord.Flags(rawValue: value.unsafeLoad(as: UInt8.self))
    id = value.extracting(droppingFirst: 1)
  }

  /// The sequence that a key of the changes, or of the bodies, stands for. Nil for what is none.
  static func sequence(of key: RawSpan) -> UInt64? {
    key.byteCount == 8 ? UInt64(bigEndian: key.unsafeLoadUnaligned(as: UInt64.self)) : nil
  }
}
