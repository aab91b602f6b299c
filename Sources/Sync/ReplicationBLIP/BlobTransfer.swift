// Blobs are asked for by their digests, and sent and stored piece by piece.

import BLIP
import Blobs
import Documents
import Replication
import Storage
import Synchronization
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// Gives the bytes of a blob.
private final class BlobMessageSource: BLIPSource, @unchecked Sendable {
  // Used by the connection's executor only.
  private let reader: BlobReader
  /// What was read before and isn't given yet.
  private var head: ArraySlice<UInt8>

  init(_ reader: BlobReader, head: [UInt8]) {
    self.reader = reader
    self.head = head[...]
  }

  func read(_ count: Int, into bytes: inout [UInt8]) throws -> BLIPSourceState {
    if !head.isEmpty {
      bytes += head.prefix(count)
      head = head.dropFirst(count)
      return .more
    }
    let piece = try reader.read(upTo: count)
    bytes += piece
    return piece.isEmpty ? .end : .more
  }
}

/// Stores the bytes of a blob, at most a number of them.
private final class BlobSink: BLIPSink, @unchecked Sendable {
  private let writer: BlobWriter
  private let limit: UInt64
  private let lane: JobLane
  private let hasFailed = Atomic(false)
  // Used on the lane's thread only.
  private var count: UInt64 = 0
  private var error: (any Error)?

  init(_ writer: BlobWriter, limit: UInt64, _ lane: JobLane) {
    self.writer = writer
    self.limit = limit
    self.lane = lane
  }

  func write(_ bytes: ArraySlice<UInt8>, _ consumed: @escaping @Sendable () -> Void) {
    lane.enqueue { [self] in
      defer { consumed() }
      guard error == nil else { return }
      count += UInt64(bytes.count)
      do {
        guard count <= limit else {
          throw ReplicationError(.http, 413, "a blob has more than \(limit) bytes")
        }
        try bytes.withUnsafeBytes { try writer.write($0) }
      } catch {
        self.error = error
        hasFailed.store(true, ordering: .releasing)
      }
    }
  }

  /// Nothing more is written then.
  var isFull: Bool { hasFailed.load(ordering: .acquiring) }

  /// Calls `done` when everything that has come is written, or couldn't be. `error` says why not all has come.
  func end(_ error: ReplicationError? = nil, _ done: @escaping Completion<Void>) {
    lane.enqueue { [self] in
      if let error = self.error ?? error {
        done(.failure(ReplicationError(error)))
      } else {
        done(.success(()))
      }
    }
  }
}

/// Fetches blobs from the peer, and gives it those of this side.
struct BlobTransfer: Sendable {
  /// The most bytes of a blob, unless its document says more. One that says less may be wrong: the digest decides.
  static let maximumBytes: UInt64 = 1 << 32
  /// What isn't worth compressing, by the beginnings of its media types.
  private static let compressedTypes = ["image/", "video/", "audio/", "application/zip", "application/gzip"]

  private let connection: BLIPConnection
  private let maximumBytes: UInt64
  private let lane: JobLane

  init(
    _ connection: BLIPConnection, maximumBytes: UInt64 = BlobTransfer.maximumBytes, on pool: Workers? = nil
  ) {
    self.connection = connection
    self.maximumBytes = maximumBytes
    lane = JobLane(on: pool)
  }

  // MARK: Fetching

  func fetch(
    _ blob: MissingBlob, of documentID: String, collection: String?, into writer: BlobWriter,
    _ done: @escaping Completion<Void>
  ) {
    var properties = BLIPProperties()
    if let collection { properties.append("collection", collection) }
    properties.append("digest", blob.digest.text)
    properties.append("docID", documentID)
    let type = blob.contentType ?? ""
    let isCompressed = Self.compressedTypes.contains { type.hasPrefix($0) } && !type.hasPrefix("image/svg")
    if !isCompressed { properties.append("compress", "true") }
    let sink = BlobSink(writer, limit: max(blob.length ?? 0, maximumBytes), lane)
    connection.send(BLIPRequest(Profile.getAttachment, properties), sink: sink) { result in
      switch result {
      case .failure(let error): sink.end(ReplicationError(noReply: error), done)
      case .success(let reply): sink.end(reply.error.map { ReplicationError($0) }, done)
      }
    }
  }

  // MARK: Giving

  /// Answers requests for blobs, and for proofs that this side has them.
  static func answer(
    _ connection: BLIPConnection, on pool: Workers? = nil,
    openBlob: @escaping @Sendable (BlobDigest) throws -> BlobReader
  ) {
    let lane = JobLane(on: pool)
    connection.onRequest(Profile.getAttachment) { request in
      lane.enqueue {
        answer(request) { digest in
          let reader = try openBlob(digest)
          let mayCompress = request.message.properties.isTrue("compress")
          let head = mayCompress ? try reader.read(upTo: sampleBytes) : []
          var reply = BLIPReply(body: .source(BlobMessageSource(reader, head: head)))
          reply.isCompressed = mayCompress && isWorthCompressing(head)
          return reply
        }
      }
    }
    connection.onRequest(Profile.proveAttachment) { request in
      lane.enqueue {
        answer(request) { digest in
          let nonce = Array(request.message.body)
          guard (1...255).contains(nonce.count) else {
            throw ReplicationError(.http, 400, "a nonce has \(nonce.count) bytes")
          }
          return BLIPReply(body: .bytes(Array(try proof(try openBlob(digest), nonce).utf8)))
        }
      }
    }
  }

  /// The bytes at the beginning of a blob by which it is judged.
  static let sampleBytes = 16 << 10

  /// Whether compression would make bytes smaller that are distributed like these. Random, encrypted and compressed ones
  /// it doesn't, and then it takes six times the time of all other work.
  static func isWorthCompressing(_ bytes: [UInt8]) -> Bool {
    var counts = [Int](repeating: 0, count: 256)
    for byte in bytes { counts[Int(byte)] += 1 }
    // The entropy in bits a byte. That of a short sample is at most the logarithm of its length.
    let entropy = counts.reduce(0.0) { sum, count in
      guard count > 0 else { return sum }
      let share = Double(count) / Double(bytes.count)
      return sum - share * log2(share)
    }
    return entropy < 7.8
  }

  private static func answer(_ request: BLIPIncomingRequest, _ body: (BlobDigest) throws -> BLIPReply) {
    do {
      guard let digest = request.message.properties["digest"].flatMap({ BlobDigest($0) }) else {
        throw ReplicationError(.blip, 400, "the digest of a blob is missing or can't be read")
      }
      request.reply(try body(digest))
    } catch let error as ReplicationError {
      request.reply(error.reply)
    } catch {
      request.reply(failure(error).reply)
    }
  }

  /// What is answered for a blob that can't be given. A failure to read it that isn't its own may pass.
  private static func failure(_ error: any Error) -> ReplicationError {
    switch (error as? any TouchstoneError)?.kind {
    case .notFound: ReplicationError(.http, 404, "the blob isn't here")
    case .corrupt: ReplicationError(.http, 404, "the blob is damaged here")
    default: ReplicationError(.http, 503, "the blob can't be read now")
    }
  }

  /// `sha1-` and the base64 of the SHA-1 of the nonce's length in a byte, the nonce, and the blob.
  static func proof(_ blob: BlobReader, _ nonce: [UInt8]) throws -> String {
    let hash = try SHA1Stream()
    try ([UInt8(nonce.count)] + nonce).withUnsafeBytes { try hash.update($0) }
    while case let piece = try blob.read(upTo: 1 << 16), !piece.isEmpty {
      try piece.withUnsafeBytes { try hash.update($0) }
    }
    return try hash.finish().text
  }
}
