import Blobs
import Fleece
import Network
import Replication

/// The body of a document with attachments, as multipart/related: the document first, and the attachments in its order.
final class MultipartDocument: HTTPRequestSource, @unchecked Sendable {
  private enum Part {
    case bytes([UInt8])
    case blob(BlobDigest, UInt64)
  }

  let boundary: String
  let length: UInt64?
  private let parts: [Part]
  private let openBlob: @Sendable (BlobDigest) throws -> BlobReader
  // Used on one thread at a time.
  private var next = 0
  private var offset = 0
  private var reader: BlobReader?

  init(
    _ document: OutgoingDocument, sendsAll: Bool,
    _ openBlob: @escaping @Sendable (BlobDigest) throws -> BlobReader
  ) throws {
    self.openBlob = openBlob
    let boundary =
      "touchstone-" + String(UInt64.random(in: .min ... .max), radix: 16)
      + String(UInt64.random(in: .min ... .max), radix: 16)
    self.boundary = boundary
    var parts: [Part] = []
    let text = try document.text { attachment, json in
      guard sendsAll || !attachment.isKnown else {
        json.append(text: ",\"stub\":true")
        return
      }
      let stored = try openBlob(attachment.digest).length
      json.append(text: ",\"follows\":true,\"length\":")
      json.append(attachment.isCompressed ? attachment.length ?? stored : stored)
      if attachment.isCompressed {
        json.append(text: ",\"encoding\":\"gzip\",\"encoded_length\":")
        json.append(stored)
      }
      parts.append(.bytes(Self.head(attachment, stored, boundary)))
      parts.append(.blob(attachment.digest, stored))
    }
    let first = Array("--\(boundary)\r\nContent-Type: application/json\r\n\r\n".utf8) + text
    parts.insert(.bytes(first), at: 0)
    parts.append(.bytes(Array("\r\n--\(boundary)--".utf8)))
    self.parts = parts
    length = parts.reduce(0) { sum, part in
      switch part {
      case .bytes(let bytes): sum + UInt64(bytes.count)
      case .blob(_, let length): sum + length
      }
    }
  }

  private static func head(_ attachment: OutgoingDocument.Attachment, _ length: UInt64, _ boundary: String)
    -> [UInt8]
  {
    func clean(_ text: String) -> String {
      String(
        decoding: text.utf8.filter { $0 >= 0x20 && $0 != 0x7F && $0 != 0x22 && $0 != 0x5C }, as: UTF8.self)
    }
    var head =
      "\r\n--\(boundary)\r\nContent-Disposition: attachment; filename=\"\(clean(attachment.name))\"\r\n"
    head += "Content-Type: \(clean(attachment.contentType))\r\nContent-Length: \(length)\r\n"
    if attachment.isCompressed { head += "Content-Encoding: gzip\r\n" }
    return Array((head + "\r\n").utf8)
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    while next < parts.count {
      let count: Int
      switch parts[next] {
      case .bytes(let bytes):
        count = min(bytes.count - offset, buffer.count)
        bytes[offset..<offset + count].withUnsafeBytes { buffer.copyMemory(from: $0) }
        offset += count
      case .blob(let digest, let length):
        if reader == nil { reader = try openBlob(digest) }
        count = try reader?.read(into: buffer) ?? 0
        offset += count
        guard count > 0 || offset == Int(length) else {
          throw ReplicationError(.http, 400, "a blob has another length than before")
        }
      }
      if count > 0 { return count }
      next += 1
      offset = 0
      reader = nil
    }
    return 0
  }

  func rewind() {
    next = 0
    offset = 0
    reader = nil
  }
}
