// The rules for `_attachments` are those of 1.x (docs/blobs.md): in a stored revision, each entry is a stub
// with its digest. `revpos` is the generation of the revision that added or changed it, in a copy that a client of CouchDB makes of
// another document that of the source.

import Blobs
import Bytes
import Fleece
import FoundationEssentials
import Storage

extension DocumentWriter {
  /// Converts `_attachments` of the body to their stored form. Returns the body, encoded again if that
  /// changes it.
  func settleAttachments(
    _ body: EncodedBody, _ id: UnsafeRawBufferPointer, generation: UInt64, deleted: Bool, ancestor: Int,
    stored: Stored?
  ) throws -> EncodedBody {
    guard body.hasReservedNames, let root = body.root else { return body }
    let sharedKeys = keys.snapshot()
    if !body.isForeign, !body.keepsReservedNames {
      try checkReservedNames(root, sharedKeys, id, on: ancestor, stored)
    }
    guard let found = root.value(of: Attachment.property, sharedKeys: sharedKeys) else { return body }
    func refused(_ message: String) -> DocumentError {
      DocumentError(.invalidBody, message, documentID: idText(id))
    }
    guard found.type == .dict else {
      if body.keepsUnknownAttachments { return body }
      throw refused("\"\(Attachment.property)\" is not an object")
    }
    let before = try found.jsonValue(sharedKeys: sharedKeys)
    var after = JSONObject()
    var unchanged: Set<ByteString> = []
    // A tombstone has no attachments.
    if !deleted, let members = before.object {
      for (name, value) in members {
        guard let entry = value.object else {
          guard body.keepsUnknownAttachments else {
            throw refused("the attachment \"\(name)\" is not an object")
          }
          after[name] = value
          continue
        }
        let hasContent =
          entry["data"] != nil || entry["digest"]?.string.flatMap({ BlobDigest($0) }) != nil
        // A revision from elsewhere takes from an older one only what it doesn't say itself.
        let known =
          body.isForeign && hasContent
          ? .nothing : try knownAttachment(name, of: id, on: ancestor, stored, isForeign: body.isForeign)
        if body.keepsUnknownAttachments, known.entry == nil, !hasContent {
          after[name] = value
          continue
        }
        var settled = try settled(entry, name, known, generation, id, isForeign: body.isForeign)
        if body.keepsGenerations, let said = entry["revpos"]?.uint, said > 0 {
          settled["revpos"] = JSONValue(said)
        }
        after[name] = .object(settled)
        if Self.isUnchanged(settled, known, generation) { unchanged.insert(ByteString(name)) }
      }
    }
    let mayHaveStandIns = !body.isForeign && after.keys.contains(where: BlobStandIn.mayName)
    let isSame = .object(after) == before && !after.isEmpty
    guard !isSame || mayHaveStandIns else { return body }
    guard case .object(var members) = try root.jsonValue(sharedKeys: sharedKeys) else { return body }
    members[Attachment.property] = after.isEmpty ? nil : .object(after)
    let hasStandIns = try mayHaveStandIns && settleStandIns(in: &members, unchanged, id)
    return isSame && !hasStandIns ? body : try encode(.object(members), inPlaceOf: body)
  }

  /// Puts the attachments that stand for blobs into these, as every replica of the revision does. One of the revision before gives way
  /// to the blob of the body, which may be another one now. Returns whether there was any.
  private func settleStandIns(
    in members: inout JSONObject, _ unchanged: Set<ByteString>, _ id: UnsafeRawBufferPointer
  ) throws -> Bool {
    try BlobStandIn.settle(&members) { name, attachment in
      guard !unchanged.contains(ByteString(name)) else { return .none }
      guard attachment["encoding"] == nil else {
        throw DocumentError(
          .invalidBody,
          "the attachment \"\(name)\" is compressed, so it can't become the blob that it stands for",
          documentID: idText(id))
      }
      return .saved
    }
  }

  /// The known state of an attachment before the revision that is being added.
  private enum Known {
    /// The entry that the new one is compared with.
    case entry(JSONObject)
    /// A blob of the body for which an attachment with this name stands.
    case blob(JSONObject)
    /// The attachment is new.
    case nothing
    /// The parent revision was replaced. Its body may be stored or not, so it isn't read.
    case replaced

    var entry: JSONObject? { if case .entry(let entry) = self { entry } else { nil } }

    /// Whether the attachment may be the one before.
    func mayBe(_ entry: JSONObject) -> Bool {
      switch self {
      case .entry(let before): DocumentWriter.isSame(before, entry)
      case .replaced: true
      case .blob, .nothing: false
      }
    }
  }

  /// Whether the stored form of an entry is that of the attachment, or the blob, before the revision that is being added.
  private static func isUnchanged(_ entry: JSONObject, _ known: Known, _ generation: UInt64) -> Bool {
    switch known {
    case .entry(let before): isSame(before, entry)
    case .blob(let before):
      before["digest"] == entry["digest"]
        && (entry["content_type"] ?? .string(Attachment.defaultType))
          == (before["content_type"] ?? .string(Attachment.defaultType))
    case .replaced: entry["revpos"]?.uint != generation
    case .nothing: false
    }
  }

  /// Returns the stored form of one entry. `known` is the known state of the attachment with this name.
  private func settled(
    _ entry: JSONObject, _ name: String, _ known: Known, _ generation: UInt64,
    _ id: UnsafeRawBufferPointer, isForeign: Bool
  ) throws -> JSONObject {
    var entry = entry
    if let data = entry.removeValue(forKey: "data") { try store(data, in: &entry, name, id) }
    entry.removeValue(forKey: "follows")
    if entry["digest"]?.string.flatMap({ BlobDigest($0) }) == nil {
      // A stub refers to a stored attachment.
      guard let known = known.entry else {
        throw DocumentError(
          .missingBlob,
          "the attachment \"\(name)\" has no SHA-1 digest, and neither has its parent revision",
          documentID: idText(id))
      }
      for member in ["digest", "length", "content_type", "encoding", "encoded_length", "revpos"] {
        entry[member] = known[member]
      }
    }
    entry["stub"] = true
    if entry["length"]?.uint == nil, let digest = entry["digest"]?.string.flatMap({ BlobDigest($0) }) {
      entry["length"] = JSONValue(try blobs?.length(of: digest) ?? 0)
    }
    if !isForeign { try normalize(&entry, name, known, id) }
    let said = entry["revpos"]?.uint ?? 0
    if isForeign {
      // A copy may have one above its generation.
      if !(1...Self.maximumRevpos).contains(said) { entry["revpos"] = JSONValue(generation) }
    } else if let known = known.entry, Self.isSame(known, entry), let revpos = known["revpos"]?.uint,
      revpos > 0
    {
      // In a copy it may be above the generation.
      entry["revpos"] = JSONValue(revpos)
    } else if case .replaced = known, (1..<generation).contains(said) {
      // Keep the value that was read with the revision.
      entry["revpos"] = JSONValue(said)
    } else {
      entry["revpos"] = JSONValue(generation)
    }
    return entry
  }

  /// The largest integer that every client reads exactly.
  private static let maximumRevpos: UInt64 = 1 << 53 - 1

  /// Makes the entry of a revision that is made here what replicas over HTTP have of it: CouchDB keeps no other members, and gives each
  /// attachment a media type.
  private func normalize(
    _ entry: inout JSONObject, _ name: String, _ known: Known, _ id: UnsafeRawBufferPointer
  ) throws {
    if entry["content_type"]?.string == nil { entry["content_type"] = .string(Attachment.defaultType) }
    if let encoding = entry["encoding"] {
      // One that was stored before may be of another database.
      guard encoding.string?.hasSameBytes(as: "gzip") ?? false || known.mayBe(entry) else {
        throw DocumentError(
          .invalidBody, "the attachment \"\(name)\" has an encoding other than gzip", documentID: idText(id))
      }
    } else {
      entry.removeValue(forKey: "encoded_length")
    }
    for member in entry.keys where !Self.members.contains(where: { $0.hasSameBytes(as: member) }) {
      entry.removeValue(forKey: member)
    }
  }

  private static let members = [
    "content_type", "digest", "length", "revpos", "stub", "encoding", "encoded_length",
  ]

  /// Whether two entries are of the same attachment. A replica that has the older one isn't sent the newer one then.
  private static func isSame(_ known: JSONObject, _ entry: JSONObject) -> Bool {
    known["digest"] == entry["digest"] && known["encoding"] == entry["encoding"]
      && (known["content_type"] ?? .string(Attachment.defaultType))
        == (entry["content_type"] ?? .string(Attachment.defaultType))
  }

  /// Stores the bytes that are inline in the entry.
  private func store(
    _ data: JSONValue, in entry: inout JSONObject, _ name: String, _ id: UnsafeRawBufferPointer
  ) throws {
    var bytes = data.data
    if bytes == nil { bytes = data.string.flatMap { Data(base64Encoded: $0) }.map { [UInt8]($0) } }
    guard let bytes else {
      throw DocumentError(
        .invalidBody, "the data of the attachment \"\(name)\" isn't valid base64", documentID: idText(id))
    }
    guard let blobs else {
      throw DocumentError(.missingBlob, "the documents were opened without a directory for blobs")
    }
    let blob = try bytes.withUnsafeBytes { try blobs.store($0) }
    entry["digest"] = .string(blob.digest.text)
    if entry["encoding"] == nil {
      entry["length"] = JSONValue(blob.length)
    } else {
      entry["encoded_length"] = JSONValue(blob.length)
    }
  }

  /// Returns the known state of an attachment for a revision on top of `node`. If `node` is a tombstone, the
  /// attachment is new.
  ///
  /// A local save reads only the body of `node`, and only if `node` is a leaf, whose body is always stored.
  /// So the same saves give the same revision IDs, whichever bodies were dropped. A revision from another
  /// database has its ID already. It takes missing members from the nearest ancestor that has the attachment.
  private func knownAttachment(
    _ name: String, of id: UnsafeRawBufferPointer, on node: Int, _ stored: Stored?, isForeign: Bool
  ) throws -> Known {
    guard let stored, node >= 0, !tree.nodes[node].isDeleted else { return .nothing }
    if isForeign {
      return try storedAttachment(name, of: id, from: node, stored).map { .entry($0) } ?? .nothing
    }
    let found = tree.nodes[node]
    guard found.isLeaf else { return .replaced }
    let sharedKeys = keys.snapshot()
    func known(in body: RawSpan) throws -> Known {
      if let entry = try attachment(name, in: body, sharedKeys) { return .entry(entry) }
      return try blob(of: name, in: body, sharedKeys).map { .blob($0) } ?? .nothing
    }
    return try withBody(ofLeaf: node, stored, known) ?? .nothing
  }

  func currentBody(of stored: Stored) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: self.stored.bytes[stored.bodyStart...])
  }

  /// Returns the entry with this name from `node` or its nearest ancestor that has a stored body with such an
  /// entry.
  private func storedAttachment(
    _ name: String, of id: UnsafeRawBufferPointer, from node: Int, _ stored: Stored
  ) throws -> JSONObject? {
    let sharedKeys = keys.snapshot()
    var index = node
    while index >= 0 {
      let found = tree.nodes[index]
      var entry: JSONObject?
      if index == 0 {
        entry = try attachment(name, in: currentBody(of: stored).bytes, sharedKeys)
      } else if found.flags.contains(.hasBody) {
        let keyspace = try found.isLeaf ? keyspaces.conflicts : keyspaces.bodies
        entry = try attachment(name, at: found.sequence, in: keyspace, sharedKeys)
      }
      if let entry { return entry }
      index = Int(found.parent)
    }
    for sequence in try olderBodies(of: id) {
      let entry = try attachment(name, at: sequence, in: keyspaces.bodies, sharedKeys)
      if let entry { return entry }
    }
    return nil
  }

  private func attachment(
    _ name: String, at sequence: UInt64, in keyspace: Keyspace,
    _ sharedKeys: SharedKeys
  ) throws -> JSONObject? {
    try withSequenceKey(sequence) { key in
      try transaction.withValue(at: key.bytes, in: keyspace) {
        try attachment(name, in: BodyRecord($0).body, sharedKeys)
      } ?? nil
    }
  }

  private func attachment(_ name: String, in body: RawSpan, _ sharedKeys: SharedKeys) throws -> JSONObject? {
    // Only this one becomes JSON: a document may have thousands.
    guard let root = Value(rootOf: body),
      let value = root.unsafeValue.value(of: Attachment.property, sharedKeys: sharedKeys)?
        .value(of: name, sharedKeys: sharedKeys)
    else { return nil }
    do { return try value.jsonValue(sharedKeys: sharedKeys).object } catch {
      throw DocumentError(.damaged, "a stored body can't be read: \(error)")
    }
  }

  /// The blob of a stored body for which an attachment with this name stands.
  private func blob(of name: String, in body: RawSpan, _ sharedKeys: SharedKeys) throws -> JSONObject? {
    guard let path = BlobStandIn.path(name), let root = Value(rootOf: body) else { return nil }
    var value = root.unsafeValue
    for part in path {
      let member =
        switch value.type {
        case .array: BlobStandIn.index(part).flatMap { value[$0] }
        default: value.value(of: part, sharedKeys: sharedKeys)
        }
      guard let member else { return nil }
      value = member
    }
    do {
      guard let members = try value.jsonValue(sharedKeys: sharedKeys).object, BlobStandIn.isBlob(members)
      else {
        return nil
      }
      return members
    } catch { throw DocumentError(.damaged, "a stored body can't be read: \(error)") }
  }
}
