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
enum BlobStandIns {
  static let prefix = "blob_/"
  /// The deepest nesting that is followed.
  private static let maximumDepth = 100

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
    guard depth < maximumDepth else { return }
    switch value.type {
    case .array:
      for (index, item) in value.items.enumerated() where item.type == .array || item.type == .dict {
        visit(item, "\(path)/\(index)", depth + 1, sharedKeys, &found)
      }
    case .dict:
      if !path.isEmpty, let blob = blob(value, path, sharedKeys) {
        found.append(blob)
        return
      }
      for entry in value.entries where entry.value.type == .array || entry.value.type == .dict {
        guard let name = entry.name(in: sharedKeys) else { continue }
        if path.isEmpty, name == Attachment.property { continue }
        visit(entry.value, "\(path)/\(pointerToken(name))", depth + 1, sharedKeys, &found)
      }
    default: break
    }
  }

  /// A member's name as a part of a JSON pointer.
  private static func pointerToken(_ name: String) -> String {
    guard name.utf8.contains(where: { $0 == UInt8(ascii: "~") || $0 == UInt8(ascii: "/") }) else {
      return name
    }
    return name.replacing("~", with: "~0").replacing("/", with: "~1")
  }

  private static func blob(_ value: UnsafeValue, _ path: String, _ sharedKeys: SharedKeys)
    -> StoredAttachment?
  {
    guard value.value(of: "@type", sharedKeys: sharedKeys)?.string == "blob",
      let digest = value.value(of: "digest", sharedKeys: sharedKeys)?.string.flatMap({ BlobDigest($0) })
    else { return nil }
    let length = value.value(of: "length", sharedKeys: sharedKeys)?.uint ?? 0
    var standIn = StoredAttachment(
      name: "blob_" + path, digest: digest, length: length,
      contentType: value.value(of: "content_type", sharedKeys: sharedKeys)?.string
        ?? StoredAttachment.defaultType,
      revpos: nil, isCompressed: false, storedLength: length)
    standIn.isStandIn = true
    return standIn
  }

  /// Marks those attachments of a document that is saved which stand for its blobs. `body` is its text without attachments.
  static func mark(
    _ attachments: inout [StoredAttachment], body: @autoclosure () -> [UInt8], _ memory: RequestMemory?
  ) throws {
    guard attachments.contains(where: { $0.name.hasPrefix(prefix) && !$0.isStandIn }) else { return }
    let body = body()
    try memory?.hold(body.withUnsafeBytes { JSONValue.memory(of: $0) })
    guard var value = body.withUnsafeBytes({ try? JSONValue(json: $0) }) else { return }
    for index in attachments.indices where attachments[index].name.hasPrefix(prefix) {
      let digest = attachments[index].digest.text
      try change(of: attachments[index], in: &value) { blob in
        if blob["digest"]?.string == digest { attachments[index].isStandIn = true }
      }
    }
  }

  /// Makes the blobs of a document that was made elsewhere those that its attachments have: whoever knows only attachments replaces one, and
  /// the digest in the body stays. `body` is its text without attachments. `decode` is called for an attachment that is stored as gzip, as
  /// no blob is.
  ///
  /// Returns the body if it isn't the same any more.
  static func adopt(
    _ attachments: inout [StoredAttachment], body: @autoclosure () -> [UInt8], _ memory: RequestMemory?,
    decode: (StoredAttachment) throws -> StoredAttachment
  ) throws -> [UInt8]? {
    guard attachments.contains(where: { $0.name.hasPrefix(prefix) }) else { return nil }
    let body = body()
    try memory?.hold(body.withUnsafeBytes { JSONValue.memory(of: $0) })
    guard var value = body.withUnsafeBytes({ try? JSONValue(json: $0) }) else { return nil }
    var isChanged = false
    for index in attachments.indices where attachments[index].name.hasPrefix(prefix) {
      try change(of: attachments[index], in: &value) { blob in
        if attachments[index].isCompressed { attachments[index] = try decode(attachments[index]) }
        let attachment = attachments[index]
        attachments[index].isStandIn = true
        guard blob["digest"]?.string != attachment.digest.text else { return }
        blob["digest"] = .string(attachment.digest.text)
        blob["length"] = JSONValue(attachment.length)
        isChanged = true
      }
    }
    return isChanged ? try value.jsonText() : nil
  }

  /// Calls `body` with the blob that an attachment's name leads to, if there is one.
  private static func change(
    of attachment: StoredAttachment, in value: inout JSONValue, _ body: (inout JSONObject) throws -> Void
  ) throws {
    let path = attachment.name.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
      .map { String($0).replacing("~1", with: "/").replacing("~0", with: "~") }
    guard path.count <= maximumDepth else { return }
    try change(at: path[...], in: &value, body)
  }

  private static func change(
    at path: ArraySlice<String>, in value: inout JSONValue, _ body: (inout JSONObject) throws -> Void
  ) throws {
    switch value {
    case .object(var members):
      guard let name = path.first else {
        guard members["@type"]?.string == "blob" else { return }
        try body(&members)
        value = .object(members)
        return
      }
      guard var member = members[name] else { return }
      try change(at: path.dropFirst(), in: &member, body)
      members[name] = member
      value = .object(members)
    case .array(var items):
      guard let index = path.first.flatMap({ Int($0) }), items.indices.contains(index) else { return }
      try change(at: path.dropFirst(), in: &items[index], body)
      value = .array(items)
    default: return
    }
  }
}
