// Attachments that stand for blobs. Who knows only the attachments of 1.x gets, and sends, each blob of a body once more among them:
//
//   {"photo": {"@type": "blob", "digest": D, …}, "_attachments": {"blob_/photo": {"digest": D, …}}}
//
//   name := "blob_" pointer      the JSON pointer (RFC 6901) of the blob
//         | "blob_" digit+       2.0; only the digest tells which blob it is
//
// Whoever receives a revision puts them into the blobs that they stand for. So a body that is saved here has none either: all replicas
// of its revision would differ from it.

import Fleece

/// Attachments that stand for blobs of their document.
package enum BlobStandIn {
  private static let prefix = "blob_"
  private static let (slash, tilde) = (UInt8(ascii: "/"), UInt8(ascii: "~"))

  /// What an attachment does to the blob that it stands for.
  package enum Change: Sendable {
    /// The revision was made elsewhere. A client that knows only attachments may have replaced this one: another digest is that of the
    /// blob now, with the length and the media type.
    case received
    /// The attachment is new in a revision that is made here. The same, and a new media type of the same bytes counts too.
    case saved
    /// The attachment is that of the revision before. The blob is what the body says.
    case none
  }

  /// Whether an attachment with that name may stand for a blob. False is certain.
  package static func mayName(_ name: String) -> Bool { name.utf8.starts(with: prefix.utf8) }

  /// The name of the stand-in for the blob at a path, which is made of `token`s, each behind a slash.
  package static func name(of path: String) -> String { prefix + path }

  // MARK: Bodies

  /// Gives the blobs of a body what the attachments say that stand for them, and removes these attachments. `change` is asked for each
  /// whose blob there is. Returns whether there was one.
  package static func settle(
    _ members: inout JSONObject,
    _ change: (_ name: String, _ attachment: JSONObject) throws -> Change = { _, _ in .received }
  ) rethrows -> Bool {
    guard case .object(var attachments)? = members[Attachment.property] else { return false }
    let names = attachments.keys.filter(mayName).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    guard !names.isEmpty else { return false }
    // No name leads to another attachment.
    members[Attachment.property] = nil
    let count = attachments.count
    for name in names {
      guard let path = path(name), let attachment = attachments[name] else { continue }
      let found: Void? = try withBlob(at: path[...], in: &members) { blob in
        guard let attachment = attachment.object else { return }
        _ = adopt(attachment, try change(name, attachment), &blob)
      }
      if found != nil { attachments.removeValue(forKey: name) }
    }
    let numbered = names.filter(isNumbered)
    if !numbered.isEmpty {
      let digests = digests(in: .object(members))
      for name in numbered {
        guard let digest = attachments[name]?["digest"], digests.contains(digest) else { continue }
        attachments.removeValue(forKey: name)
      }
    }
    members[Attachment.property] = attachments.isEmpty ? nil : .object(attachments)
    return attachments.count != count
  }

  /// Gives a blob what its attachment says. Returns whether that changed it.
  package static func adopt(_ attachment: JSONObject, _ change: Change, _ blob: inout JSONObject) -> Bool {
    guard change != .none, let digest = attachment["digest"], digest.string != nil else { return false }
    guard digest == blob["digest"] else {
      for name in ["digest", "length", "content_type"] { blob[name] = attachment[name] }
      return true
    }
    guard change == .saved, let type = attachment["content_type"], let text = type.string,
      text != Attachment.defaultType, type != blob["content_type"]
    else { return false }
    blob["content_type"] = type
    return true
  }

  /// Calls `body` with the blob that a path leads to. Nil if there is none.
  package static func withBlob<Result>(
    at path: ArraySlice<String>, in members: inout JSONObject, _ body: (inout JSONObject) throws -> Result
  ) rethrows -> Result? {
    // What is changed is taken out meanwhile: a body with many blobs isn't copied for each of them.
    guard let name = path.first, var member = members.removeValue(forKey: name) else { return nil }
    defer { members[name] = member }
    return try withBlob(at: path.dropFirst(), in: &member, body)
  }

  private static func withBlob<Result>(
    at path: ArraySlice<String>, in value: inout JSONValue, _ body: (inout JSONObject) throws -> Result
  ) rethrows -> Result? {
    switch value {
    case .object(var members):
      if path.isEmpty, !isBlob(members) { return nil }
      value = .null
      defer { value = .object(members) }
      return path.isEmpty ? try body(&members) : try withBlob(at: path, in: &members, body)
    case .array(var items):
      guard let index = path.first.flatMap(index), items.indices.contains(index) else { return nil }
      value = .null
      var item = JSONValue.null
      swap(&item, &items[index])
      defer {
        swap(&item, &items[index])
        value = .array(items)
      }
      return try withBlob(at: path.dropFirst(), in: &item, body)
    default: return nil
    }
  }

  /// Removes the blob that an attachment stands for: a member from its object, while null takes the place of an item, so that the others
  /// keep their names. Returns false if there is none.
  package static func remove(_ name: String, from members: inout JSONObject) -> Bool {
    guard let path = path(name), withBlob(at: path[...], in: &members, { _ in }) != nil else { return false }
    var value = JSONValue.object(members)
    members = [:]
    remove(path[...], from: &value)
    members = value.object ?? [:]
    return true
  }

  private static func remove(_ path: ArraySlice<String>, from value: inout JSONValue) {
    guard let name = path.first else { return }
    let isLast = path.count == 1
    switch value {
    case .object(var members):
      value = .null
      if var member = members.removeValue(forKey: name), !isLast {
        remove(path.dropFirst(), from: &member)
        members[name] = member
      }
      value = .object(members)
    case .array(var items):
      guard let index = index(name), items.indices.contains(index) else { return }
      value = .null
      if isLast { items[index] = .null } else { remove(path.dropFirst(), from: &items[index]) }
      value = .array(items)
    default: return
    }
  }

  /// Calls `found` with the path of each blob of a body, also of those inside of a blob.
  package static func forEachBlob(in body: JSONObject, _ found: (_ path: String, JSONObject) -> Void) {
    for name in body.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
      guard !name.utf8.elementsEqual(Attachment.property.utf8), let member = body[name] else { continue }
      forEachBlob(in: member, path: "/" + token(name), found)
    }
  }

  private static func forEachBlob(
    in value: JSONValue, path: String, _ found: (_ path: String, JSONObject) -> Void
  ) {
    switch value {
    case .object(let members):
      if isBlob(members) { found(path, members) }
      for name in members.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
        guard let member = members[name] else { continue }
        forEachBlob(in: member, path: path + "/" + token(name), found)
      }
    case .array(let items):
      for (index, item) in items.enumerated() { forEachBlob(in: item, path: "\(path)/\(index)", found) }
    default: break
    }
  }

  /// Whether an attachment has a number, as those that 2.0 made. It stands for a blob if there is one with its digest: apps number their
  /// attachments too.
  package static func isNumbered(_ name: String) -> Bool {
    let number = name.utf8.dropFirst(prefix.utf8.count)
    return mayName(name) && !number.isEmpty && number.allSatisfy { $0 &- 0x30 < 10 }
  }

  /// The digests of the blobs of a body.
  package static func digests(in body: JSONValue) -> Set<JSONValue> {
    var digests: Set<JSONValue> = []
    forEachBlob(in: body.object ?? [:]) { _, blob in
      if let digest = blob["digest"] { digests.insert(digest) }
    }
    return digests
  }

  static func isBlob(_ members: JSONObject) -> Bool {
    members[Blob.typeProperty]?.string?.utf8.elementsEqual(Blob.type.utf8) ?? false
  }

  // MARK: JSON pointers

  /// The names and indexes that lead to the blob for which an attachment with that name stands. Nil if it can't be one.
  package static func path(_ name: String) -> [String]? {
    let pointer = name.utf8.dropFirst(prefix.utf8.count)
    guard mayName(name), pointer.first == slash else { return nil }
    var path: [String] = []
    for part in pointer.split(separator: slash, omittingEmptySubsequences: false).dropFirst() {
      guard let name = unescaped(part) else { return nil }
      path.append(name)
    }
    return path
  }

  /// A member's name as a part of a pointer. By bytes: in a string, a combining mark is one character with the slash before it.
  package static func token(_ name: String) -> String {
    guard name.utf8.contains(where: { $0 == tilde || $0 == slash }) else { return name }
    var token: [UInt8] = []
    for byte in name.utf8 {
      switch byte {
      case tilde: token += [tilde, UInt8(ascii: "0")]
      case slash: token += [tilde, UInt8(ascii: "1")]
      default: token.append(byte)
      }
    }
    return String(decoding: token, as: UTF8.self)
  }

  private static func unescaped(_ token: Substring.UTF8View) -> String? {
    var name: [UInt8] = []
    name.reserveCapacity(token.count)
    var isEscaped = false
    for byte in token {
      switch (isEscaped, byte) {
      case (false, tilde):
        isEscaped = true
        continue
      case (false, _): name.append(byte)
      case (true, UInt8(ascii: "0")): name.append(tilde)
      case (true, UInt8(ascii: "1")): name.append(slash)
      case (true, _): return nil
      }
      isEscaped = false
    }
    return isEscaped ? nil : String(decoding: name, as: UTF8.self)
  }

  /// The index that a part of a pointer is: digits without a leading zero.
  static func index(_ token: String) -> Int? {
    guard token.utf8.allSatisfy({ $0 &- 0x30 < 10 }), token.utf8.count == 1 || token.utf8.first != 0x30
    else { return nil }
    return Int(token)
  }
}
