import BLIP
import Blobs
import CCrypto
import Fleece
import HTTP
import Network
import Replication
import Storage

/// Writes the bytes of an attachment while they come, on a thread that may wait for the disk.
final class BlobDownload: HTTPAnswerSink, @unchecked Sendable {
  /// The most bytes that wait for the disk.
  static let waitingBytes = 1 << 20

  private let given: AttachmentPull.GivenWriter
  private let source: AttachmentPull.Source
  private let done: Completion<Bool>
  private let lane = Lane()

  private struct State {
    var task: (any HTTPTask)?
    var waiting = 0
    var isPaused = false
    var error: ReplicationError?
  }
  private let state = Lock(State())

  // Used on the client's thread only.
  private var head = HTTPAnswerHead(status: 0)
  private var errorText: [UInt8] = []
  private var isCompressed = false
  // Used on the lane only.
  private var count: UInt64 = 0
  private let md5: MD5?

  init(
    _ given: AttachmentPull.GivenWriter, _ source: AttachmentPull.Source, _ done: @escaping Completion<Bool>
  ) {
    self.given = given
    self.source = source
    self.done = done
    md5 = source.md5 == nil ? nil : MD5()
  }

  var task: (any HTTPTask)? {
    get { state.withLock { $0.task } }
    set {
      let isPaused = state.withLock { state in
        state.task = newValue
        return state.isPaused && state.waiting == 0
      }
      // It was paused before this side knew how to resume it.
      if isPaused { newValue?.resume() }
    }
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
    if let error = state.withLock({ $0.error }) { throw TransportClose.malformed(error) }
    let copy = [UInt8](bytes)
    let goesOn = state.withLock { state in
      state.waiting += copy.count
      if state.waiting > Self.waitingBytes { state.isPaused = true }
      return !state.isPaused
    }
    lane.enqueue { [self] in
      write(copy)
      let task = state.withLock { state -> (any HTTPTask)? in
        state.waiting -= copy.count
        guard state.isPaused, state.waiting == 0, let task = state.task else { return nil }
        state.isPaused = false
        return task
      }
      task?.resume()
    }
    return goesOn
  }

  private func write(_ bytes: [UInt8]) {
    guard state.withLock({ $0.error == nil }) else { return }
    do {
      count += UInt64(bytes.count)
      // A server that decodes what this side takes as gzip says so, and then the length isn't known.
      let isAsStored = isCompressed == source.isCompressed
      let limit = isAsStored ? source.length ?? AttachmentPull.maximumBytes : AttachmentPull.maximumBytes
      guard count <= limit else {
        throw ReplicationError.malformed("an attachment has more than \(limit) bytes")
      }
      try bytes.withUnsafeBytes { bytes in
        md5?.update(bytes)
        try given.writer.write(bytes)
      }
    } catch { state.withLock { $0.error = ReplicationError(error) } }
  }

  func end(_ error: TransportClose?) {
    let (head, errorText, isCompressed) = (head, errorText, isCompressed)
    lane.enqueue { [self] in
      state.withLock { $0.task = nil }
      if let failure = state.withLock({ $0.error }) { return done(.failure(failure)) }
      if let error { return done(.failure(ReplicationError(end: error))) }
      guard head.status == 200 else {
        let body = errorText.withUnsafeBytes { try? JSONValue(json: $0) }
        return done(.failure(.answer(head, body, "reading an attachment")))
      }
      if isCompressed == source.isCompressed {
        guard source.length.map({ $0 == count }) ?? true else {
          return done(.failure(.malformed("an attachment has \(count) bytes and not those of the document")))
        }
        guard source.md5.map({ $0 == md5?.base64 }) ?? true else {
          return done(.failure(.malformed("an attachment has another MD5 than the document says")))
        }
      }
      done(.success(isCompressed))
    }
  }
}

/// The MD5 of a stream of bytes. Used on one thread at a time.
final class MD5 {
  private let context: OpaquePointer?
  private var result: String?

  init() {
    context = EVP_MD_CTX_new()
    if let context { EVP_DigestInit_ex(context, EVP_md5(), nil) }
  }

  deinit { EVP_MD_CTX_free(context) }

  func update(_ bytes: UnsafeRawBufferPointer) {
    if let context { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }
  }

  /// In base64; empty if libcrypto has no MD5.
  var base64: String {
    if let result { return result }
    var digest = [UInt8](repeating: 0, count: 16)
    var count: UInt32 = 0
    guard let context, EVP_DigestFinal_ex(context, &digest, &count) == 1, count == 16 else { return "" }
    let text = Blobs.base64(digest)
    result = text
    return text
  }
}
