// Bodies as they travel: JSON without properties that belong to the protocol. Peers that know no blobs get, and send, each
// blob of a body once more as an attachment of 1.x (`BlobStandIn`):
//
//   {"photo": {"@type": "blob", "digest": D, …},
//    "_attachments": {"blob_/photo": {"digest": D, "length": N, "content_type": T, "stub": true, "revpos": G}}}

import Bytes
import Documents
import Fleece

/// Makes bodies fit for the other side.
package enum WireBody {
  package static let attachments = "_attachments"

  // MARK: Incoming

  /// Returns a received body as it is stored. Top-level properties that begin with `_` belong to the protocol and go, but
  /// for attachments of 1.x. Throws `invalidBody` if it isn't a JSON object.
  package static func stored(_ json: [UInt8]) throws -> [UInt8] { try received(json).stored }

  /// Does the same, and says whether the other side has no body any more but says that the user has lost the document.
  package static func received(_ json: [UInt8]) throws -> (stored: [UInt8], isRemoved: Bool) {
    guard json.withUnsafeBytes(mayHaveReservedName) else { return (json, false) }
    var value = try SyncBody.json(json).value()
    let isRemoved = saysRemoved(value)
    return (try clean(&value) ? try text(value) : json, isRemoved)
  }

  /// Whether a body is what Sync Gateway sends of a document that left the channels of the user.
  package static func saysRemoved(_ value: JSONValue) -> Bool { value["_removed"] == true }

  /// Does the same with a value. Returns whether it changed.
  package static func clean(_ value: inout JSONValue) throws -> Bool {
    guard case .object(var members) = value else {
      throw DocumentError(.invalidBody, "the body of a revision isn't a JSON object")
    }
    let reserved = members.keys.filter { $0.utf8.first == UInt8(ascii: "_") }
    guard !reserved.isEmpty else { return false }
    var hasChanged = false
    for name in reserved where !(ByteString(name) == ByteString(attachments)) {
      members.removeValue(forKey: name)
      hasChanged = true
    }
    if try BlobStandIn.settle(&members) { hasChanged = true }
    value = .object(members)
    return hasChanged
  }

  /// Whether the text may have a property whose name begins with `_`. It has none if this is false.
  private static func mayHaveReservedName(_ json: UnsafeRawBufferPointer) -> Bool {
    // The name's quotation mark and its first character, plain or escaped.
    var index = 0
    while index &+ 1 < json.count {
      if json[index] == UInt8(ascii: "\"") {
        let next = json[index &+ 1]
        if next == UInt8(ascii: "_") || next == UInt8(ascii: "\\") { return true }
      }
      index &+= 1
    }
    return false
  }

  // MARK: Outgoing

  /// Adds a stand-in for each blob, also of equal ones, for a peer that knows only attachments. Returns the blobs by the names of their
  /// stand-ins.
  @discardableResult
  package static func addStandIns(to value: inout JSONValue, generation: UInt64) -> JSONObject {
    let standIns = standIns(of: value)
    guard case .object(var members) = value, !standIns.isEmpty else { return standIns }
    var attached = members[attachments]?.object ?? [:]
    for (name, blob) in standIns where blob["digest"].string != nil {
      var standIn: JSONObject = ["stub": true, "revpos": JSONValue(generation)]
      for name in ["digest", "length", "content_type"] { standIn[name] = blob.object?[name] }
      attached[name] = .object(standIn)
    }
    members[attachments] = attached.isEmpty ? nil : .object(attached)
    value = .object(members)
    return standIns
  }

  /// The blobs of a body by the names of their stand-ins.
  package static func standIns(of value: JSONValue) -> JSONObject {
    var found = JSONObject()
    BlobStandIn.forEachBlob(in: value.object ?? [:]) { path, blob in
      found[BlobStandIn.name(of: path)] = .object(blob)
    }
    return found
  }

  /// The JSON text of a value that was read from JSON.
  package static func text(_ value: JSONValue) throws -> [UInt8] {
    do { return try value.jsonText() } catch { throw DocumentError(.invalidBody, "\(error)") }
  }
}
