import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// New blobs of this process to which no committed document refers yet.
struct UnsavedBlobs {
  struct Blob {
    var length: UInt64
    /// The bytes without a name. Installed ones are also there without their name until the commit is done. If the
    /// commit fails, a compaction may remove the name.
    var bytes: any NewBlobBytes
    /// How many times the content was stored and not saved yet. Each of these writers relies on the file: when
    /// one has saved its document, a compaction may remove what is in place before another one saves its own.
    var writers = 1
  }

  var blobs: [BlobDigest: Blob] = [:]
  var isClosed = false

  /// Ends the claim of one writer on a new blob. Without a claim it is no longer a new one, and the file loses
  /// what it is without its name.
  mutating func release(_ digest: BlobDigest) {
    guard let blob = blobs[digest] else { return }
    if blob.writers > 1 {
      blobs[digest]?.writers -= 1
    } else {
      blobs[digest] = nil
      blob.bytes.discard()
    }
  }
}

extension BlobStore {
  /// Returns a writer for a new blob. Throws `readOnly` if the store is read-only, and `closed` after
  /// `discardUnsaved()`.
  package func makeWriter() throws -> BlobWriter {
    guard !isReadOnly else {
      throw StorageError(.readOnly, "the database is open for reading only", path: directory)
    }
    return try BlobWriter(self, keys: keys, home.makeNew(isSecret: isEncrypted, syncs: syncs))
  }

  /// Stores bytes as a new blob.
  package func store(_ bytes: UnsafeRawBufferPointer) throws -> StoredBlob {
    let writer = try makeWriter()
    try writer.write(bytes)
    return try writer.finish()
  }

  /// Stores the bytes of a file as a new blob.
  package func store(contentsOfFile path: String) throws -> StoredBlob {
    try StorageError.checkPath(path)
    let file = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw StorageError.system(errno, "can't open", path) }
    defer { close(file) }
    let writer = try makeWriter()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: SealedFormat.chunkBytes, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = read(file, buffer.baseAddress, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw StorageError.system(errno, "can't read", path) }
      guard count > 0 else { break }
      try writer.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
    return try writer.finish()
  }

  /// Adds a claim on a new blob, as storing its bytes again would. Returns false if there is no new blob with
  /// this digest. `discard(_:)` or `commit(_:)` ends the claim.
  package func claim(_ digest: BlobDigest) -> Bool {
    unsaved.withLock { unsaved in
      guard unsaved.blobs[digest] != nil else { return false }
      unsaved.blobs[digest]?.writers += 1
      return true
    }
  }

  /// Takes over the bytes of a finished writer.
  func keep(_ blob: StoredBlob, _ new: any NewBlobBytes) {
    let isKept = unsaved.withLock { unsaved in
      guard !unsaved.isClosed else { return false }
      if unsaved.blobs[blob.digest] != nil {
        unsaved.blobs[blob.digest]?.writers += 1
        return false
      }
      unsaved.blobs[blob.digest] = UnsavedBlobs.Blob(length: blob.length, bytes: new)
      return true
    }
    // The same content was written twice, or the store was closed.
    if !isKept { new.discard() }
  }

  /// Removes a new blob that isn't the expected one. Its bytes are deleted unless it was installed.
  package func discard(_ blob: StoredBlob) { discard(blob.digest) }

  /// Ends a claim on a new blob that won't be saved.
  package func discard(_ digest: BlobDigest) { unsaved.withLock { $0.release(digest) } }

  /// Moves a new blob to its final place, outside of a transaction. For creating a database that no other
  /// process uses yet.
  package func place(_ blob: StoredBlob) throws {
    let name = try fileName(of: blob.digest)
    try unsaved.withLock { unsaved in
      guard let new = unsaved.blobs.removeValue(forKey: blob.digest) else { return }
      // What may be there has the same name, and so the same content.
      if try home.put(new.bytes, as: name, replaces: true) { new.bytes.discard() }
    }
  }

  /// Whether there are new blobs to which no committed document refers.
  package var hasUnsaved: Bool { unsaved.withLock { !$0.blobs.isEmpty } }

  /// Removes new blobs that weren't saved, and the directory of this process. Called when the store is
  /// closed.
  package func discardUnsaved() {
    unsaved.withLock { unsaved in
      unsaved.isClosed = true
      for blob in unsaved.blobs.values { blob.bytes.discard() }
      unsaved.blobs = [:]
    }
    home.close()
  }

  // MARK: In a write transaction

  /// The state of a blob that a document being saved refers to.
  package enum Presence: Sendable {
    /// The blob doesn't exist.
    case missing
    /// The blob was stored before.
    case stored
    /// The blob was new and is installed now. Call `sync()` before the commit and `commit(_:)` after it.
    case installed
  }

  /// Puts a new blob in its final place and returns the state of the blob. Call it only inside the write
  /// transaction that saves a document that refers to the blob.
  package func install(_ digest: BlobDigest) throws -> Presence {
    let name = try fileName(of: digest)
    return try unsaved.withLock { unsaved in
      let found = try home.length(of: name)
      guard let new = unsaved.blobs[digest] else { return found == nil ? .missing : .stored }
      // This process has just written the new file, so it is intact. A stored file with another length is
      // damaged.
      if let found, blobLength(ofFile: found) == new.length {
        // Mark the file, so that a removal in preparation keeps it.
        try home.mark(name)
        return .installed
      }
      // Where it has only its name now, the blob is missing if the transaction fails and a compaction removes it.
      if try !home.put(new.bytes, as: name, replaces: found != nil) { unsaved.blobs[digest] = nil }
      return .installed
    }
  }

  /// Makes the names of installed blobs durable, if the durability requires it.
  package func sync() throws {
    if syncs { try home.sync() }
  }

  /// Removes blobs from the new ones after the commit of documents that refer to them: a digest for each
  /// document. A blob that was stored more often stays. A blob that was stored once and is named by two documents
  /// of one transaction ends two claims.
  package func commit(_ digests: some Sequence<BlobDigest>) {
    unsaved.withLock { unsaved in
      for digest in digests { unsaved.release(digest) }
    }
  }
}
