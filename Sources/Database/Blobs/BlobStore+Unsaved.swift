import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// New blobs of this process to which no committed document refers yet.
struct UnsavedBlobs {
  struct Blob {
    var length: UInt64
    /// The file under its temporary name. An installed file has two names until the commit is done. If the
    /// commit fails, a compaction may remove one of them.
    var path: String
    /// How many times the content was stored and not saved yet. Each of these writers relies on the file: when
    /// one has saved its document, a compaction may remove what is in place before another one saves its own.
    var writers = 1
  }

  /// The directory `incoming-…`, locked while the process has it open.
  struct Session {
    var path: String
    var descriptor: Int32
  }

  var session: Session?
  var lastNumber: UInt64 = 0
  var blobs: [BlobDigest: Blob] = [:]
  var isClosed = false

  /// Ends the claim of one writer on a new blob. Without a claim it is no longer a new one, and the file loses
  /// its temporary name.
  mutating func release(_ digest: BlobDigest) {
    guard let blob = blobs[digest] else { return }
    if blob.writers > 1 {
      blobs[digest]?.writers -= 1
    } else {
      blobs[digest] = nil
      unlink(blob.path)
    }
  }
}

extension BlobStore {
  static let sessionPrefix = "incoming-"

  /// Returns a writer for a new blob. Throws `readOnly` if the store is read-only, and `closed` after
  /// `discardUnsaved()`.
  package func makeWriter() throws -> BlobWriter {
    let (path, number) = try unsaved.withLock { unsaved in
      let session = try session(&unsaved)
      unsaved.lastNumber += 1
      return ("\(session.path)/\(unsaved.lastNumber)", unsaved.lastNumber)
    }
    return try BlobWriter(self, keys: keys, number: number, path: path)
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

  /// Takes over the file of a finished writer.
  func keep(_ blob: StoredBlob, number: UInt64, path: String) {
    let isKept = unsaved.withLock { unsaved in
      guard !unsaved.isClosed else { return false }
      if unsaved.blobs[blob.digest] != nil {
        unsaved.blobs[blob.digest]?.writers += 1
        return false
      }
      unsaved.blobs[blob.digest] = UnsavedBlobs.Blob(length: blob.length, path: path)
      return true
    }
    // The same content was written twice, or the store was closed.
    if !isKept { unlink(path) }
  }

  /// Removes a new blob that isn't the expected one. Its bytes are deleted unless it was installed.
  package func discard(_ blob: StoredBlob) { discard(blob.digest) }

  /// Ends a claim on a new blob that won't be saved.
  package func discard(_ digest: BlobDigest) { unsaved.withLock { $0.release(digest) } }

  /// Moves a new blob to its final place, outside of a transaction. For creating a database that no other
  /// process uses yet.
  package func place(_ blob: StoredBlob) throws {
    let path = try path(of: blob.digest)
    try unsaved.withLock { unsaved in
      guard let new = unsaved.blobs.removeValue(forKey: blob.digest) else { return }
      guard rename(new.path, path) == 0 else {
        throw StorageError.system(errno, "can't put a blob in place", path)
      }
    }
  }

  func unsavedPath(of digest: BlobDigest) -> String? { unsaved.withLock { $0.blobs[digest]?.path } }

  /// Whether there are new blobs to which no committed document refers.
  package var hasUnsaved: Bool { unsaved.withLock { !$0.blobs.isEmpty } }

  /// Removes new blobs that weren't saved, and the directory of this process. Called when the store is
  /// closed.
  package func discardUnsaved() {
    unsaved.withLock { unsaved in
      unsaved.isClosed = true
      for blob in unsaved.blobs.values { unlink(blob.path) }
      unsaved.blobs = [:]
      if let session = unsaved.session {
        rmdir(session.path)
        flock(session.descriptor, LOCK_UN)
        close(session.descriptor)
      }
      unsaved.session = nil
    }
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
    let path = try path(of: digest)
    return try unsaved.withLock { unsaved in
      let found = try fileLength(path)
      guard let new = unsaved.blobs[digest] else { return found == nil ? .missing : .stored }
      // This process has just written the new file, so it is intact. A stored file with another length is
      // damaged.
      if let found, blobLength(ofFile: found) == new.length {
        // Mark the file, so that a removal in preparation keeps it.
        utimensat(AT_FDCWD, path, nil, 0)
        return .installed
      }
      if found == nil {
        let canLink = NewFileName.abilities.hardLinks
        if canLink, link(new.path, path) == 0 { return .installed }
        let failure = canLink ? errno : EPERM
        guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK, EEXIST].contains(failure) else {
          throw StorageError.system(failure, "can't put a blob in place", path)
        }
      }
      // Replaces a damaged file. Also used where files can't have two names.
      guard rename(new.path, path) == 0 else {
        throw StorageError.system(errno, "can't put a blob in place", path)
      }
      // The file has only its final name now. If the transaction fails and a compaction removes it, the blob
      // is missing.
      unsaved.blobs[digest] = nil
      return .installed
    }
  }

  /// Makes the names of installed blobs durable, if the durability requires it.
  package func sync() throws {
    if syncs { try AtomicFile.syncDirectory(of: directory + "/.") }
  }

  /// Removes blobs from the new ones after the commit of documents that refer to them: a digest for each
  /// document. A blob that was stored more often stays. A blob that was stored once and is named by two documents
  /// of one transaction ends two claims.
  package func commit(_ digests: some Sequence<BlobDigest>) {
    unsaved.withLock { unsaved in
      for digest in digests { unsaved.release(digest) }
    }
  }

  // MARK: The directory of this process

  private func session(_ unsaved: inout UnsavedBlobs) throws -> UnsavedBlobs.Session {
    guard !isReadOnly else {
      throw StorageError(.readOnly, "the database is open for reading only", path: directory)
    }
    guard !unsaved.isClosed else { throw StorageError(.closed, "the database was closed", path: directory) }
    if let session = unsaved.session { return session }
    let isOfDatabase = newAccess() != nil
    if mkdir(directory, isOfDatabase ? 0o700 : 0o755) == 0 {
      if isOfDatabase { try FileAccess(of: directory + "/..")?.apply(to: directory) }
      if syncs { try AtomicFile.syncDirectory(of: directory) }
    } else if errno != EEXIST {
      throw StorageError.system(errno, "can't make the directory", directory)
    }
    // Another process may remove a directory that isn't locked yet as an abandoned one.
    for _ in 0..<100 {
      let digits = String(UInt64.random(in: (1 << 60)...UInt64.max), radix: 16)
      let path = directory + "/" + BlobStore.sessionPrefix + digits
      guard mkdir(path, 0o700) == 0 else {
        if errno == EEXIST { continue }
        throw StorageError.system(errno, "can't make the directory", path)
      }
      let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard descriptor >= 0 else {
        if errno == ENOENT { continue }
        throw StorageError.system(errno, "can't open the directory", path)
      }
      var status = stat()
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0, stat(path, &status) == 0 else {
        close(descriptor)
        continue
      }
      // If this process is killed, whoever may write the directory can remove the rest.
      if isOfDatabase, let access = FileAccess(of: directory) {
        do {
          try access.with(mode: access.mode & 0o020 == 0 ? 0o700 : 0o770).apply(to: descriptor, path: path)
        } catch {
          close(descriptor)
          rmdir(path)
          throw error
        }
      }
      let session = UnsavedBlobs.Session(path: path, descriptor: descriptor)
      unsaved.session = session
      return session
    }
    throw StorageError(.inUse, "can't create a directory for new blobs: all names are taken", path: directory)
  }

  /// Removes the files of processes that ended without closing the database.
  func removeAbandoned() throws {
    for name in try names() where name.hasPrefix(BlobStore.sessionPrefix) {
      let path = directory + "/" + name
      let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
      guard descriptor >= 0 else { continue }
      defer { close(descriptor) }
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { continue }
      defer { flock(descriptor, LOCK_UN) }
      try? FileTree.remove(path)
    }
  }
}
