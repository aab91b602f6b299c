import Blobs
import Fleece

// Bodies in their stored form.
extension DocumentWriter {
  /// Encodes a body. Top-level names that begin with an underscore are reserved: users can't set them, but
  /// bodies from another database may have them. With `hasRevisionID`, the canonical text for computing a
  /// revision ID isn't needed.
  func encode(
    _ body: DocumentBody, of id: UnsafeRawBufferPointer, isForeign: Bool = false, hasRevisionID: Bool = false
  ) throws -> EncodedBody {
    let keyCount = keys.count
    switch body {
    case .json(let bytes):
      return try bytes.withUnsafeBytes {
        try encode(json: $0, of: id, isForeign: isForeign, hasRevisionID: hasRevisionID)
      }
    case .value(let value):
      do { try encoder.encode(value, keys: keys, withCanonicalJSON: !hasRevisionID) } catch {
        throw refused(error, id)
      }
      var body = try checkedBody(id, isForeign, keyCount)
      if body.mayNameBlobs, JSONObject.anyHasSource.load(ordering: .relaxed) { body.value = value }
      return body
    }
  }

  func encode(
    json: UnsafeRawBufferPointer, of id: UnsafeRawBufferPointer, isForeign: Bool = false,
    hasRevisionID: Bool = false
  ) throws -> EncodedBody {
    let keyCount = keys.count
    do { try encoder.encode(json: json, keys: keys, withCanonicalJSON: !hasRevisionID) } catch {
      throw refused(error, id)
    }
    return try checkedBody(id, isForeign, keyCount)
  }

  /// Encodes the body of a stored document with other values at some paths. Nil for a body with blobs or reserved names, and
  /// for one that isn't as bodies are written.
  func encode(
    _ document: Document, changing changes: [BodyChange], of id: UnsafeRawBufferPointer
  ) throws -> EncodedBody? {
    let isEncoded: Bool?
    do throws(FleeceError) {
      isEncoded = try document.withRoot { root, sharedKeys throws(FleeceError) in
        try encoder.encode(root, sharedKeys: sharedKeys, changing: changes, keys: keys)
      }
    } catch { throw refused(error, id) }
    guard isEncoded == true, encoder.underscoredName == nil, !mayNameBlob(encoder.fleece) else { return nil }
    return EncodedBody(encoder, isForeign: false, mayNameBlobs: false)
  }

  /// Encodes `value`, the changed content of `body`, in its place.
  func encode(_ value: JSONValue, inPlaceOf body: EncodedBody) throws(FleeceError) -> EncodedBody {
    try encoder.encode(value, keys: keys)
    var changed = EncodedBody(
      encoder, isForeign: body.isForeign, mayNameBlobs: body.mayNameBlobs, mayMissBlobs: body.mayMissBlobs)
    changed.value = body.value
    changed.isDeletion = body.isDeletion
    changed.keepsGenerations = body.keepsGenerations
    return changed
  }

  /// Encodes a body of an imported document, without canonical text. The caller puts its blobs in place.
  func encodeImported(json: UnsafeRawBufferPointer) throws(FleeceError) -> EncodedBody {
    try encoder.encode(json: json, keys: keys, withCanonicalJSON: false)
    guard encoder.isObject else { throw .invalidJSON(reason: "the body isn't an object", offset: 0) }
    return EncodedBody(encoder, isForeign: true, mayNameBlobs: false)
  }

  /// Encodes the object `root` of an imported document, which uses other shared keys. The caller puts its
  /// blobs in place.
  func encodeImported(_ root: UnsafeValue, _ sharedKeys: SharedKeys) throws(FleeceError) -> EncodedBody {
    try encoder.transcode(root, sharedKeys: sharedKeys, keys: keys)
    return EncodedBody(encoder, isForeign: true, mayNameBlobs: false)
  }

  /// Encodes the body of a revision that sync delivers, without canonical text.
  func encode(_ body: SyncBody, of id: UnsafeRawBufferPointer) throws -> EncodedBody {
    var encoded = try encodeSynced(body, of: id)
    encoded.keepsUnknownAttachments = true
    return encoded
  }

  private func encodeSynced(_ body: SyncBody, of id: UnsafeRawBufferPointer) throws -> EncodedBody {
    switch body {
    case .json(let json):
      return try json.withUnsafeBytes { try encode(json: $0, of: id, isForeign: true, hasRevisionID: true) }
    case .fleece(let fleece, let sharedKeys):
      return try fleece.withUnsafeBytes { bytes in
        guard let root = FleeceReader.root(of: bytes), root.type == .dict else {
          throw DocumentError(
            .invalidBody, "the body of the document isn't an object", documentID: idText(id))
        }
        do throws(FleeceError) { try encodeForeign(bytes, root, sharedKeys) } catch {
          throw refused(error, id)
        }
        let mayNameBlobs =
          mayNameBlob(encoder.fleece) || root.value(of: Attachment.property, sharedKeys: sharedKeys) != nil
        return EncodedBody(encoder, isForeign: true, mayNameBlobs: mayNameBlobs)
      }
    }
  }

  /// The most names that are taken over from another database for the sake of its first body.
  private static let maximumAdoptedKeys = 512

  /// Encodes a body of another database. A copy of a database takes over its table of shared keys, and then its bodies
  /// as they are once they are checked, which takes less than half the time of encoding them again.
  private func encodeForeign(_ bytes: UnsafeRawBufferPointer, _ root: UnsafeValue, _ sharedKeys: SharedKeys)
    throws(FleeceError)
  {
    if sharedKeys.count - keys.count <= Self.maximumAdoptedKeys, keys.adopt(sharedKeys) {
      try encoder.copy(bytes, sharedKeyCount: sharedKeys.count)
    } else {
      try encoder.transcode(root, sharedKeys: sharedKeys, keys: keys)
    }
  }

  private func refused(_ error: FleeceError, _ id: UnsafeRawBufferPointer) -> DocumentError {
    DocumentError(.invalidBody, error.description, documentID: idText(id))
  }

  /// Checks the last encoded body. Finding out that it refers to no blob takes a few nanoseconds. `keyCount` is
  /// the number of shared keys before it was encoded.
  private func checkedBody(_ id: UnsafeRawBufferPointer, _ isForeign: Bool, _ keyCount: Int) throws
    -> EncodedBody
  {
    guard encoder.isObject else {
      throw DocumentError(
        .invalidBody, "the body of the document isn't a JSON object", documentID: idText(id))
    }
    let name = encoder.underscoredName
    if !isForeign, name != nil {
      if let body = try deletion(id, keyCount) { return body }
    }
    // Only the first reserved name is known. Another one may be `_attachments`. Whether the document may have them is
    // checked when its stored revision is known (`checkReservedNames`).
    return EncodedBody(
      encoder, isForeign: isForeign, mayNameBlobs: name != nil || mayNameBlob(encoder.fleece))
  }

  /// Encodes the last body again without `_deleted`, if it has that with a boolean. True makes the revision a
  /// tombstone with the other properties, as in Couchbase Lite 1.x.
  private func deletion(_ id: UnsafeRawBufferPointer, _ keyCount: Int) throws -> EncodedBody? {
    let sharedKeys = keys.snapshot()
    guard let root = FleeceReader.root(of: encoder.fleece),
      let isDeletion = root.value(of: Self.deletedProperty, sharedKeys: sharedKeys)?.bool
    else { return nil }
    var body: EncodedBody
    do throws(FleeceError) {
      var value = try root.jsonValue(sharedKeys: sharedKeys)
      value.remove(Self.deletedProperty)
      keys.rollBack(to: keyCount)
      try encoder.encode(value, keys: keys)
    } catch { throw refused(error, id) }
    body = try checkedBody(id, false, keyCount)
    body.isDeletion = isDeletion
    return body
  }

  private static let deletedProperty = "_deleted"

  func reserved(_ name: String, _ id: UnsafeRawBufferPointer) -> DocumentError {
    DocumentError(
      .reservedProperty,
      "the property \"\(name)\" is reserved; names of top-level properties can't begin with an underscore",
      documentID: idText(id))
  }
}
