import Fleece
import Storage

/// A document of a snapshot where it lies: valid inside the closure it is handed to, and not to be kept.
public struct DocumentView {
  /// The ID's UTF-8 in place.
  public let idBytes: UnsafeRawBufferPointer
  /// The whole stored record in place.
  public let bytes: UnsafeRawBufferPointer
  @usableFromInline let record: DocumentRecord
  @usableFromInline unowned(unsafe) let sharedKeys: SharedKeys

  @inlinable @inline(__always)
  init(
    idBytes: UnsafeRawBufferPointer, bytes: UnsafeRawBufferPointer, record: DocumentRecord,
    sharedKeys: SharedKeys
  ) {
    self.idBytes = idBytes
    self.bytes = bytes
    self.record = record
    self.sharedKeys = sharedKeys
  }

  /// The document of an entry that `DocumentSnapshot.forEachRecord` handed out. Throws for what is no document.
  @inlinable @inline(__always)
  public init(
    idBytes: UnsafeRawBufferPointer, record bytes: UnsafeRawBufferPointer, sharedKeys: SharedKeys
  ) throws {
    self.init(
      idBytes: idBytes, bytes: bytes, record: try DocumentRecord(bytes), sharedKeys: sharedKeys)
  }

  /// The document's ID.
  public var id: String { String(decoding: idBytes, as: UTF8.self) }
  /// The sequence of the document's latest change.
  @inlinable public var sequence: UInt64 { record.sequence }
  /// A tombstone.
  @inlinable public var isDeleted: Bool { record.flags.rawValue & DocumentRecord.Flags.isDeleted != 0 }
  /// Whether there is more than one live leaf revision.
  public var isConflicted: Bool { record.flags.contains(.conflicted) }

  /// The body in place; nil when what is stored can't be read.
  @inlinable public var body: Value? { FleeceReader.root(of: record.body) }

  /// The property of a resolved name in place, or nil.
  public subscript(key: Key) -> Value? { FleeceReader.root(of: record.body)?[key] }

  /// How many shared keys the body's encoder needed.
  @inlinable public var sharedKeyCount: Int { record.keyCount }

  /// The same document in other memory, which has room for its `bytes` and, behind them, its `idBytes`. It ends with
  /// that memory, and with the snapshot.
  public func copied(to memory: UnsafeMutableRawPointer) throws -> DocumentView {
    let record = UnsafeMutableRawBufferPointer(start: memory, count: bytes.count)
    let id = UnsafeMutableRawBufferPointer(start: memory + bytes.count, count: idBytes.count)
    record.copyMemory(from: bytes)
    id.copyMemory(from: idBytes)
    return DocumentView(
      idBytes: UnsafeRawBufferPointer(id), bytes: UnsafeRawBufferPointer(record),
      record: try DocumentRecord(UnsafeRawBufferPointer(record)), sharedKeys: sharedKeys)
  }

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
    let id = try record.currentRevision().id
    return RevisionID(generation: id.generation, suffix: id.suffix.text)
  }
}
