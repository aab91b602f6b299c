import Storage

// An entry of the keyspace `changes`, under the sequence:
//
//   change := flags:u8 (DocumentRecord.Flags)  document ID

/// An entry of the keyspace `changes`, in place.
struct StoredChange: ~Escapable {
  let flags: DocumentRecord.Flags
  /// The ID of the document that changed.
  let id: RawSpan

  @_lifetime(copy value)
  init(_ value: RawSpan) throws {
    guard value.byteCount > 1 else {
      throw DocumentError(.damaged, "an entry of the list of changes can't be read")
    }
    flags = DocumentRecord.Flags(rawValue: value.unsafeLoad(as: UInt8.self))
    id = value.extracting(droppingFirst: 1)
  }

  /// Returns the sequence in a key of `changes` or `bodies`, nil if the key is invalid.
  static func sequence(of key: RawSpan) -> UInt64? {
    key.byteCount == 8 ? UInt64(bigEndian: key.unsafeLoadUnaligned(as: UInt64.self)) : nil
  }
}
