import CCrypto
import HTTP
import Network
import Replication
import Storage
import Touchstone
import Transport

#if canImport(Glibc)
  import Glibc
#endif

/// An answer that becomes the body of a request. A short one is kept in memory, a longer one in a file
/// without a name in the directory for temporary files, encrypted with a key that only the memory has
/// (AES-256 in counter mode).
///
/// It takes the answer behind a `LaneSink`, since it waits for the disk. Once that is whole, it is read by
/// one thread at a time.
final class SpooledBody: AnswerWriter, HTTPRequestSource, @unchecked Sendable {
  /// What stays in memory.
  static let bytesInMemory = 256 << 10
  /// A longer answer that isn't in several parts goes on without a look at it.
  static let longestCheckedText = 8 << 20

  private(set) var head = HTTPAnswerHead(status: 0)
  /// The text of an answer without a document.
  var errorText: [UInt8] = []

  private let limit: UInt64
  private let text: RelayedText
  private var done: (@Sendable (SpooledBody, ReplicationError?) -> Void)?
  var failure: ReplicationError?
  private var memory: [UInt8] = []
  private var file: SealedFile?
  /// What has come, and what is kept of it.
  private var received: UInt64 = 0
  private var count: UInt64 = 0
  private var offset = 0
  /// What has come of the document; nil behind it.
  private var document: [UInt8]?
  /// What ends the document, if parts follow it.
  private var delimiter: [UInt8]?

  /// The document is the answer, or its first part. `done` is called when the answer has ended.
  init(
    _ text: RelayedText, limit: UInt64,
    _ done: @escaping @Sendable (SpooledBody, ReplicationError?) -> Void
  ) {
    self.text = text
    self.limit = limit
    self.done = done
  }

  // MARK: The answer

  func begin(_ head: HTTPAnswerHead) {
    self.head = head
    guard head.status == 200 else { return }
    let type = HTTPMediaType(head.headers.first("content-type") ?? "")
    if type.name.hasPrefix("multipart/") {
      delimiter = Array("\r\n--\(type[parameter: "boundary"] ?? "")".utf8)
    }
    document = []
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws {
    received += UInt64(bytes.count)
    guard received <= limit else {
      throw ReplicationError.malformed("a document has more than \(limit) bytes with its attachments")
    }
    guard let begun = document?.count else { return try keep(bytes) }
    document?.append(contentsOf: bytes)
    try takePart(after: begun)
    guard let rest = document else { return }
    guard delimiter == nil else {
      guard rest.count <= DocumentFetch.maximumItemBytes else {
        throw ReplicationError.malformed("a document has more than \(DocumentFetch.maximumItemBytes) bytes")
      }
      return
    }
    // Such a long one has its attachments in the text.
    if rest.count > Self.longestCheckedText {
      document = nil
      try rest.withUnsafeBytes { try keep($0) }
    }
  }

  /// Takes the first of several parts, if it is whole. The first `begun` bytes were looked at.
  private func takePart(after begun: Int) throws {
    guard let delimiter, let come = document else { return }
    let blank: [UInt8] = [13, 10, 13, 10]
    guard let start = Self.place(of: blank, in: come, from: 0).map({ $0 + blank.count }),
      let end = Self.place(of: delimiter, in: come, from: max(start, begun - delimiter.count))
    else { return }
    document = nil
    let checked = try come[..<start] + text.checked(Array(come[start..<end])) + come[end...]
    try Array(checked).withUnsafeBytes { try keep($0) }
  }

  private static func place(of wanted: [UInt8], in text: [UInt8], from start: Int) -> Int? {
    guard text.count - start >= wanted.count else { return nil }
    return text.withUnsafeBytes { text in
      guard let base = text.baseAddress else { return nil }
      var place = start
      while place <= text.count - wanted.count,
        let found = memchr(base + place, Int32(wanted[0]), text.count - wanted.count - place + 1)
      {
        if memcmp(found, wanted, wanted.count) == 0 { return UnsafeRawPointer(found) - base }
        place = UnsafeRawPointer(found) - base + 1
      }
      return nil
    }
  }

  private func keep(_ bytes: UnsafeRawBufferPointer) throws {
    count += UInt64(bytes.count)
    if file == nil, memory.count + bytes.count <= Self.bytesInMemory {
      memory.append(contentsOf: bytes)
      return
    }
    let file = try file ?? SealedFile()
    if self.file == nil {
      self.file = file
      try memory.withUnsafeBytes { try file.append($0) }
      memory = []
    }
    try file.append(bytes)
  }

  func end(_ error: TransportClose?) {
    if error == nil, failure == nil, let come = document {
      document = nil
      do {
        guard delimiter == nil else { throw ReplicationError.malformed("an answer has no parts") }
        try text.checked(come).withUnsafeBytes { try keep($0) }
      } catch { failure = ReplicationError(error) }
    }
    let done = done
    self.done = nil
    done?(self, failure ?? error.map { ReplicationError(end: $0) })
  }

  // MARK: The request

  var length: UInt64? { count }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    if let file {
      let wanted = min(UInt64(buffer.count), count - UInt64(offset))
      let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(wanted)])
      let found = part.isEmpty ? 0 : try file.read(into: part, at: offset)
      offset += found
      return found
    }
    let part = memory[offset..<min(offset + buffer.count, memory.count)]
    buffer.copyBytes(from: part)
    offset += part.count
    return part.count
  }

  func rewind() throws {
    offset = 0
    try file?.rewind()
  }
}

/// A file without a name, whose bytes are encrypted. It is written once, and then read from its beginning.
private final class SealedFile {
  private static let (keyBytes, counterBytes) = (32, 16)

  private let descriptor: Int32
  private let key: [UInt8]
  private var cipher: OpaquePointer
  private var written = 0
  private var buffer: [UInt8] = []

  init() throws {
    var key = [UInt8](repeating: 0, count: Self.keyBytes)
    guard RAND_bytes(&key, Int32(key.count)) == 1 else { throw Self.failed }
    self.key = key
    cipher = try Self.makeCipher(key)
    do { descriptor = try NamelessFile.open(in: NamelessFile.directory) } catch {
      EVP_CIPHER_CTX_free(cipher)
      throw error
    }
  }

  deinit {
    close(descriptor)
    EVP_CIPHER_CTX_free(cipher)
  }

  private static let failed = ReplicationError(
    .touchstone, ErrorKind.ioError.rawValue, "libcrypto doesn't provide AES")

  /// A key is used for one file, so that the counter begins at zero.
  private static func makeCipher(_ key: [UInt8]) throws -> OpaquePointer {
    guard let cipher = EVP_CIPHER_CTX_new() else { throw failed }
    let counter = [UInt8](repeating: 0, count: counterBytes)
    guard EVP_EncryptInit_ex(cipher, EVP_aes_256_ctr(), nil, key, counter) == 1 else {
      EVP_CIPHER_CTX_free(cipher)
      throw failed
    }
    return cipher
  }

  /// Encrypts or decrypts: in counter mode both are the same.
  private func apply(_ bytes: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer) throws {
    var count: Int32 = 0
    guard
      EVP_EncryptUpdate(
        cipher, target.bindMemory(to: UInt8.self).baseAddress, &count,
        bytes.bindMemory(to: UInt8.self).baseAddress, Int32(bytes.count)) == 1, Int(count) == bytes.count
    else { throw Self.failed }
  }

  func append(_ bytes: UnsafeRawBufferPointer) throws {
    guard !bytes.isEmpty else { return }
    if buffer.count < bytes.count { buffer = [UInt8](repeating: 0, count: bytes.count) }
    try buffer.withUnsafeMutableBytes { buffer in
      let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<bytes.count])
      try apply(bytes, to: part)
      guard FileWriting.writeAll(UnsafeRawBufferPointer(part), at: written, to: descriptor) else {
        throw StorageError.system(errno, "can't write a temporary file in", NamelessFile.directory)
      }
    }
    written += bytes.count
  }

  func rewind() throws {
    let new = try Self.makeCipher(key)
    EVP_CIPHER_CTX_free(cipher)
    cipher = new
  }

  /// Reads the next bytes, which are at `offset`. Returns how many: 0 at the end.
  func read(into target: UnsafeMutableRawBufferPointer, at offset: Int) throws -> Int {
    while true {
      let count = pread(descriptor, target.baseAddress, target.count, off_t(offset))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw StorageError.system(errno, "can't read a temporary file in", NamelessFile.directory)
      }
      let part = UnsafeMutableRawBufferPointer(rebasing: target[..<count])
      if count > 0 { try apply(UnsafeRawBufferPointer(part), to: part) }
      return count
    }
  }
}
