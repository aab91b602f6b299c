import Fleece

/// A stored document as it was when it was read: never changes, and may be kept and passed on.
///
/// Properties are looked at where they lie; nothing is decoded but what is asked for.
public struct Document: Sendable {
  public let id: String
  private let record: StoredBytes
  private(set) var sharedKeys: SharedKeys

  private let flags: DocumentRecord.Flags
  private let bodyStart: Int
  /// How many shared keys the body needs.
  let keyCount: Int

  init(id: String, record: UnsafeRawBufferPointer, sharedKeys: SharedKeys) throws {
    let parsed = try DocumentRecord(record)
    self.id = id
    self.record = StoredBytes(copying: record)
    self.sharedKeys = sharedKeys
    flags = parsed.flags
    sequence = parsed.sequence
    keyCount = parsed.keyCount
    bodyStart = record.count - parsed.body.count
  }

  private init(_ other: Document, sharedKeys: SharedKeys) {
    self = other
    self.sharedKeys = sharedKeys
  }

  func with(_ sharedKeys: SharedKeys) -> Document { Document(self, sharedKeys: sharedKeys) }

  func withRecord<Result>(_ body: (DocumentRecord) throws -> Result) throws -> Result {
    try record.withBytes { try body(DocumentRecord($0)) }
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
      let current = try? DocumentRecord(bytes).currentRevision().id
      return RevisionID(generation: current?.generation ?? 0, suffix: current?.suffix.text ?? "")
    }
  }

  /// The property of that name; a missing one answers nil to everything.
  public subscript(name: String) -> Property {
    Property(Key(name, in: sharedKeys), root: root, of: record, sharedKeys)
  }

  /// The property of a name that was resolved once (`DocumentStore.key(_:)`), for reading many documents.
  public subscript(key: Key) -> Property { Property(key, root: root, of: record, sharedKeys) }

  private var root: Value? {
    record.withBytes { FleeceReader.root(of: UnsafeRawBufferPointer(rebasing: $0[bodyStart...])) }
  }

  /// The whole body as a value of its own.
  public func value() throws -> JSONValue {
    guard let root else { throw DocumentRecord.damaged }
    return try withExtendedLifetime(record) { try root.jsonValue(sharedKeys: sharedKeys) }
  }

  /// The body as JSON, its keys sorted.
  public func json() throws -> [UInt8] {
    guard let root else { throw DocumentRecord.damaged }
    return try withExtendedLifetime(record) {
      var json: [UInt8] = []
      try root.writeJSON(sharedKeys: sharedKeys, canonical: true, into: &json)
      return json
    }
  }
}

/// A property of a document, or a part of one. It keeps the document's bytes alive.
public struct Property: @unchecked Sendable {
  private let record: StoredBytes
  private let sharedKeys: SharedKeys
  // Points into `record`, which never changes.
  private let value: Value?

  fileprivate init(_ key: Key, root: Value?, of record: StoredBytes, _ sharedKeys: SharedKeys) {
    self.init(root?[key], of: record, sharedKeys)
  }

  private init(_ value: Value?, of record: StoredBytes, _ sharedKeys: SharedKeys) {
    self.record = record
    self.sharedKeys = sharedKeys
    self.value = value
  }

  public var exists: Bool { value != nil }
  public var type: ValueType? { value?.type }
  public var bool: Bool? { value?.bool }
  /// Nil unless it is a number that is an integer from Int64.
  public var int: Int64? { value?.int }
  public var double: Double? { value?.double }
  public var string: String? { withExtendedLifetime(record) { value?.string } }
  /// The number of items of an array or of members of an object; 0 of anything else.
  public var count: Int { value?.count ?? 0 }

  public subscript(name: String) -> Property {
    Property(withExtendedLifetime(record) { value?[Key(name, in: sharedKeys)] }, of: record, sharedKeys)
  }

  public subscript(index: Int) -> Property {
    Property(withExtendedLifetime(record) { value?[index] }, of: record, sharedKeys)
  }

  /// The whole as a value of its own; nil when it is missing.
  public func jsonValue() throws -> JSONValue? {
    try withExtendedLifetime(record) { try value?.jsonValue(sharedKeys: sharedKeys) }
  }
}

/// Bytes in one allocation that never change.
struct StoredBytes: @unchecked Sendable {
  /// A class of its own: making one looks up no generic type.
  private final class Buffer: ManagedBuffer<Int, UInt8> {}
  private let buffer: ManagedBuffer<Int, UInt8>

  init(copying bytes: UnsafeRawBufferPointer) {
    buffer = Buffer.create(minimumCapacity: bytes.count) { _ in bytes.count }
    buffer.withUnsafeMutablePointerToElements { elements in
      if let source = bytes.baseAddress, bytes.count > 0 {
        UnsafeMutableRawPointer(elements).copyMemory(from: source, byteCount: bytes.count)
      }
    }
  }

  @inline(__always)
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try buffer.withUnsafeMutablePointers { count, elements in
      try body(UnsafeRawBufferPointer(start: elements, count: count.pointee))
    }
  }
}

/// What a document's body is made from.
public enum DocumentBody: Sendable, ExpressibleByDictionaryLiteral {
  /// UTF-8 of a JSON object.
  case json([UInt8])
  case value(JSONValue)

  public init(json: String) { self = .json(Array(json.utf8)) }

  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .value(.object(JSONObject(elements)))
  }
}

/// A document to be saved: new, or read and changed.
public struct MutableDocument: Sendable {
  public let id: String
  /// The body: an object.
  public var body: JSONValue
  /// The revision it is based on: nil for a new document.
  public internal(set) var revisionID: RevisionID?
  public internal(set) var sequence: UInt64

  /// A new document; without an ID it gets a UUID.
  public init(id: String? = nil, _ body: JSONValue = [:]) {
    self.id = id ?? DocumentID.random()
    self.body = body
    revisionID = nil
    sequence = 0
  }

  /// A stored document to change.
  public init(_ document: Document) throws {
    id = document.id
    body = try document.value()
    revisionID = document.revisionID
    sequence = document.sequence
  }

  public subscript(name: String) -> JSONValue {
    get { body[name] }
    set { body[name] = newValue }
  }
}

/// A revision that another database made, as sync brings it.
public struct PulledRevision: Sendable {
  public var id: String
  /// The revision's own ID and those of its ancestors, newest first, as far as they are known.
  public var history: [String]
  public var isDeleted: Bool
  public var body: DocumentBody

  public init(id: String, history: [String], isDeleted: Bool = false, body: DocumentBody = [:]) {
    self.id = id
    self.history = history
    self.isDeleted = isDeleted
    self.body = body
  }
}

/// A change to a document: the latest one, for each document has one entry.
public struct Change: Sendable, Hashable {
  public let sequence: UInt64
  public let documentID: String
  public let isDeleted: Bool
  public let isConflicted: Bool
}

/// One revision of a document, as far as it is known.
public struct Revision: Sendable {
  public let id: RevisionID
  /// Nil at a root, and where pruning cut the ancestors off.
  public let parent: RevisionID?
  public let isDeleted: Bool
  public let isLeaf: Bool
  /// Whether it is the one that wins.
  public let isCurrent: Bool
  public let sequence: UInt64
  /// Nil when only the ID is known, or when compaction has dropped it.
  public let body: JSONValue?
}
