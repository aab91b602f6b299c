import Storage

extension BlobStore {
  /// Copies every blob that is stored here and that `target` doesn't have, encrypted anew with its key, in constant
  /// memory; says how many there were. `onProgress` is told the bytes of each piece; what it throws ends the copy.
  ///
  /// Each blob is checked while it is read: throws `damaged` for one that was changed. With `target` of durability `none`
  /// syncing its files is the caller's.
  @discardableResult
  public func copyAll(to target: BlobStore, onProgress: (Int) throws -> Void = { _ in }) throws -> Int {
    var copied = 0
    for file in try files().sorted(by: { $0.name < $1.name }) {
      let reader: BlobReader
      do {
        reader = try BlobReader(
          path: directory + "/" + file.name, digest: BlobDigest(fileName: file.name), keys: keys)
      } catch let error as StorageError where error.code == .notFound {
        // A compaction was faster: nothing names it any more.
        continue
      }
      guard try !target.contains(reader.digest) else { continue }
      let writer = try target.makeWriter()
      try writer.write(contentsOf: reader, onProgress: onProgress)
      let stored = try writer.finish()
      guard stored.digest == reader.digest, try target.install(stored.digest) == .installed else {
        throw StorageError(
          .damaged, "the blob was changed: it is \(stored.digest) now", path: directory + "/" + file.name)
      }
      target.commit([stored.digest])
      copied += 1
    }
    if copied > 0 { try target.sync() }
    return copied
  }

  /// Reads every blob back and throws `damaged` for one that isn't what its name says; says how many there are.
  @discardableResult
  public func verifyAll(onProgress: (Int) throws -> Void = { _ in }) throws -> Int {
    let files = try files()
    for file in files {
      _ = try verify(fileName: file.name)
      try onProgress(Int(file.bytes))
    }
    return files.count
  }

  /// Calls `body` with pieces of a blob's content, by the name of its file: so many bytes each, one in every 64 KiB at
  /// first, and no more than 64 of them.
  public func forEachPiece(
    of fileName: String, bytes: Int, _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws {
    let reader = try BlobReader(
      path: directory + "/" + fileName, digest: BlobDigest(fileName: fileName), keys: keys)
    let step = max(UInt64(SealedFormat.chunkBytes), reader.length / 64)
    var offset: UInt64 = 0
    while offset < reader.length {
      try reader.seek(to: offset)
      try reader.read(upTo: bytes).withUnsafeBytes(body)
      offset += step
    }
  }
}
