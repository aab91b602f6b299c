import Bytes
import Documents
import Fleece
import Storage

/// The rows of a result, in one piece of memory.
final class RowBuffer: Sendable {
  struct Place: Sendable {
    /// The bytes of a row: the key's JSON, the value's, the document's ID.
    var start: Int
    var keyEnd: Int
    var valueEnd: Int
    var end: Int
    var sequence: UInt64
    var kind: StoredRow.ValueKind
    /// Whether the row is a group's.
    var isReduced: Bool
    /// The end of the special key's bytes, which follow the document's ID; `end` if there are none.
    var specialEnd: Int
    var specialKind = StoredRow.SpecialKind.none
  }

  let bytes: [UInt8]
  let places: [Place]
  /// Of a full-text query.
  let highlights: TextHighlights?

  init(_ bytes: [UInt8], _ places: [Place], _ highlights: TextHighlights? = nil) {
    self.bytes = bytes
    self.places = places
    self.highlights = highlights
  }
}

/// A row of a view, as it was when the query ran.
public struct ViewRow: Sendable {
  private let buffer: RowBuffer
  private let place: RowBuffer.Place
  private let store: DocumentStore
  private var prefetched: Document??

  init(_ buffer: RowBuffer, _ index: Int, _ store: DocumentStore, prefetched: Document?? = .none) {
    self.buffer = buffer
    place = buffer.places[index]
    self.store = store
    self.prefetched = prefetched
  }

  /// The same row with its document.
  func prefetching(_ document: Document?) -> ViewRow {
    var row = self
    row.prefetched = .some(document)
    return row
  }

  /// The key as JSON text.
  public var keyJSON: String { text(place.start..<place.keyEnd) }
  /// The value as JSON text: `null` if there is none.
  public var valueJSON: String { place.kind == .none ? "null" : text(place.keyEnd..<place.valueEnd) }

  /// The key: that of the group if rows were reduced, null if all were reduced to one.
  public var key: JSONValue { json(place.start..<place.keyEnd) }
  /// The value. Null if the function emitted none.
  public var value: JSONValue { place.kind == .none ? .null : json(place.keyEnd..<place.valueEnd) }

  /// An item of an array key; the key itself for the index 0 of another key; null if there is no such item.
  public func key(at index: Int) -> JSONValue {
    guard case .array(let items) = key else { return index == 0 ? key : .null }
    return items.indices.contains(index) ? items[index] : .null
  }

  /// The ID of the document that emitted the row; nil for a reduced row.
  public var sourceDocumentID: String? { place.isReduced ? nil : text(place.valueEnd..<place.end) }

  /// The ID of the document that the row refers to: `_id` of a value that is an object with it, otherwise the document
  /// that emitted the row. Nil for a reduced row.
  public var documentID: String? {
    guard !place.isReduced else { return nil }
    if place.kind == .json, let id = member("_id")?.string { return id }
    return sourceDocumentID
  }

  /// The revision of the document: that of `document` if it was loaded with the row, otherwise `_rev` or `rev` of a
  /// value that is an object with it.
  public var documentRevisionID: RevisionID? {
    if case .some(.some(let document)) = prefetched { return document.revisionID }
    return (member("_rev") ?? member("rev"))?.string.flatMap { RevisionID($0) }
  }

  private func member(_ name: String) -> JSONValue? {
    let first = place.keyEnd < place.valueEnd ? buffer.bytes[place.keyEnd] : 0
    guard first == UInt8(ascii: "{"), case .object(let members) = value else { return nil }
    return members[name]
  }

  /// The sequence of the revision that emitted the row, 0 for a reduced row.
  public var sequence: UInt64 { place.sequence }

  /// Returns the document that the row refers to, or nil if there is none: as it was when the query ran if the query
  /// prefetched it, as it is now otherwise.
  public func document() throws -> Document? {
    if case .some(let document) = prefetched { return document }
    guard let documentID else { return nil }
    return try store.document(documentID)
  }

  /// Returns the revisions that conflict in the document that the row refers to, the current one first; none if there is
  /// no conflict.
  public func conflictingRevisions() throws -> [Revision] {
    guard let documentID, try store.document(documentID)?.isConflicted ?? false else { return [] }
    return try store.leaves(of: documentID)
  }

  private func text(_ range: Range<Int>) -> String { String(decoding: buffer.bytes[range], as: UTF8.self) }

  private func json(_ range: Range<Int>) -> JSONValue {
    // What was stored was JSON.
    buffer.bytes[range].withUnsafeBytes { (try? JSONValue(json: $0)) ?? .null }
  }

  var keyBytes: ArraySlice<UInt8> { buffer.bytes[place.start..<place.keyEnd] }
  var valueBytes: ArraySlice<UInt8> { buffer.bytes[place.keyEnd..<place.valueEnd] }
  var idBytes: ArraySlice<UInt8> { buffer.bytes[place.valueEnd..<place.end] }
  var specialBytes: ArraySlice<UInt8> { buffer.bytes[place.end..<place.specialEnd] }
  var specialKind: StoredRow.SpecialKind { place.specialKind }
  var highlights: TextHighlights? { buffer.highlights }
  var hasValue: Bool { place.kind != .none }
  package var isReduced: Bool { place.isReduced }
  var isDocument: Bool { place.kind == .document }
}

extension ViewRow: Equatable {
  /// Returns whether keys, documents and values are equal, and places or texts that are keys. Of rows whose values are the documents themselves, the
  /// sequences are compared.
  public static func == (left: ViewRow, right: ViewRow) -> Bool {
    guard left.keyBytes == right.keyBytes, left.idBytes == right.idBytes, left.isDocument == right.isDocument,
      left.hasValue == right.hasValue, left.isReduced == right.isReduced,
      left.specialBytes == right.specialBytes
    else { return false }
    return left.isDocument ? left.sequence == right.sequence : left.valueBytes == right.valueBytes
  }
}

/// The rows of a query, as they were when it ran.
public struct ViewResults: Sendable {
  private let buffer: RowBuffer
  private let store: DocumentStore
  private let prefetched: [Document?]?
  /// The database's last sequence when the query ran.
  public let sequence: UInt64
  /// The sequence of the last update that changed rows, when the query ran.
  public let lastSequenceChangedAt: UInt64
  /// The number of rows of the whole view, before any is chosen or reduced.
  public let totalRows: Int
  /// Whether documents had changed since the view was brought up to date, when the query ran.
  public let wasStale: Bool

  init(
    _ buffer: RowBuffer, _ store: DocumentStore, prefetched: [Document?]?, sequence: UInt64,
    changedAt: UInt64,
    totalRows: Int, wasStale: Bool
  ) {
    self.buffer = buffer
    self.store = store
    self.prefetched = prefetched
    self.sequence = sequence
    lastSequenceChangedAt = changedAt
    self.totalRows = totalRows
    self.wasStale = wasStale
  }

  /// Whether the database has changed since the query ran. The rows may be the same nevertheless.
  public var isStale: Bool { get throws { try wasStale || store.read { try $0.lastSequence } > sequence } }
}

extension ViewResults: RandomAccessCollection {
  /// 0.
  public var startIndex: Int { 0 }
  /// The number of rows.
  public var endIndex: Int { buffer.places.count }

  /// The row at an index.
  public subscript(index: Int) -> ViewRow {
    ViewRow(buffer, index, store, prefetched: prefetched.map { $0[index] })
  }
}

extension ViewResults: Equatable {
  /// Returns whether both have equal rows in the same order.
  public static func == (left: ViewResults, right: ViewResults) -> Bool { left.elementsEqual(right) }
}
