import Fleece

/// A stored document as it was when it was read: never changes, and may be kept and passed on.
///
/// Properties are looked at where they lie; nothing is decoded but what is asked for.
public struct Document: Sendable {
  /// The document's ID.
  public let id: String
  private let record: StoredBytes
  private(set) var sharedKeys: SharedKeys

  private let flags: DocumentRecord.Flags
  private let bodyStart: Int
  /// How many shared keys the body needs.
  let keyCount: Int

  init(id: String, record: RawSpan, sharedKeys: SharedKeys) throws {
    let parsed = try DocumentRecord(record)
    // So that the revision's ID can always be told.
    _ = try parsed.currentRevision()
    self.id = id
    self.record = StoredBytes(copying: record)
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

  /// A tombstone: the document was deleted, its ID and revisions are remembered.
  public var isDeleted: Bool { flags.contains(.deleted) }

  /// Whether there is more than one live leaf revision.
  public var isConflicted: Bool { flags.contains(.conflicted) }

  /// The current revision's ID.
  public var revisionID: RevisionID {
    // It was parsed when the document was read, so it is there.
    record.withBytes { bytes in
      (try? DocumentRecord(bytes.bytes).currentRevisionID()) ?? RevisionID(generation: 0, suffix: "")
    }
  }

  /// The property of that name; a missing one answers nil to everything.
  public subscript(name: String) -> Property {
    Property(Key(name, in: sharedKeys), root: root, of: record, sharedKeys)
  }

  /// The property of a name that was resolved once (`DocumentStore.key(_:)`), for reading many documents.
  public subscript(key: Key) -> Property { Property(key, root: root, of: record, sharedKeys) }

  /// The names of all properties.
  public var keys: [String] { whole.keys }

  /// The number of properties.
  public var count: Int { whole.count }

  /// The property of that name, nil when there is none.
  public func member(_ name: String) -> Property? {
    let property = self[name]
    return property.exists ? property : nil
  }

  /// A copy to change and to save.
  ///
  /// Throws `damaged` when the body can't be read.
  public func toMutable() throws -> MutableDocument { try MutableDocument(self) }

  /// The body as a property, for what it shares with objects.
  var whole: Property { Property(root, of: record, sharedKeys) }

  // Points into `record`, which never changes and which whoever uses the value keeps.
  private var root: UnsafeValue? {
    record.withBytes { FleeceReader.root(of: UnsafeRawBufferPointer(rebasing: $0[bodyStart...])) }
  }

  /// The whole body as a value of its own. Throws `damaged` when it can't be read.
  public func value() throws -> JSONValue {
    guard let root else { throw DocumentRecord.damaged }
    return try withExtendedLifetime(record) {
      try undamaged { () throws(FleeceError) in try root.jsonValue(sharedKeys: sharedKeys) }
    }
  }

  /// The body as UTF-8 of JSON, its keys sorted. Throws `damaged` when it can't be read.
  public func json() throws -> [UInt8] {
    guard let root else { throw DocumentRecord.damaged }
    return try withExtendedLifetime(record) {
      var json: [UInt8] = []
      try undamaged { () throws(FleeceError) in
        try root.writeJSON(sharedKeys: sharedKeys, canonical: true, into: &json)
      }
      return json
    }
  }
}

extension Document: KeyedProperties {}

extension Document: Equatable {
  /// Whether both have the same ID and the same properties, whatever their revisions.
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
