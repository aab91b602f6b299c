import Documents
import Fleece

/// A document as a map function gets it, in place. It is valid until the function returns.
public struct MappedDocument: ~Escapable {
  let view: DocumentView
  private let body: Value?
  // Whoever lends the document keeps them.
  unowned(unsafe) let sharedKeys: SharedKeys
  let options: MapOptions

  @_lifetime(copy view)
  init(_ view: DocumentView, _ sharedKeys: SharedKeys, _ options: MapOptions) {
    self.view = view
    body = view.body
    self.sharedKeys = sharedKeys
    self.options = options
  }

  /// The document's ID: `_id`.
  public var id: String { view.id }

  /// The ID of the revision: `_rev`. Throws `damaged` when it can't be read.
  public var revisionID: RevisionID { get throws { try view.revisionID() } }

  /// The sequence of the revision: `_local_seq`. Throws `damaged` when it can't be read.
  public var sequence: UInt64 { get throws { try view.currentSequence() } }

  /// The IDs of the other live leaves: `_conflicts`. Throws `damaged` when they can't be read.
  public var conflicts: [RevisionID] {
    get throws { view.isConflicted ? try view.conflictingLeaves().live : [] }
  }

  /// A property in place, or nil.
  ///
  /// Only the body's own properties: `_id`, `_rev`, `_local_seq` and `_conflicts` have properties of their own here.
  public subscript(name: String) -> Value? {
    @_lifetime(copy self)
    get {
      guard let body else { return nil }
      return body.value(of: name, sharedKeys: sharedKeys)
    }
  }

  /// All properties in memory, with `_id`, `_rev`, `_local_seq` and, of a conflicted document, `_conflicts`.
  public func properties() throws -> JSONObject {
    var json: [UInt8] = []
    try writeJSON(into: &json)
    let value = try json.withUnsafeBytes { try JSONValue(json: $0) }
    return value.object ?? JSONObject()
  }

  /// Appends the JSON of the document with the properties that map functions see.
  func writeJSON(into json: inout [UInt8]) throws {
    try MapInput.writeJSON(of: view, sharedKeys: sharedKeys, options, into: &json)
  }
}

/// What map functions see besides the properties.
struct MapOptions: Sendable, Hashable {
  /// Whether documents have `_local_seq`.
  var hasSequence = true
  /// Whether documents have `_deleted_conflicts`.
  var hasDeletedConflicts = false
  /// Whether design documents are mapped.
  var includesDesign = false
}

enum MapInput {
  /// Appends the JSON of a document with `_id`, `_rev` and so on, in one object. Returns whether it has more than the
  /// revision: the sequence, or other leaves.
  @discardableResult
  static func writeJSON(
    of view: DocumentView, sharedKeys: SharedKeys, _ options: MapOptions, into json: inout [UInt8]
  ) throws -> Bool {
    guard let body = view.body else {
      throw DocumentError(.damaged, "a stored document can't be read", documentID: view.id)
    }
    let extra = try Extra(
      sequence: options.hasSequence ? view.currentSequence() : nil,
      leaves: view.mayHaveConflicts ? view.conflictingLeaves() : ([], []))
    try writeJSON(
      id: view.idBytes, revisionID: view.revisionID(), body, sharedKeys: sharedKeys, extra,
      hasDeletedConflicts: options.hasDeletedConflicts, into: &json)
    return options.hasSequence || !extra.leaves.live.isEmpty
      || options.hasDeletedConflicts && !extra.leaves.deleted.isEmpty
  }

  struct Extra {
    var sequence: UInt64?
    var leaves: (live: [RevisionID], deleted: [RevisionID]) = ([], [])
    var isDeleted = false
  }

  static func writeJSON(
    id: RawSpan, revisionID: RevisionID, _ body: Value, sharedKeys: SharedKeys, _ extra: Extra = Extra(),
    hasDeletedConflicts: Bool = false, into json: inout [UInt8]
  ) throws {
    var writer = JSONWriter()
    func member(_ name: StaticString, _ writer: inout JSONWriter) {
      name.withUTF8Buffer { writer.append(json: UnsafeRawBufferPointer($0)) }
    }
    member("{\"_id\":", &writer)
    id.withUnsafeBytes { writer.append(string: $0) }
    member(",\"_rev\":", &writer)
    writer.append(string: revisionID.description)
    if let sequence = extra.sequence {
      member(",\"_local_seq\":", &writer)
      writer.append(sequence)
    }
    if extra.isDeleted { member(",\"_deleted\":true", &writer) }
    func list(_ ids: [RevisionID], _ writer: inout JSONWriter) {
      writer.append(byte: UInt8(ascii: "["))
      for (index, id) in ids.enumerated() {
        if index > 0 { writer.append(byte: UInt8(ascii: ",")) }
        writer.append(string: id.description)
      }
      writer.append(byte: UInt8(ascii: "]"))
    }
    if !extra.leaves.live.isEmpty {
      member(",\"_conflicts\":", &writer)
      list(extra.leaves.live, &writer)
    }
    if hasDeletedConflicts, !extra.leaves.deleted.isEmpty {
      member(",\"_deleted_conflicts\":", &writer)
      list(extra.leaves.deleted, &writer)
    }
    writer.write(to: &json)
    // The members of the body follow; its own opening brace becomes a comma.
    let start = json.count
    do { try body.writeJSON(sharedKeys: sharedKeys, canonical: false, into: &json) } catch {
      throw DocumentError(.damaged, "a stored body can't be read: \(error)", documentID: String(copying: id))
    }
    if json.count == start + 2 {
      json.removeLast(2)
      json.append(UInt8(ascii: "}"))
    } else {
      json[start] = UInt8(ascii: ",")
    }
  }
}
