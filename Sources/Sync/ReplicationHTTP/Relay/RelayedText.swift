import Documents
import Fleece
import Replication

/// The text of a document with attachments on its way from one server to another one.
struct RelayedText: Sendable {
  let id: String
  let revision: String

  /// The text as it goes on. It has to be that revision of the document: it may be an answer of a proxy, or
  /// of a server that doesn't know the parameter `rev`.
  ///
  /// Digests that aren't MD5 are left out. Servers of this library have the SHA-1 of the bytes, and CouchDB
  /// answers a document with such a digest with the status 500. All else stays as it is: also the order of
  /// the attachments, in which their bytes follow.
  func checked(_ text: [UInt8]) throws -> [UInt8] {
    try text.withUnsafeBytes { text in
      let document = try WireDocument(text, 0..<text.count)
      guard document.id.hasSameBytes(as: id), document.revision.hasSameBytes(as: revision) else {
        throw ReplicationError.malformed("another document has come than was asked for")
      }
      guard (document.attachments ?? [:]).contains(where: { Self.hasForeignDigest($0.value) }) else {
        return Array(text)
      }
      return try Self.withoutForeignDigests(text)
    }
  }

  private static func hasForeignDigest(_ entry: JSONValue) -> Bool {
    entry["digest"].string.map { !$0.hasPrefix("md5-") } ?? false
  }

  private static func withoutForeignDigests(_ text: UnsafeRawBufferPointer) throws -> [UInt8] {
    var edited: [UInt8] = []
    edited.reserveCapacity(text.count)
    var copied = 0
    var scanner = JSONScanner(text, nil, invalid: WireDocument.invalid)
    try scanner.object { scanner, member in
      let value = try scanner.value()
      let name = try WireDocument.string(member.name.lowerBound - 1..<member.name.upperBound + 1, text)
      guard name.hasSameBytes(as: "_attachments") else { return }
      var entries = JSONScanner(text, value, invalid: WireDocument.invalid)
      try entries.object { entries, _ in
        let range = try entries.value()
        var entry = try WireDocument.value(range, text)
        guard hasForeignDigest(entry) else { return }
        entry.remove("digest")
        edited += text[copied..<range.lowerBound]
        edited += try entry.jsonText()
        copied = range.upperBound
      }
    }
    edited += text[copied...]
    return edited
  }
}
