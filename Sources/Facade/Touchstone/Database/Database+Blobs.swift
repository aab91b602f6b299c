import Blobs
import Documents

extension Database {
  /// Stores bytes for a document that is saved later, and returns the blob to put into that document.
  ///
  /// It is for documents that are saved as JSON text, and for content that is stored long before its document.
  /// `Blob(_:contentType:)` needs no database: the save of its document stores it.
  ///
  /// ```swift
  /// let blob = try database.makeBlob(jpeg, contentType: "image/jpeg")
  /// try database.save("task_1", DocumentBody(json: "{\"avatar\":\(blob)}"))
  /// let bytes = try database.contents(of: blob)
  /// ```
  ///
  /// A blob that no saved document has is kept while the database is open. Equal bytes are stored once.
  /// Throws a `StorageError`: `diskFull`, `readOnly`, …
  public func makeBlob(_ bytes: some Sequence<UInt8>, contentType: String? = nil) throws -> Blob {
    let writer = try makeBlobWriter()
    try writer.write(bytes)
    return Blob(try writer.finish(), contentType)
  }

  /// Stores the bytes of a file as `makeBlob(_:contentType:)` does, in constant memory.
  public func makeBlob(contentsOfFile path: String, contentType: String? = nil) throws -> Blob {
    Blob(try writable.requiredBlobs.store(contentsOfFile: path), contentType)
  }

  /// Returns a writer that takes the bytes of a new blob in pieces, in constant memory. Make the blob with
  /// `Blob(try writer.finish(), contentType)`.
  public func makeBlobWriter() throws -> BlobWriter { try writable.requiredBlobs.makeWriter() }

  /// Opens a blob for reading in pieces, in constant memory. Throws `notFound` if the blob isn't stored, and
  /// `damaged` if its bytes have changed.
  public func open(_ blob: Blob) throws -> BlobReader { try store.requiredBlobs.open(blob.digest) }

  /// Returns all bytes of a blob. Throws `valueTooLarge` if there are more than `limit` (default: 2 GiB).
  public func contents(of blob: Blob, limit: UInt64 = 1 << 31) throws -> [UInt8] {
    try store.requiredBlobs.contents(of: blob.digest, limit: limit)
  }

  /// Calls `body` while no process removes blobs: what a snapshot names that begins in it stays. A compaction leaves unused blobs to
  /// the next one meanwhile.
  package func holdingBlobs<Result>(_ body: () throws -> Result) throws -> Result {
    let hold = try store.blobs?.hold()
    defer { hold?.end() }
    return try body()
  }

  /// Whether the blob's bytes are stored in this database.
  public func contains(_ blob: Blob) throws -> Bool { try store.blobs?.contains(blob.digest) ?? false }
}
