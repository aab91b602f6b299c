import Blobs
import Bytes
import Fleece
import Storage

// What only arrives from elsewhere (by sync, HTTP or an upgrade), and what an edit here may keep: IDs that are longer than
// those that users may choose, reserved names, and blobs that were lost.
extension DocumentWriter {
  /// Throws `invalidDocumentID` if the ID is longer than one that users may choose, unless there is such a document,
  /// or its tombstone.
  func checkChosen(_ id: UnsafeRawBufferPointer) throws {
    guard id.count > DocumentID.maximumBytes, try loadUnordered(id) == nil else { return }
    throw DocumentError(
      .invalidDocumentID,
      "the ID of a new document can have at most \(DocumentID.maximumBytes) bytes of UTF-8, not \(id.count)",
      documentID: String(decoding: id.prefix(100), as: UTF8.self))
  }

  /// Throws `reservedProperty` if a body has a reserved name that the revision `node`, which it goes on top of, doesn't
  /// have.
  func checkReservedNames(
    _ root: UnsafeValue, _ sharedKeys: SharedKeys, _ id: UnsafeRawBufferPointer, on node: Int,
    _ stored: Stored?
  ) throws {
    for entry in root.entries {
      guard let name = entry.utf8(in: sharedKeys), name.first == UInt8(ascii: "_"),
        !ReservedNames.isAllowed(name)
      else { continue }
      let text = String(decoding: name, as: UTF8.self)
      let isKept = try withBody(ofLeaf: node, stored) { body in
        Value(rootOf: body)?.unsafeValue.value(of: text, sharedKeys: sharedKeys) != nil
      }
      guard isKept ?? false else { throw reserved(text, id) }
    }
  }

  /// The digests that the body of the revision `node` names, if it is a leaf.
  func digests(namedByLeaf node: Int, _ stored: Stored?) throws -> Set<BlobDigest> {
    var digests: Set<BlobDigest> = []
    try withBody(ofLeaf: node, stored) { body in
      body.withUnsafeBytes { forEachDigest(in: $0) { digests.insert($0) } }
    }
    return digests
  }

  /// Lends the stored body of a leaf; nil if there is no such leaf.
  @discardableResult
  func withBody<Result>(
    ofLeaf node: Int, _ stored: Stored?, _ body: (RawSpan) throws -> Result
  ) throws -> Result? {
    guard let stored, node >= 0, tree.nodes[node].isLeaf else { return nil }
    guard node > 0 else { return try body(currentBody(of: stored).bytes) }
    return try withSequenceKey(tree.nodes[node].sequence) { key in
      try transaction.withValue(at: key.bytes, in: keyspaces.conflicts) { try body(BodyRecord($0).body) }
    }
  }
}
