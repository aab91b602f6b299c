// The answer to `open_revs` as multipart/mixed, which CouchDB and its relatives give:
//
//   part := application/json                    a document without attachments that follow; with error="true": {"missing": rev}
//         | multipart/related :=
//             application/json                  the document; the entries of attachments that follow have "follows": true
//             bytes …                           an attachment each, with Content-Disposition: attachment; filename="NAME"
//
// An attachment is known by its name. Where a name can't be in a header, its digest tells which one it is.

import Blobs
import Documents
import Fleece
import HTTP
import Replication

/// Takes such an answer apart while it arrives. The bytes of attachments go to blobs; of the rest it keeps a document at most.
final class MixedAnswer {
  /// A document, or what is in its place.
  struct Item {
    let text: [UInt8]
    let isError: Bool
    /// What a document here says of the attachments that have come with it.
    let stored: JSONObject
  }

  private let maximumTextBytes: Int
  private let makeWriter: () throws -> BlobWriter
  private var outer: MultipartParser
  private var inner: MultipartParser?
  private var text: [UInt8] = []
  private var isError = false
  /// The number of the inner part.
  private var part = 0
  private var following: FollowingAttachments?

  init(
    boundary: String, maximumTextBytes: Int, makeWriter: @escaping () throws -> BlobWriter
  ) throws {
    self.maximumTextBytes = maximumTextBytes
    self.makeWriter = makeWriter
    outer = try Self.reading { try MultipartParser(boundary: boundary) }
  }

  /// Takes the next bytes, and calls `handle` with each item that is whole. Throws `ReplicationError` for what can't be read,
  /// and what storing throws.
  func take(_ bytes: UnsafeRawBufferPointer, _ handle: (Item) throws -> Void) throws {
    try Self.reading { try outer.parse(bytes) { try take($0, handle) } }
  }

  /// The answer has ended. Throws if it isn't whole.
  func finish() throws { try Self.reading { try outer.finish() } }

  private static func reading<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as MultipartError {
      throw ReplicationError.malformed("an answer of several parts can't be read: \(error)")
    }
  }

  private func take(_ event: MultipartParser.Event, _ handle: (Item) throws -> Void) throws {
    switch event {
    case .begin(let headers):
      let type = HTTPMediaType(headers.first("content-type") ?? "application/json")
      let isNested = type.name.hasPrefix("multipart/")
      inner = isNested ? try MultipartParser(boundary: type[parameter: "boundary"] ?? "") : nil
      isError = type[parameter: "error"] == "true"
      text = []
      part = 0
      following = nil
    case .bytes(let bytes):
      if inner != nil { try inner?.parse(bytes) { try takeInner($0) } } else { try append(bytes) }
    case .end:
      try inner?.finish()
      inner = nil
      try handle(Item(text: text, isError: isError, stored: following?.stored ?? [:]))
    }
  }

  private func takeInner(_ event: MultipartParser.Event) throws {
    switch event {
    case .begin(let headers):
      part += 1
      guard part > 1 else { return }
      if following == nil {
        following = FollowingAttachments(try text.withUnsafeBytes { try WireDocument($0, 0..<$0.count) })
      }
      let name = HTTPMediaType(headers.first("content-disposition") ?? "")[parameter: "filename"]
      let isEncoded = headers.tokens("content-encoding").contains { $0 != "identity" }
      following?.begin(name, try makeWriter(), isEncoded: isEncoded)
    case .bytes(let bytes): if part > 1 { try following?.write(bytes) } else { try append(bytes) }
    case .end: if part > 1 { try following?.end() }
    }
  }

  private func append(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count <= maximumTextBytes - text.count else {
      throw ReplicationError.malformed("a document of an answer has more than \(maximumTextBytes) bytes")
    }
    text.append(contentsOf: bytes)
  }
}

/// The attachments that follow a document, one after another.
private struct FollowingAttachments {
  /// What a document here says of those that have come.
  private(set) var stored = JSONObject()
  private var missing = JSONObject()
  private var name: String?
  private var writer: BlobWriter?
  private var md5 = MD5()
  private var count: UInt64 = 0
  private var limit: UInt64 = 0
  /// Whether what comes isn't what the document says. It is asked for by itself then.
  private var isSkipped = false

  init(_ document: WireDocument) {
    for (name, value) in document.attachments ?? [:] where AttachmentEntry(value)?.follows ?? false {
      missing[name] = value
    }
  }

  private func entry(_ name: String) -> AttachmentEntry? { missing[name].flatMap { AttachmentEntry($0) } }

  mutating func begin(_ name: String?, _ writer: BlobWriter, isEncoded: Bool) {
    isSkipped = isEncoded && name.flatMap { entry($0) }.map { !$0.isCompressed } ?? false
    self.name = name
    self.writer = writer
    md5 = MD5()
    count = 0
    let candidates = name.flatMap { entry($0) }.map { [$0] } ?? missing.keys.compactMap { entry($0) }
    limit = candidates.flatMap { $0.lengths }.max() ?? 0
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer) throws {
    if isSkipped { return }
    count += UInt64(bytes.count)
    guard count <= limit else {
      throw ReplicationError.malformed("an attachment has more than \(limit) bytes")
    }
    md5.update(bytes)
    try writer?.write(bytes)
  }

  mutating func end() throws {
    defer { writer = nil }
    guard !isSkipped, let blob = try writer?.finish() else { return }
    let sum = md5.base64
    // The server doesn't say that it has it as gzip, or decodes it: it is asked for by itself too.
    if let named = name.flatMap({ entry($0) }), !named.means(blob, md5: sum), named.lengths.contains(count) {
      return
    }
    let others = missing.keys.filter { missing.count == 1 || entry($0)?.isVerifiable ?? false }
    let names = [name].compactMap { $0 } + others
    let found = names.first { entry($0)?.means(blob, md5: sum) ?? false }
    guard let found, let entry = entry(found) else {
      throw ReplicationError.malformed("an attachment isn't one that the document says")
    }
    missing[found] = nil
    stored[found] = .object(entry.stored(blob, isCompressed: entry.isCompressed))
  }
}
