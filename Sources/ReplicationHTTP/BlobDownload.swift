import BLIP
import Blobs
import Fleece
import HTTP
import Network
import Replication
import Storage

/// Writes the bytes of an attachment while they come. It is behind a `LaneSink`, since it waits for the disk.
final class BlobDownload: HTTPAnswerSink, @unchecked Sendable {
  private let given: AttachmentPull.GivenWriter
  private let source: AttachmentPull.Source
  private let done: Completion<Bool>

  // Used by one call at a time.
  private var head = HTTPAnswerHead(status: 0)
  private var errorText: [UInt8] = []
  private var isCompressed = false
  private var failure: ReplicationError?
  private var count: UInt64 = 0
  private let md5: MD5?

  /// `done` has whether the bytes are gzip.
  init(
    _ given: AttachmentPull.GivenWriter, _ source: AttachmentPull.Source, _ done: @escaping Completion<Bool>
  ) {
    self.given = given
    self.source = source
    self.done = done
    md5 = source.md5 == nil ? nil : MD5()
  }

  func begin(_ head: HTTPAnswerHead) {
    self.head = head
    isCompressed = head.headers.tokens("content-encoding").contains("gzip")
  }

  func receive(_ bytes: UnsafeRawBufferPointer) throws -> Bool {
    guard head.status == 200 else {
      errorText.append(contentsOf: bytes.prefix((64 << 10) - errorText.count))
      return true
    }
    do { try write(bytes) } catch {
      let failure = ReplicationError(error)
      self.failure = failure
      throw failure
    }
    return true
  }

  private func write(_ bytes: UnsafeRawBufferPointer) throws {
    count += UInt64(bytes.count)
    // A server that decodes what this side takes as gzip says so, and then the length isn't known.
    let isAsStored = isCompressed == source.isCompressed
    let limit = isAsStored ? source.length ?? AttachmentEntry.maximumBytes : AttachmentEntry.maximumBytes
    guard count <= limit else {
      throw ReplicationError.malformed("an attachment has more than \(limit) bytes")
    }
    md5?.update(bytes)
    try given.writer.write(bytes)
  }

  func end(_ error: TransportClose?) { done(result(error)) }

  private func result(_ error: TransportClose?) -> Result<Bool, ReplicationError> {
    if let failure { return .failure(failure) }
    if let error { return .failure(ReplicationError(end: error)) }
    guard head.status == 200 else { return .failure(.ofDocument(head, errorText, "reading an attachment")) }
    if isCompressed == source.isCompressed {
      guard source.length.map({ $0 == count }) ?? true else {
        return .failure(.malformed("an attachment has \(count) bytes and not those of the document"))
      }
      guard source.md5.map({ $0 == md5?.base64 }) ?? true else {
        return .failure(.malformed("an attachment has another MD5 than the document says"))
      }
    }
    return .success(isCompressed)
  }
}
