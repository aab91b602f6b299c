// A reference to a blob in a document, in one of two forms:
//
//   anywhere     {"@type":"blob","digest":"sha1-…","length":n,"content_type":"…"}
//   _attachments {name: {"stub":true,"digest":"sha1-…","length":n,"content_type":"…","revpos":g,
//                        "encoding":"gzip","encoded_length":n}}                       the last two when encoded

import Blobs
import Fleece
import Storage

/// A blob: its digest, its length and its content type, and its content where that is known.
///
/// A new blob is made from bytes, a file or a stream, without a database. Put it into a document. The save
/// stores its content:
///
/// ```swift
/// var task = MutableDocument(id: "task_1", ["title": "Buy groceries"])
/// task.set(try Blob(jpeg, contentType: "image/jpeg"), forKey: "avatar")
/// try database.save(&task)
/// let avatar = try database.document("task_1")?.blob(forKey: "avatar")?.content()
/// ```
///
/// A blob that was read from a document finds its content in that database as long as it is open. A document
/// takes its blobs along when it is saved in another database.
public struct Blob: Sendable {
  /// The property that distinguishes blobs from other objects, and its value.
  static let typeProperty = "@type"
  static let type = "blob"

  /// The SHA-1 digest of the stored bytes.
  public let digest: BlobDigest
  /// The length in bytes.
  public let length: UInt64
  /// The MIME type, if known.
  public let contentType: String?
  /// Where the content is, nil if that isn't known.
  let source: BlobSource?

  // MARK: Making

  /// Creates a blob of bytes, which are kept in memory. Throws `StorageError.engineFailure` if the system's
  /// cryptographic library has no SHA-1.
  public init(_ bytes: some Sequence<UInt8>, contentType: String? = nil) throws {
    self.init(try BlobSource.make(Array(bytes)), contentType)
  }

  /// Creates a blob of the bytes of a file, which is read once for the digest.
  ///
  /// Up to 1 MiB is kept in memory. The bytes of a larger file stay where they are, so the file must stay as it
  /// is until the blob is saved. Otherwise the save throws a `StorageError`: `notFound` or `damaged`.
  public init(contentsOfFile path: String, contentType: String? = nil) throws {
    self.init(try BlobSource.make(contentsOfFile: path), contentType)
  }

  /// Creates a blob of a stream, which is read to its end. `next` fills a buffer of 64 KiB with the next bytes
  /// and returns their number, 0 at the end. What it throws is rethrown.
  ///
  /// ```swift
  /// let blob = try Blob(contentType: "video/mp4") { buffer in
  ///   let bytes = buffer.bindMemory(to: UInt8.self)
  ///   return bytes.baseAddress.map { stream.read($0, maxLength: bytes.count) } ?? 0
  /// }
  /// ```
  ///
  /// Up to 1 MiB is kept in memory, more in an encrypted temporary file, which is removed with the last copy of
  /// the blob. Throws `invalidArgument` if `next` returns a negative number, as an `InputStream` that failed
  /// does.
  public init(
    contentType: String? = nil, reading next: (UnsafeMutableRawBufferPointer) throws -> Int
  ) throws {
    self.init(try BlobSource.make(reading: next), contentType)
  }

  private init(_ made: (blob: StoredBlob, source: BlobSource), _ contentType: String?) {
    self.init(
      digest: made.blob.digest, length: made.blob.length, contentType: contentType, source: made.source)
  }

  /// Creates a reference to a blob that is stored already, or that will be stored when a document is saved
  /// with it. `Database.contents(of:limit:)` reads it.
  public init(digest: BlobDigest, length: UInt64, contentType: String? = nil) {
    self.init(digest: digest, length: length, contentType: contentType, source: nil)
  }

  init(digest: BlobDigest, length: UInt64, contentType: String?, source: BlobSource?) {
    self.digest = digest
    self.length = length
    self.contentType = contentType
    self.source = source
  }

  /// Creates a reference to a stored blob.
  public init(_ stored: StoredBlob, _ contentType: String? = nil) {
    self.init(digest: stored.digest, length: stored.length, contentType: contentType)
  }

  /// Parses a blob reference in a document. Nil if the value isn't one. An object without `@type` is a
  /// reference if it has the form of an attachment: with `digest`, `length`, `revpos` and `stub`.
  public init?(_ value: JSONValue) {
    guard let members = value.object, let digest = members["digest"]?.string.flatMap({ BlobDigest($0) })
    else {
      return nil
    }
    switch members[Blob.typeProperty] {
    case .string(Blob.type)?: break
    case nil:
      guard members["revpos"] != nil, members["stub"] != nil, members["length"] != nil else { return nil }
    default: return nil
    }
    self.init(
      digest: digest, length: members["length"]?.uint ?? 0, contentType: members["content_type"]?.string,
      source: members.blobSource)
  }

  /// The object that refers to the blob anywhere in a document. It takes the blob's content along.
  public var jsonValue: JSONValue {
    var members: JSONObject = [
      Blob.typeProperty: .string(Blob.type), "digest": .string(digest.text), "length": JSONValue(length),
    ]
    if let contentType { members["content_type"] = .string(contentType) }
    if let source { members.setContentSource(source) }
    return .object(members)
  }

  // MARK: Reading

  /// Opens the content for reading in pieces, in constant memory.
  ///
  /// Throws a `DocumentError`, `missingBlob`, if it isn't known where the content is: the blob was made from its
  /// digest, or its object came from JSON or a query. `Database.open(_:)` reads such a blob. Throws a
  /// `StorageError`: `closed` if the database that it was read from is closed, `notFound`, and `damaged`.
  public func open() throws -> BlobReader {
    guard let source else {
      throw DocumentError(
        .missingBlob,
        "the blob \(digest) doesn't know where its content is; read it with Database.contents(of:), or take the"
          + " blob from a document that was read")
    }
    return try source.open(digest)
  }

  /// Returns the content. Throws as `open()` does, and `StorageError.valueTooLarge` if there are more than
  /// `limit` bytes (default: 2 GiB).
  public func content(limit: UInt64 = 1 << 31) throws -> [UInt8] {
    let reader = try open()
    guard reader.length <= limit else {
      throw StorageError(
        .valueTooLarge,
        "the blob \(digest) has \(reader.length) bytes, more than the limit of \(limit); read it in pieces")
    }
    return try reader.read(upTo: Int(reader.length))
  }
}

extension Blob: Hashable {
  /// Returns whether both have the same digest, length and content type. Where the content is doesn't matter.
  public static func == (left: Blob, right: Blob) -> Bool {
    left.digest == right.digest && left.length == right.length && left.contentType == right.contentType
  }

  /// Hashes the digest.
  public func hash(into hasher: inout Hasher) { hasher.combine(digest) }
}

extension Blob: CustomStringConvertible {
  /// The canonical JSON of the reference.
  public var description: String { jsonValue.description }
}

extension Blob: Codable {
  /// Decodes the object that refers to the blob. From a document, the blob knows its content.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let blob = Blob(try container.decode(JSONValue.self)) else {
      throw DecodingError.typeMismatch(
        Blob.self,
        DecodingError.Context(
          codingPath: decoder.codingPath, debugDescription: "expected an object of the type blob"))
    }
    self = blob
  }

  /// Encodes the object that refers to the blob. In a document it takes the content along. Encoders of other
  /// modules don't.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(jsonValue)
  }
}
