import Fleece
import Storage

/// A document of a snapshot where it lies. It can't leave the closure that it is lent to; `document()` copies it.
public struct DocumentView: ~Escapable {
  /// The ID's UTF-8 in place.
  public let idBytes: RawSpan
  /// The whole stored record in place.
  public let bytes: RawSpan
  @usableFromInline let record: DocumentRecord
  // The snapshot holds them, and lends the view.
  @usableFromInline unowned(unsafe) let sharedKeys: SharedKeys

  /// The document of an entry that `DocumentSnapshot.forEachRecord` lent. Throws for what is no document.
  @inlinable @inline(__always)
  @_lifetime(copy idBytes, copy bytes)
  public init(idBytes: RawSpan, record bytes: RawSpan, sharedKeys: SharedKeys) throws {
    self.record = try DocumentRecord(bytes)
    self.idBytes = idBytes
    self.bytes = bytes
    self.sharedKeys = sharedKeys
  }

  /// The document's ID.
  public var id: String { String(copying: idBytes) }
  /// The sequence of the document's latest change.
  @inlinable public var sequence: UInt64 { record.sequence }
  /// A tombstone.
  @inlinable public var isDeleted: Bool { record.flags.rawValue & DocumentRecord.Flags.isDeleted != 0 }
  /// Whether there is more than one live leaf revision.
  public var isConflicted: Bool { record.flags.contains(.conflicted) }

  /// The body in place; nil when what is stored can't be read.
  @inlinable public var body: Value? {
    @_lifetime(copy self)
    get { Value(rootOf: record.body) }
  }

  /// The property of a resolved name in place, or nil.
  public subscript(key: Key) -> Value? {
    @_lifetime(copy self)
    get {
      guard let body else { return nil }
      return body[key]
    }
  }

  /// How many shared keys the body's encoder needed.
  @inlinable public var sharedKeyCount: Int { record.keyCount }

  /// A document of its own, to keep.
  public func document() throws -> Document {
    try Document(id: id, record: bytes, sharedKeys: sharedKeys)
  }

  /// Appends the body as JSON; `canonical` with sorted keys.
  public func writeJSON(canonical: Bool = true, into json: inout [UInt8]) throws {
    guard let body else { throw DocumentRecord.damaged }
    do { try body.writeJSON(sharedKeys: sharedKeys, canonical: canonical, into: &json) } catch {
      throw DocumentError(.damaged, "a stored body can't be read: \(error)", documentID: id)
    }
  }

  /// The current revision's ID. Throws `damaged` when it can't be read.
  public func revisionID() throws -> RevisionID {
    try record.currentRevisionID()
  }
}
