import Storage

extension BlobStore {
  /// Copies all blobs that `target` lacks, in constant memory, and encrypts them with the key of `target`, if
  /// it has one. Returns the number of copied blobs. `onProgress` is called with the number of bytes of each
  /// piece. An error of `onProgress` ends the copy.
  ///
  /// Each blob is verified while it is read. Throws `damaged` for a blob that was changed. If `target` has
  /// the durability `none`, the caller must sync its files.
  ///
  /// With `removesOthers` it removes the blobs of `target` that this store lacks, and what an interrupted copy has left. Nobody
  /// else may use `target`.
  @discardableResult
  package func copyAll(
    to target: BlobStore, removesOthers: Bool = false, onProgress: (Int) throws -> Void = { _ in }
  ) throws -> Int {
    var copied = 0
    let plan = removesOthers ? try target.home.beginRemoval(isBlob: target.isBlob) : nil
    var others = plan?.names ?? []
    for file in try files().sorted(by: { $0.name < $1.name }) {
      let reader: BlobReader
      do {
        reader = try open(fileName: file.name)
      } catch let error as StorageError where error.code == .notFound {
        // A compaction has removed the blob. No document refers to it any more.
        continue
      }
      if plan != nil { others.remove(try target.fileName(of: reader.digest)) }
      guard try !target.contains(reader.digest) else {
        try onProgress(Int(reader.length))
        continue
      }
      let writer = try target.makeWriter()
      try writer.write(contentsOf: reader, onProgress: onProgress)
      let stored = try writer.finish()
      guard stored.digest == reader.digest, try target.install(stored.digest) == .installed else {
        throw StorageError(
          .damaged, "the blob was changed: its digest is now \(stored.digest)",
          path: home.place(of: file.name))
      }
      target.commit([stored.digest])
      copied += 1
    }
    if copied > 0 { try target.sync() }
    guard let plan else { return copied }
    let removed = try plan.remove(others)
    guard removed.blobs == others.count else {
      throw StorageError(
        .inUse, "blobs of an interrupted copy can't be removed: they are in use", path: target.directory)
    }
    return copied
  }

  /// Reads all blobs and returns their number. Throws `damaged` for one that doesn't match its name.
  @discardableResult
  package func verifyAll(onProgress: (Int) throws -> Void = { _ in }) throws -> Int {
    let files = try files()
    for file in files {
      _ = try verify(fileName: file.name)
      try onProgress(Int(file.bytes))
    }
    return files.count
  }

  /// Calls `body` with pieces of the blob in this file. Each piece has at most `bytes` bytes. There is one
  /// piece for every 64 KiB, or for every 64th part of a larger blob.
  package func forEachPiece(
    of fileName: String, bytes: Int, _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    let reader = try open(fileName: fileName)
    let step = max(UInt64(SealedFormat.chunkBytes), reader.length / 64)
    var offset: UInt64 = 0
    while offset < reader.length {
      try reader.seek(to: offset)
      try reader.read(upTo: bytes).withUnsafeBytes(body)
      offset += step
    }
  }
}
