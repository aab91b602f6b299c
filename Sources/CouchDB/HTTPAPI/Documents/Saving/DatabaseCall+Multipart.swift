import Bytes
import Fleece
import HTTP
import Views

extension DatabaseCall {
  /// The boundary of the body, if it is multipart/related; nil otherwise, as when the boundary isn't named.
  var multipartBoundary: String? {
    let type = HTTPMediaType(request.headers.first("content-type") ?? "")
    return type.name == "multipart/related" ? type[parameter: "boundary"] : nil
  }

  /// Receives a document and the attachments that follow it, which go to the blobs as they arrive. Throws 400 if the body isn't what it
  /// says.
  func receiveMultipart(_ boundary: String, isForeign: Bool, _ new: inout NewAttachments) throws
    -> (IncomingDocument, [UInt8], [StoredAttachment])
  {
    let receiver = MultipartReceiver(self, isForeign: isForeign, new)
    defer { new = receiver.new }
    try parseMultipart(boundary) { try receiver.take($0) }
    return try receiver.finish()
  }

  /// Adds bytes of a part to a text in memory. Throws 413 if it gets longer than a request may be.
  func gather(_ bytes: UnsafeRawBufferPointer, into text: inout [UInt8]) throws {
    guard bytes.count <= service.configuration.maximumRequestBytes - text.count else {
      throw CouchDBError(413, "too_large", "the request entity is too large")
    }
    try request.memory?.hold(2 * bytes.count)
    text.append(contentsOf: bytes)
  }

  /// Reads a multipart body, and hands over what is in it as it arrives. Throws 400 if it isn't one.
  func parseMultipart(_ boundary: String, _ take: (MultipartParser.Event) throws -> Void) throws {
    do {
      var parser = try MultipartParser(boundary: boundary)
      let body = try request.decodedBody()
      while let bytes = try body.read() {
        try bytes.withUnsafeBytes { try parser.parse($0) { try take($0) } }
      }
      try parser.finish()
    } catch let error as MultipartError { throw CouchDBError(400, "bad_request", Self.reason(error)) }
  }

  private static func reason(_ error: MultipartError) -> String {
    switch error {
    case .invalidBoundary: "the boundary of the multipart body has more than 200 bytes, or none"
    case .longPreamble: "the multipart body doesn't begin with its boundary"
    case .malformedHeader: "a part of the multipart body has a header that can't be read"
    case .longHeaders: "a part of the multipart body has too long headers"
    case .tooManyParts: "the multipart body has too many parts"
    case .endsEarly: "the multipart body ends before its last boundary"
    }
  }
}

/// Takes the parts of a document with attachments: first the JSON, then the attachments in the order in which the JSON has them.
private final class MultipartReceiver {
  private let call: DatabaseCall
  private let isForeign: Bool
  var new: NewAttachments
  private var text: [UInt8] = []
  private var document: IncomingDocument?
  private var expected: [IncomingAttachments.Entry] = []
  private var received: [StoredAttachment] = []
  private var writer: AttachmentWriter?
  private var count: UInt64 = 0
  private var parts = 0

  init(_ call: DatabaseCall, isForeign: Bool, _ new: NewAttachments) {
    self.call = call
    self.isForeign = isForeign
    self.new = new
  }

  func take(_ event: MultipartParser.Event) throws {
    switch event {
    case .begin(let headers): try begin(headers)
    case .bytes(let bytes): try add(bytes)
    case .end: try end()
    }
  }

  private func begin(_ headers: HTTPHeaders) throws {
    if parts == 0, HTTPMediaType(headers.first("content-type") ?? "").name != "application/json" {
      throw CouchDBError(415, "bad_content_type", "Content-Type must be application/json")
    }
    parts += 1
    guard document != nil, received.count < expected.count else { return }
    let entry = expected[received.count]
    guard case .follows(_, let isCompressed, let digest) = entry.content else { return }
    writer = try AttachmentWriter(
      call, name: entry.name, contentType: entry.contentType, revpos: isForeign ? entry.revpos : nil,
      isCompressed: isCompressed, isForeign: isForeign, digest: digest)
    count = 0
  }

  private func add(_ bytes: UnsafeRawBufferPointer) throws {
    guard document != nil else { return try call.gather(bytes, into: &text) }
    // A part that the document doesn't name is skipped.
    guard let writer else { return }
    count += UInt64(bytes.count)
    if let length = expectedLength, count > length {
      throw CouchDBError(400, "bad_request", "attachment longer than expected")
    }
    try writer.write(bytes)
  }

  private var expectedLength: UInt64? {
    guard received.count < expected.count, case .follows(let length, _, _) = expected[received.count].content
    else {
      return nil
    }
    return length
  }

  private func end() throws {
    guard document != nil else {
      let document = try call.parse(text)
      if let range = document.attachments {
        expected = try text.withUnsafeBytes {
          try IncomingAttachments($0, range, call.request.memory)
        }.following
      }
      self.document = document
      return
    }
    guard let writer else { return }
    self.writer = nil
    if let length = expectedLength, count < length {
      throw CouchDBError(400, "bad_request", "attachment shorter than expected")
    }
    let attachment = try writer.finish()
    new.claim(attachment)
    received.append(attachment)
  }

  func finish() throws -> (IncomingDocument, [UInt8], [StoredAttachment]) {
    guard let document else { throw JSONScanner.invalid }
    guard received.count == expected.count else {
      throw CouchDBError(
        400, "bad_request",
        "the multipart body has no part for the attachment \(expected[received.count].name)")
    }
    return (document, text, received)
  }
}
