// Blobs in documents for clients that know only attachments. As in Couchbase Lite, each blob of a body stands once more among the
// attachments, and isn't stored there:
//
//   {"photo": {"@type": "blob", "digest": D, …}, "_attachments": {"blob_/photo": {"digest": D, …}}}
//
// The name is `blob_` and the JSON pointer (RFC 6901) of the blob. Which revision has changed it isn't known, so `revpos` is the
// generation of the revision itself, and replicators fetch it with each.

import Blobs
import Bytes
import Documents
import Fleece
import Glibc

/// Finds the blobs of bodies.
enum BlobsAsAttachments {
  /// The deepest nesting that is followed, that of any body.
  private static let maximumDepth = FleeceLimits.depth

  /// The blobs in a stored body, as attachments without `revpos`.
  static func all(in body: UnsafeValue, _ sharedKeys: SharedKeys) -> [StoredAttachment] {
    var found: [StoredAttachment] = []
    visit(body, "", 0, sharedKeys, &found)
    return found
  }

  /// Whether the JSON text of a body, which a `JSONWriter` has made, may have a blob. False is certain.
  static func mayBe(in text: UnsafeRawBufferPointer) -> Bool {
    let sign: StaticString = "@type\":\"blob\""
    let (length, at) = (sign.utf8CodeUnitCount, Int32(UInt8(ascii: "@")))
    var rest = text
    while rest.count >= length, let start = rest.baseAddress, let found = memchr(start, at, rest.count) {
      let place = start.distance(to: found)
      guard rest.count - place >= length else { return false }
      if memcmp(found, sign.utf8Start, length) == 0 { return true }
      rest = UnsafeRawBufferPointer(rebasing: rest[(place + 1)...])
    }
    return false
  }

  private static func visit(
    _ value: UnsafeValue, _ path: String, _ depth: Int, _ sharedKeys: SharedKeys,
    _ found: inout [StoredAttachment]
  ) {
    guard depth <= maximumDepth else { return }
    switch value.type {
    case .array:
      for (index, item) in value.items.enumerated() where item.type == .array || item.type == .dict {
        visit(item, "\(path)/\(index)", depth + 1, sharedKeys, &found)
      }
    case .dict:
      if !path.isEmpty, let blob = blob(value, path, sharedKeys) { found.append(blob) }
      for entry in value.entries where entry.value.type == .array || entry.value.type == .dict {
        guard let name = entry.name(in: sharedKeys) else { continue }
        if path.isEmpty, name == Attachment.property { continue }
        visit(entry.value, "\(path)/\(BlobStandIn.token(name))", depth + 1, sharedKeys, &found)
      }
    default: break
    }
  }

  private static func blob(_ value: UnsafeValue, _ path: String, _ sharedKeys: SharedKeys)
    -> StoredAttachment?
  {
    guard value.value(of: "@type", sharedKeys: sharedKeys)?.string == "blob",
      let digest = value.value(of: "digest", sharedKeys: sharedKeys)?.string.flatMap({ BlobDigest($0) })
    else { return nil }
    let length = value.value(of: "length", sharedKeys: sharedKeys)?.uint ?? 0
    var standIn = StoredAttachment(
      name: BlobStandIn.name(of: path), digest: digest, length: length,
      contentType: value.value(of: "content_type", sharedKeys: sharedKeys)?.string
        ?? StoredAttachment.defaultType,
      revpos: nil, isCompressed: false, storedLength: length)
    standIn.isStandIn = true
    return standIn
  }

  /// Puts the attachments of a document that is saved into the blobs for which they stand, and marks them. `body` is its text without
  /// attachments. `changes` are what each of them does to its blob. `decode` is called for one that is stored as gzip, as no blob is.
  ///
  /// Returns the body if it isn't the same any more.
  static func settle(
    _ attachments: inout [StoredAttachment], _ changes: [BlobStandIn.Change],
    body: @autoclosure () -> [UInt8], _ memory: RequestMemory?,
    decode: (StoredAttachment) throws -> StoredAttachment
  ) throws -> [UInt8]? {
    // Those of the revision before are marked already.
    guard attachments.contains(where: { BlobStandIn.mayName($0.name) && !$0.isStandIn }) else { return nil }
    guard var members = try object(body(), memory) else { return nil }
    var isChanged = false
    for (index, change) in zip(attachments.indices, changes) {
      guard let path = BlobStandIn.path(attachments[index].name) else { continue }
      _ = try BlobStandIn.withBlob(at: path[...], in: &members) { blob in
        if attachments[index].isCompressed, change != .none {
          attachments[index] = try decode(attachments[index])
        }
        attachments[index].isStandIn = true
        if BlobStandIn.adopt(attachments[index].asBlob, change, &blob) { isChanged = true }
      }
    }
    if attachments.contains(where: { BlobStandIn.isNumbered($0.name) }) {
      let digests = BlobStandIn.digests(in: .object(members))
      for index in attachments.indices
      where BlobStandIn.isNumbered(attachments[index].name)
        && digests.contains(.string(attachments[index].digest.text))
      {
        attachments[index].isStandIn = true
      }
    }
    return isChanged ? try JSONValue.object(members).jsonText() : nil
  }

  /// The body without the blob for which an attachment stands; nil if there is none.
  static func body(_ body: [UInt8], without name: String, _ memory: RequestMemory?) throws -> [UInt8]? {
    guard BlobStandIn.path(name) != nil, var members = try object(body, memory),
      BlobStandIn.remove(name, from: &members)
    else { return nil }
    return try JSONValue.object(members).jsonText()
  }

  private static func object(_ text: [UInt8], _ memory: RequestMemory?) throws -> JSONObject? {
    try memory?.hold(text.withUnsafeBytes { JSONValue.memory(of: $0) })
    return text.withUnsafeBytes { try? JSONValue(json: $0) }?.object
  }
}

extension StoredAttachment {
  /// What a blob of the same bytes says of itself.
  fileprivate var asBlob: JSONObject {
    [
      "digest": .string(digest.text), "length": JSONValue(length), "content_type": .string(contentType),
    ]
  }
}
