import Glibc
import Storage

/// The size of a piece of a blob, in bytes. The last piece is shorter.
let pieceBytes = 256 << 10

/// The bytes of a stored blob. The piece that was read last stays in memory.
///
/// `@unchecked Sendable`: one thread at a time reads.
final class StoredPieces: BlobBytes, @unchecked Sendable {
  private let blobs: PostgresBlobs
  private let id: [UInt8]
  private let bytes: UInt64
  private let place: String
  private var last: (number: Int, answer: Answer)?

  init(_ blobs: PostgresBlobs, id: [UInt8], bytes: UInt64, place: String) {
    self.blobs = blobs
    self.id = id
    self.bytes = bytes
    self.place = place
  }

  func length() throws -> UInt64 { bytes }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: UInt64) throws -> Int {
    var done = 0
    while done < buffer.count {
      let position = Int(offset) + done
      guard position < bytes, let answer = try piece(position / pieceBytes) else { break }
      let piece = answer.bytes(0, 0)
      let start = position % pieceBytes
      // A piece that is too short ends the blob, which its reader reports.
      guard start < piece.count else { break }
      let count = min(piece.count - start, buffer.count - done)
      (buffer.baseAddress! + done).copyMemory(from: piece.baseAddress! + start, byteCount: count)
      done += count
    }
    return done
  }

  /// The answer with a piece. Nil if the piece is missing, but the blob isn't. Throws `notFound` if the blob was removed.
  private func piece(_ number: Int) throws -> Answer? {
    if let last, last.number == number { return last.answer }
    let answers = try id.withUnsafeBytes { id in
      try blobs.exchange([
        .prepared(.blobPiece, [.bytes(id), .integer(number)]), .prepared(.isBlob, [.bytes(id)]),
      ])
    }
    guard answers[0].count == 1 else {
      guard answers[1].count == 1 else {
        throw StorageError(.notFound, "the blob was removed while it was read", path: place)
      }
      return nil
    }
    last = (number, answers[0])
    return answers[0]
  }
}

/// A new blob. Its pieces are sent when they are full.
///
/// `@unchecked Sendable`: one thread at a time writes.
final class NewPieces: NewBlobBytes, @unchecked Sendable {
  let id: [UInt8]
  let place: String
  private let blobs: PostgresBlobs
  private var buffer: [UInt8] = []
  /// The number of pieces that were sent.
  private var pieces = 0
  /// Whether the server knows the blob.
  private var isThere = false
  private let isDiscarded = Lock(false)

  init(_ blobs: PostgresBlobs) throws {
    self.blobs = blobs
    id = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
    place = "\(blobs.location), a new blob"
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws {
    guard Int(offset) == pieces * pieceBytes + buffer.count else {
      throw StorageError(
        .unsupported, "a blob on a server is written from its beginning to its end", path: place)
    }
    var rest = bytes
    while !rest.isEmpty {
      let count = min(pieceBytes - buffer.count, rest.count)
      buffer.append(contentsOf: rest[..<(rest.startIndex + count)])
      rest = UnsafeRawBufferPointer(rebasing: rest[(rest.startIndex + count)...])
      if buffer.count == pieceBytes { try send() }
    }
  }

  /// Sends the piece, with the claim if that is new or a while old.
  private func send(isLast: Bool = false) throws {
    try id.withUnsafeBytes { id in
      try buffer.withUnsafeBytes { bytes in
        var requests: [Request] = []
        if !isThere || pieces % 1_024 == 0 { requests.append(.prepared(.addBlob, [.bytes(id)])) }
        if !bytes.isEmpty {
          requests.append(.prepared(.addPiece, [.bytes(id), .integer(pieces), .bytes(bytes)]))
        }
        if isLast {
          requests.append(.prepared(.endBlob, [.bytes(id), .integer(pieces * pieceBytes + bytes.count)]))
        }
        isThere = true
        let answers = try blobs.exchange(requests)
        guard !isLast || answers.last?.count == 1 else {
          throw StorageError(.notFound, "the new blob was removed while it was written", path: place)
        }
      }
    }
    if !buffer.isEmpty { pieces += 1 }
    buffer.removeAll(keepingCapacity: !isLast)
  }

  func finish() throws { try send(isLast: true) }

  func open() throws -> any BlobBytes {
    let answer = try id.withUnsafeBytes { try blobs.exchange([.prepared(.isBlob, [.bytes($0)])])[0] }
    guard answer.count == 1 else {
      throw StorageError(.notFound, "the new blob was removed", path: place)
    }
    return StoredPieces(blobs, id: id, bytes: UInt64(answer.integer(0, 0)), place: place)
  }

  /// What can't be removed now, because the server is away, a later removal of unused blobs removes.
  func discard() {
    let isDone = isDiscarded.withLock { isDiscarded in
      defer { isDiscarded = true }
      return isDiscarded
    }
    guard !isDone, isThere else { return }
    _ = try? id.withUnsafeBytes { id in
      try blobs.exchange([.prepared(.unclaimBlob, [.bytes(id)]), .prepared(.dropBlob, [.bytes(id)])])
    }
  }
}
