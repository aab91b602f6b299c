import Blobs
import Fleece
import HTTP
import Network
import Replication
import ReplicationNetwork
import Storage
import Transport

/// Writes the bytes of an attachment while they come. It is behind a `LaneSink`, since it waits for the disk.
///
/// A document says whether an attachment is stored as gzip there, and gives the length and the MD5 of what is stored. Two kinds
/// of servers don't keep to that. Some don't know `att_encoding_info`: the MD5 is that of gzip, and nothing says so. And a proxy may
/// encode what wasn't.
final class BlobDownload: AnswerWriter, @unchecked Sendable {
  /// What has come.
  struct Bytes: Sendable {
    /// Whether they are gzip.
    let isCompressed: Bool
    /// Whether they may be those of the document. Those of a blob may be although they have another MD5: that of gzip.
    let isVerified: Bool
  }

  enum Outcome: Sendable {
    case whole(Bytes)
    /// Another request may bring what the document says. Otherwise the attachment has that error.
    case better(HTTPClientRequest.Decoding, ReplicationError)
  }

  private let given: AttachmentPull.GivenWriter
  private let source: AttachmentPull.Source
  private let decoding: HTTPClientRequest.Decoding
  private let done: Completion<Outcome>

  // Used by one call at a time.
  private(set) var head = HTTPAnswerHead(status: 0)
  var errorText: [UInt8] = []
  private var isCompressed = false
  /// Whether the bytes have an encoding that isn't asked for.
  private var isEncoded = false
  var failure: ReplicationError?
  private var count: UInt64 = 0
  private let md5: MD5?

  /// The request was sent with that `decoding`.
  init(
    _ given: AttachmentPull.GivenWriter, _ source: AttachmentPull.Source,
    _ decoding: HTTPClientRequest.Decoding, _ done: @escaping Completion<Outcome>
  ) {
    self.given = given
    self.source = source
    self.decoding = decoding
    self.done = done
    md5 = source.md5 == nil ? nil : MD5()
  }

  func begin(_ head: HTTPAnswerHead) {
    self.head = head
    // With this the client has decoded it, or has failed.
    guard decoding != .decoded else { return }
    let encodings = head.headers.tokens("content-encoding").filter { $0 != "identity" }
    isCompressed = decoding == .encoded && encodings == ["gzip"]
    isEncoded = !isCompressed && !encodings.isEmpty
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws {
    if isEncoded { throw Self.encoded }
    count += UInt64(bytes.count)
    let limit = length ?? AttachmentEntry.maximumBytes
    guard count <= limit else {
      throw ReplicationError.malformed("an attachment has more than \(limit) bytes")
    }
    md5?.update(bytes)
    try given.writer.write(bytes)
  }

  /// The length of what comes, if it is known.
  private var length: UInt64? {
    if isCompressed == source.isCompressed { return source.length }
    return isCompressed ? nil : source.decodedLength
  }

  func end(_ error: TransportClose?) { done(result(error)) }

  static let otherMD5 = ReplicationError.malformed("an attachment has another MD5 than the document says")
  private static let encoded = ReplicationError.malformed(
    "an attachment comes in an encoding that isn't known")

  private func result(_ error: TransportClose?) -> Result<Outcome, ReplicationError> {
    if isEncoded, head.status == 200 { return .success(.better(.decoded, Self.encoded)) }
    if let failure { return .failure(failure) }
    if let error { return .failure(ReplicationError(end: error)) }
    guard head.status == 200 else { return .failure(.ofDocument(head, errorText, "reading an attachment")) }
    guard length.map({ $0 == count }) ?? true else {
      return .failure(.malformed("an attachment has \(count) bytes and not those of the document"))
    }
    // What a server has decoded has no MD5 in the document.
    let isVerifiable = isCompressed || !source.isCompressed
    let isVerified = !isVerifiable || source.md5.map { $0 == md5?.base64 } ?? true
    guard isVerified || source.blob != nil else {
      return source.isCompressed ? .failure(Self.otherMD5) : .success(.better(.encoded, Self.otherMD5))
    }
    return .success(.whole(Bytes(isCompressed: isCompressed, isVerified: isVerified)))
  }
}
