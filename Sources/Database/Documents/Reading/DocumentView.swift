import Blobs
import Fleece
import Storage

/// A document of a snapshot, in place. It can't escape the closure that receives it. `document()` makes a
/// copy.
public struct DocumentView: ~Escapable {
  /// The ID's UTF-8 in place.
  public let idBytes: RawSpan
  /// The whole stored record in place.
  @usableFromInline package let bytes: RawSpan
  @usableFromInline let record: DocumentRecord
  // The snapshot keeps the shared keys alive, and it lends the view.
  @usableFromInline unowned(unsafe) let sharedKeys: SharedKeys
  // So does the store of the snapshot.
  @usableFromInline unowned(unsafe) let blobs: BlobSource?

  /// Creates the view of an entry that `DocumentSnapshot.forEachRecord` lends. Throws when the record can't
  /// be read.
  @inlinable @inline(__always)
  @_lifetime(copy idBytes, copy bytes)
  package init(
    idBytes: RawSpan, record bytes: RawSpan, sharedKeys: SharedKeys, blobs: BlobSource? = nil
  ) throws {
    self.record = try DocumentRecord(bytes)
    self.idBytes = idBytes
    self.bytes = bytes
    self.sharedKeys = sharedKeys
    self.blobs = blobs
  }

  /// The document's ID.
  public var id: String { String(copying: idBytes) }
  /// The sequence of the document's latest change.
  @inlinable public var sequence: UInt64 { record.sequence }
  /// Whether the document is a tombstone.
  @inlinable public var isDeleted: Bool { record.flags.rawValue & DocumentRecord.Flags.isDeleted != 0 }
  /// Whether there is more than one live leaf revision.
  public var isConflicted: Bool { record.flags.contains(.conflicted) }

  /// The body in place, nil if it can't be read.
  @inlinable public var body: Value? {
    @_lifetime(copy self)
    get { Value(rootOf: record.body) }
  }

  /// Returns the property for a resolved name in place, or nil.
  public subscript(key: Key) -> Value? {
    @_lifetime(copy self)
    get {
      guard let body else { return nil }
      return body[key]
    }
  }

  /// The number of shared keys that the body needs.
  @inlinable package var sharedKeyCount: Int { record.keyCount }

  /// Returns a copy of the document that can be kept.
  public func document() throws -> Document {
    try Document(id: id, record: bytes, sharedKeys: sharedKeys, blobs: blobs)
  }

  /// Appends the body as JSON. With `canonical`, keys are sorted. Throws `damaged` when the body can't be
  /// read.
  public func writeJSON(canonical: Bool = true, into json: inout [UInt8]) throws {
    guard let body else { throw DocumentRecord.damaged }
    do { try body.writeJSON(sharedKeys: sharedKeys, canonical: canonical, into: &json) } catch {
      throw DocumentError(.damaged, "a stored body can't be read: \(error)", documentID: id)
    }
  }

  /// Returns the current revision's ID. Throws `damaged` when it can't be read.
  public func revisionID() throws -> RevisionID {
    try record.currentRevisionID()
  }
}
