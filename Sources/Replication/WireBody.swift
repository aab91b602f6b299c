// Bodies as they travel: JSON without properties that belong to the protocol. Peers that know no blobs get, and send, each
// blob of a body once more as an attachment of 1.x:
//
//   {"photo": {"@type": "blob", "digest": D, …},
//    "_attachments": {"blob_/photo": {"digest": D, "length": N, "content_type": T, "stub": true, "revpos": G}}}
//
// The name is `blob_` and the JSON pointer of the blob; 2.0 sent `blob_` and a number.

import Bytes
import Documents
import Fleece

/// Makes bodies fit for the other side.
package enum WireBody {
  package static let attachments = "_attachments"
  package static let standInPrefix = "blob_"

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
    if case .object(var left)? = members[attachments] {
      let before = left.count
      for (name, standIn) in left where name.hasPrefix(standInPrefix) {
        let place = name.dropFirst(standInPrefix.count)
        if let first = place.utf8.first, first &- UInt8(ascii: "0") < 10 {
          left.removeValue(forKey: name)
        } else if place.utf8.first == UInt8(ascii: "/") {
          let path = pointer(place)
          guard take(standIn, at: path[...], in: &members) else { continue }
          left.removeValue(forKey: name)
        }
      }
      if left.count != before {
        members[attachments] = left.isEmpty ? nil : .object(left)
        hasChanged = true
      }
    }
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

  /// Gives the blob at a path what its stand-in says, if another peer has changed that. Returns false if there is no blob.
  private static func take(
    _ standIn: JSONValue, at path: ArraySlice<String>, in members: inout JSONObject
  ) -> Bool {
    // What is changed is taken out meanwhile: a body with many blobs isn't copied for each of them.
    guard let name = path.first, var member = members.removeValue(forKey: name) else { return false }
    defer { members[name] = member }
    return take(standIn, at: path.dropFirst(), in: &member)
  }

  private static func take(
    _ standIn: JSONValue, at path: ArraySlice<String>, in value: inout JSONValue
  ) -> Bool {
    guard let name = path.first else {
      guard case .object(var blob) = value, blob["@type"] == "blob" else { return false }
      if let digest = standIn.object?["digest"], digest != blob["digest"] {
        for name in ["digest", "length", "content_type"] { blob[name] = standIn.object?[name] }
        value = .object(blob)
      }
      return true
    }
    switch value {
    case .object(var members):
      value = .null
      defer { value = .object(members) }
      return take(standIn, at: path, in: &members)
    case .array(var items):
      guard let index = Int(name), items.indices.contains(index) else { return false }
      value = .null
      var item = JSONValue.null
      swap(&item, &items[index])
      defer {
        swap(&item, &items[index])
        value = .array(items)
      }
      return take(standIn, at: path.dropFirst(), in: &item)
    default: return false
    }
  }

  /// The names of a JSON pointer (RFC 6901).
  private static func pointer(_ text: some StringProtocol) -> [String] {
    text.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map { part in
      String(part).replacing("~1", with: "/").replacing("~0", with: "~")
    }
  }

  // MARK: Outgoing

  /// Adds a stand-in for each blob, also of equal ones, for a peer that knows only attachments.
  package static func addStandIns(to value: inout JSONValue, generation: UInt64) {
    guard case .object(var members) = value else { return }
    var standIns: [(name: String, blob: JSONObject)] = []
    findBlobs(in: value, path: "") { path, blob in
      if blob["digest"]?.string != nil { standIns.append((standInPrefix + path, blob)) }
    }
    guard !standIns.isEmpty else { return }
    var attached = members[attachments]?.object ?? [:]
    for (name, blob) in standIns {
      var standIn: JSONObject = ["stub": true, "revpos": JSONValue(generation)]
      for name in ["digest", "length", "content_type"] { standIn[name] = blob[name] }
      attached[name] = .object(standIn)
    }
    members[attachments] = .object(attached)
    value = .object(members)
  }

  /// The names of the stand-ins of a body's blobs, with the blobs.
  package static func standIns(of value: JSONValue) -> [String: JSONObject] {
    var found: [String: JSONObject] = [:]
    findBlobs(in: value, path: "") { path, blob in found[standInPrefix + path] = blob }
    return found
  }

  private static func findBlobs(
    in value: JSONValue, path: String, _ found: (_ path: String, JSONObject) -> Void
  ) {
    switch value {
    case .object(let members):
      if members["@type"] == "blob" { return found(path, members) }
      for name in members.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
        if path.isEmpty, ByteString(name) == ByteString(attachments) { continue }
        guard let member = members[name] else { continue }
        let part = name.replacing("~", with: "~0").replacing("/", with: "~1")
        findBlobs(in: member, path: path + "/" + part, found)
      }
    case .array(let items):
      for (index, item) in items.enumerated() { findBlobs(in: item, path: "\(path)/\(index)", found) }
    default: break
    }
  }

  /// The JSON text of a value that was read from JSON.
  package static func text(_ value: JSONValue) throws -> [UInt8] {
    do { return try value.jsonText() } catch { throw DocumentError(.invalidBody, "\(error)") }
  }
}
