import Documents

extension Database {
  /// Stores bytes for a document that is saved later, and returns what the document names them by.
  ///
  /// ```swift
  /// var task = MutableDocument(id: "task_1", ["title": "Buy groceries"])
  /// task["avatar"] = try database.makeBlob(jpeg, contentType: "image/jpeg").jsonValue
  /// task.setAttachment("list.txt", try database.makeBlob(text, contentType: "text/plain"))
  /// try database.save(&task)
  /// let bytes = try database.contents(of: task["avatar"].blob!)
  /// ```
  ///
  /// Until it is saved a blob is kept as long as the database is open. The same bytes are stored once. Throws a
  /// `StorageError`: `diskFull`, `readOnly`, …
  public func makeBlob(_ bytes: some Sequence<UInt8>, contentType: String? = nil) throws -> Blob {
    try writable.makeBlob(bytes, contentType: contentType)
  }

  /// Stores the bytes of a file, in constant memory, as `makeBlob(_:contentType:)` does.
  public func makeBlob(contentsOfFile path: String, contentType: String? = nil) throws -> Blob {
    try writable.makeBlob(contentsOfFile: path, contentType: contentType)
  }

  /// Takes the bytes of a new blob in pieces, in constant memory: `Blob(try writer.finish(), contentType)` names it.
  public func makeBlobWriter() throws -> BlobWriter { try writable.makeBlobWriter() }

  /// Opens a blob for reading in pieces, in constant memory. Throws `notFound` when it isn't here, and `damaged`
  /// when it isn't what was stored.
  public func open(_ blob: Blob) throws -> BlobReader { try store.open(blob) }

  /// All bytes of a blob, at most `limit` (2 GiB): else `valueTooLarge`.
  public func contents(of blob: Blob, limit: UInt64 = 1 << 31) throws -> [UInt8] {
    try store.contents(of: blob, limit: limit)
  }

  /// Whether the bytes of a blob are here.
  public func contains(_ blob: Blob) throws -> Bool { try store.contains(blob) }
}
