import Blobs
import Bytes
import Fleece

/// A stored document as it was when it was read. It is immutable, and it may be kept and shared.
///
/// Properties are read directly from the stored record. Only requested values are decoded.
public struct Document: Sendable {
  /// The document's ID.
  public let id: String
  private let record: StoredBytes
  private(set) var sharedKeys: SharedKeys

  private let flags: DocumentRecord.Flags
  private let bodyStart: Int
  /// The number of shared keys that the body needs.
  let keyCount: Int

  init(id: String, record: RawSpan, sharedKeys: SharedKeys, blobs: BlobSource? = nil) throws {
    let parsed = try DocumentRecord(record)
    // Fails early: `revisionID` relies on a readable revision.
    _ = try parsed.currentRevision()
    self.id = id
    self.record = StoredBytes(copying: record, blobs: blobs)
    self.sharedKeys = sharedKeys
    flags = parsed.flags
    sequence = parsed.sequence
    keyCount = parsed.keyCount
    bodyStart = record.byteCount - parsed.body.byteCount
  }

  private init(_ other: Document, sharedKeys: SharedKeys) {
    self = other
    self.sharedKeys = sharedKeys
  }

  func with(_ sharedKeys: SharedKeys) -> Document { Document(self, sharedKeys: sharedKeys) }

  func withRecord<Result>(_ body: (DocumentRecord) throws -> Result) throws -> Result {
    try record.withBytes { try body(DocumentRecord($0.bytes)) }
  }

  /// The sequence of the document's latest change.
  public let sequence: UInt64

  /// Whether the document is a tombstone: it was deleted, but its ID and revisions are kept.
  public var isDeleted: Bool { flags.contains(.deleted) }

  /// Whether there is more than one live leaf revision.
  public var isConflicted: Bool { flags.contains(.conflicted) }

  /// The ID of the current revision.
  public var revisionID: RevisionID {
    // The initializer has parsed it, so this can't fail.
    record.withBytes { bytes in
      (try? DocumentRecord(bytes.bytes).currentRevisionID()) ?? RevisionID(generation: 0, suffix: "")
    }
  }

  /// Returns the property with this name. A missing property returns nil for every type.
  public subscript(name: String) -> Property {
    Property(Key(name, in: sharedKeys), root: root, of: record, sharedKeys)
  }

  /// Returns the property for a resolved name (`Database.key(_:)`). Faster when many documents are read.
  public subscript(key: Key) -> Property { Property(key, root: root, of: record, sharedKeys) }

  /// The names of all properties.
  public var keys: [String] { whole.keys }

  /// The number of properties.
  public var count: Int { whole.count }

  /// Returns the property with this name, nil if there is none.
  public func member(_ name: String) -> Property? {
    let property = self[name]
    return property.exists ? property : nil
  }

  /// Returns a copy that can be changed and saved.
  ///
  /// Throws `damaged` when the body can't be read.
  public func toMutable() throws -> MutableDocument { try MutableDocument(self) }

  /// The body as a property. It has what objects have.
  var whole: Property { Property(root, of: record, sharedKeys) }

  // Points into `record`, which never changes. The users of the value keep `record` alive.
  private var root: UnsafeValue? {
    record.withBytes { FleeceReader.root(of: UnsafeRawBufferPointer(rebasing: $0[bodyStart...])) }
  }

  /// Calls `body` with the body in place and its shared keys. Nil when it can't be read.
  func withRoot<Result>(
    _ body: (UnsafeValue, SharedKeys) throws(FleeceError) -> Result
  ) throws(FleeceError) -> Result? {
    guard let root else { return nil }
    defer { withExtendedLifetime(record) {} }
    return try body(root, sharedKeys)
  }

  /// Returns the whole body as a `JSONValue`. Throws `damaged` when it can't be read.
  public func value() throws -> JSONValue {
    guard let root else { throw DocumentRecord.damaged }
    let value = try withExtendedLifetime(record) {
      try undamaged { () throws(FleeceError) in try root.jsonValue(sharedKeys: sharedKeys) }
    }
    return value.withContent(from: record)
  }

  /// Returns the body as JSON in UTF-8 with sorted keys. Throws `damaged` when it can't be read.
  public func json() throws -> [UInt8] { try withJSON { [UInt8]($0) } }

  /// Lends the body as the same JSON to `body`. Throws `damaged` when it can't be read.
  package func withJSON<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) throws -> Result {
    guard let root else { throw DocumentRecord.damaged }
    var text = ByteBuffer(capacity: 2048)
    try withExtendedLifetime(record) {
      try undamaged { () throws(FleeceError) in
        try root.writeJSON(sharedKeys: sharedKeys, canonical: true, into: &text)
      }
    }
    return try body(text.bytes)
  }
}

extension Document: KeyedProperties {}

extension Document: Equatable {
  /// Returns whether both have the same ID and the same properties. Revisions aren't compared.
  public static func == (left: Document, right: Document) -> Bool {
    guard left.id.utf8.elementsEqual(right.id.utf8) else { return false }
    guard let body = try? left.value() else { return false }
    return body == (try? right.value())
  }
}

extension Document: Hashable {
  /// Hashes the ID.
  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}
