import Bytes
import Fleece
import Storage

/// Which rows of a view are wanted, in which order, and what is made of them.
///
/// `ViewQuery` makes one with the meaning of the Couchbase Lite guide, and `CouchDBViewOptions` one with CouchDB's.
package struct ViewSelection: Sendable {
  /// A key that is looked for.
  package enum Key: Sendable {
    case value(JSONValue)
    /// JSON text, whose objects keep the order of their members.
    case json([UInt8])
  }

  /// An end of a range of keys.
  package struct Bound: Sendable {
    package var key: Key
    /// Divides the rows of this key: a row is before or after it by the document's ID, too.
    package var documentID: String?
    /// Whether the rows equal to the bound belong to the range.
    package var isInclusive = true

    package init(_ key: JSONValue, documentID: String? = nil, isInclusive: Bool = true) {
      self.init(.value(key), documentID: documentID, isInclusive: isInclusive)
    }

    package init(_ key: Key, documentID: String? = nil, isInclusive: Bool = true) {
      self.key = key
      self.documentID = documentID
      self.isInclusive = isInclusive
    }
  }

  /// The first key in the order of the rows: the highest one if they descend.
  package var start: Bound?
  /// The last key in the order of the rows.
  package var end: Bound?
  /// Rows with these keys only, in their order; the range doesn't count then.
  package var keys: [Key]?
  /// Among the rows with each of `keys`, the first document's ID, in the order of the rows.
  package var keysStartDocumentID: String?
  /// Among the rows with each of `keys`, the last document's ID.
  package var keysEndDocumentID: String?
  /// Widens the upper bound: see `ViewKeyEncoder.prefixMatch`.
  package var prefixMatchLevel = 0
  package var isDescending = false
  package var skip = 0
  /// The maximum number of rows; nil for all.
  package var limit: Int?
  /// Nil: rows as they were emitted.
  package var grouping: Grouping?
  /// Only rows of documents whose IDs begin with these bytes; nil: of all. The other rows are read too.
  package var documentPrefix: [UInt8]?

  /// How rows are reduced.
  package enum Grouping: Sendable, Hashable {
    /// All rows to one.
    case all
    /// The rows whose array keys agree in the first n items to one.
    case level(Int)
    /// The rows with equal keys to one.
    case keys
  }

  package init() {}

  /// The ranges of row keys, in the order in which they are read.
  func ranges(_ encoder: ViewKeyEncoder) throws -> [KeyRange] {
    if let keys {
      return try keys.map { key in
        try range(
          Bound(key, documentID: keysStartDocumentID), Bound(key, documentID: keysEndDocumentID), encoder)
      }
    }
    return [try range(start, end, encoder)]
  }

  /// The row keys between two ends that are in the order of the rows.
  private func range(_ start: Bound?, _ end: Bound?, _ encoder: ViewKeyEncoder) throws -> KeyRange {
    var lower = isDescending ? end : start
    var upper = isDescending ? start : end
    if let bound = upper, prefixMatchLevel > 0, keys == nil {
      upper?.key = .value(ViewKeyEncoder.prefixMatch(try bound.key.parsed(), level: prefixMatchLevel))
    }
    if lower?.documentID?.isEmpty ?? false { lower?.documentID = nil }
    return KeyRange(
      lower: try lower.map { try lowerBound($0, encoder) } ?? .unbounded,
      upper: try upper.map { try upperBound($0, encoder) } ?? .unbounded)
  }

  private func lowerBound(_ bound: Bound, _ encoder: ViewKeyEncoder) throws -> KeyRange.Bound {
    let encoded = try ViewSelection.encode(bound.key, documentID: bound.documentID, encoder)
    if bound.isInclusive { return .inclusive(encoded) }
    guard case .exclusive(let next) = KeyRange.upperBound(ofPrefix: encoded) else { return .unbounded }
    return .inclusive(next)
  }

  private func upperBound(_ bound: Bound, _ encoder: ViewKeyEncoder) throws -> KeyRange.Bound {
    let encoded = try ViewSelection.encode(bound.key, documentID: bound.documentID, encoder)
    return bound.isInclusive ? KeyRange.upperBound(ofPrefix: encoded) : .exclusive(encoded)
  }

  /// The beginning of the row keys of a key, or of a key and a document.
  static func encode(_ key: JSONValue, documentID: String? = nil, _ encoder: ViewKeyEncoder) throws -> [UInt8]
  {
    try encode(.value(key), documentID: documentID, encoder)
  }

  static func encode(_ key: Key, documentID: String? = nil, _ encoder: ViewKeyEncoder) throws -> [UInt8] {
    var buffer = ByteBuffer(capacity: 256)
    switch key {
    case .value(let value): try encoder.append(value, to: &buffer)
    case .json(let text): try text.withUnsafeBytes { try encoder.append(json: $0, to: &buffer) }
    }
    if var documentID {
      documentID.withUTF8 { StoredRow.escape(UnsafeRawBufferPointer($0), into: &buffer) }
    }
    return [UInt8](buffer.bytes)
  }
}

extension ViewSelection.Key {
  /// The value.
  func parsed() throws -> JSONValue {
    switch self {
    case .value(let value): value
    case .json(let text): try text.withUnsafeBytes { try JSONValue(json: $0) }
    }
  }
}
