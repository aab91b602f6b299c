// The blobs of a database are files in one directory, Attachments/:
//
//   qZk+NkcGgWq6PiVxeFDCbJzQ2J0=.blob    a blob as it is, by its digest (BlobDigest.swift)
//   S4Tn…Q0.sealed                       a blob of an encrypted database (SealedFormat.swift)
//   incoming-0123456789abcdef/           new blobs of one process, until a document that names them is saved:
//                                        that process holds a flock on the directory
//     1, 2, …

import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A directory with the blobs of a database. It is made with the first blob.
final class BlobDirectory: BlobHome {
  static let sessionPrefix = "incoming-"

  /// The directory.
  let location: String
  /// Who may use new blobs, as far as blobs can be used: to read them. Nil for what the umask allows.
  private let newAccess: @Sendable () -> FileAccess?
  private let own = Lock(Own())

  /// What belongs to this process.
  private struct Own {
    var session: Session?
    var lastNumber: UInt64 = 0
    var isClosed = false
  }

  /// The directory `incoming-…`, locked while the process has it open.
  private struct Session {
    var path: String
    var descriptor: Int32
  }

  init(_ path: String, newAccess: @escaping @Sendable () -> FileAccess?) {
    location = path
    self.newAccess = newAccess
  }

  func place(of name: String) -> String { location + "/" + name }

  func allowWriting(_ durability: Durability) {}

  // MARK: Reading

  func names() throws -> [String] {
    do { return try FileTree.names(in: location) } catch let error as StorageError
      where error.engineCode == Int(ENOENT)
    { return [] }
  }

  func files() throws -> [(name: String, bytes: UInt64)] {
    try names().compactMap { name in try length(of: name).map { (name, $0) } }
  }

  func length(of name: String) throws -> UInt64? {
    let path = place(of: name)
    var status = stat()
    guard lstat(path, &status) == 0 else {
      guard errno == ENOENT || errno == ENOTDIR else { throw StorageError.system(errno, "can't read", path) }
      return nil
    }
    return status.st_mode & S_IFMT == S_IFREG ? UInt64(status.st_size) : 0
  }

  func open(_ name: String) throws -> any BlobBytes { try FileDescriptor(place(of: name), O_RDONLY) }

  // MARK: New blobs

  func makeNew(isSecret: Bool, syncs: Bool) throws -> any NewBlobBytes {
    let path = try own.withLock { own in
      let session = try session(&own, syncs: syncs)
      own.lastNumber += 1
      return "\(session.path)/\(own.lastNumber)"
    }
    // Blobs are immutable, so the permissions prevent opening the file for writing again.
    let access = newAccess()?.limited(to: 0o444)
    let isPrivate = isSecret || access != nil
    let file = try FileDescriptor(path, O_RDWR | O_CREAT | O_EXCL, isPrivate ? 0o400 : 0o444)
    let new = NewBlobFile(path, file, syncs: syncs)
    if let access { try file.set(access) }
    return new
  }

  func put(_ new: any NewBlobBytes, as name: String, replaces: Bool) throws -> Bool {
    let path = place(of: name)
    if !replaces {
      let canLink = NewFileName.abilities.hardLinks
      if canLink, link(new.place, path) == 0 { return true }
      let failure = canLink ? errno : EPERM
      guard [EPERM, EOPNOTSUPP, ENOSYS, EMLINK, EEXIST].contains(failure) else {
        throw StorageError.system(failure, "can't put a blob in place", path)
      }
    }
    // Replaces a damaged file. Also used where files can't have two names.
    guard rename(new.place, path) == 0 else {
      throw StorageError.system(errno, "can't put a blob in place", path)
    }
    return false
  }

  func mark(_ name: String) throws { utimensat(AT_FDCWD, place(of: name), nil, 0) }

  func sync() throws { try AtomicFile.syncDirectory(of: location + "/.") }

  func close() {
    own.withLock { own in
      own.isClosed = true
      if let session = own.session {
        rmdir(session.path)
        flock(session.descriptor, LOCK_UN)
        Glibc.close(session.descriptor)
      }
      own.session = nil
    }
  }

  func hold() throws -> (any BlobHold)? { try DirectoryHold(location, isAlone: false) }

  // MARK: Removing

  func beginRemoval(isBlob: (String) -> Bool) throws -> any BlobRemovalPlan {
    try RemovalPlan(self, isBlob)
  }

  private final class RemovalPlan: BlobRemovalPlan {
    let names: Set<String>
    private let directory: BlobDirectory
    private let begun: timespec

    init(_ directory: BlobDirectory, _ isBlob: (String) -> Bool) throws {
      self.directory = directory
      // File timestamps come from a coarse clock, which lags, or from the precise clock. Once the coarse clock
      // has passed this moment, all earlier operations have earlier timestamps. This takes some milliseconds.
      // The wait is bounded in case the clock is set back.
      var first = timespec()
      clock_gettime(CLOCK_REALTIME, &first)
      var now = timespec()
      for _ in 0..<1_000 {
        clock_gettime(CLOCK_REALTIME_COARSE, &now)
        if (now.tv_sec, now.tv_nsec) > (first.tv_sec, first.tv_nsec) { break }
        usleep(200)
      }
      begun = now
      names = Set(try directory.names().filter(isBlob))
    }

    func remove(_ names: Set<String>) throws -> (blobs: Int, bytes: UInt64) {
      guard let lock = try DirectoryHold(directory.location, isAlone: true) else { return (0, 0) }
      defer { lock.end() }
      var result = (blobs: 0, bytes: UInt64(0))
      for name in names {
        let path = directory.place(of: name)
        var status = stat()
        guard lstat(path, &status) == 0 else { continue }
        let changed = status.st_ctim
        guard (changed.tv_sec, changed.tv_nsec) < (begun.tv_sec, begun.tv_nsec) else { continue }
        guard unlink(path) == 0 else {
          if errno == ENOENT { continue }
          throw StorageError.system(errno, "can't remove a blob", path)
        }
        result.blobs += 1
        result.bytes += UInt64(status.st_size)
      }
      try directory.removeAbandoned()
      return result
    }
  }

  /// Removes the files of processes that ended without closing the database.
  func removeAbandoned() throws {
    for name in try names() where name.hasPrefix(Self.sessionPrefix) {
      let path = place(of: name)
      let descriptor = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
      guard descriptor >= 0 else { continue }
      defer { Glibc.close(descriptor) }
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { continue }
      defer { flock(descriptor, LOCK_UN) }
      try? FileTree.remove(path)
    }
  }

  // MARK: The directory of this process

  private func session(_ own: inout Own, syncs: Bool) throws -> Session {
    guard !own.isClosed else { throw StorageError(.closed, "the database was closed", path: location) }
    if let session = own.session { return session }
    let isOfDatabase = newAccess() != nil
    if mkdir(location, isOfDatabase ? 0o700 : 0o755) == 0 {
      if isOfDatabase { try FileAccess(of: location + "/..")?.apply(to: location) }
      if syncs { try AtomicFile.syncDirectory(of: location) }
    } else if errno != EEXIST {
      throw StorageError.system(errno, "can't make the directory", location)
    }
    // Another process may remove a directory that isn't locked yet as an abandoned one.
    for _ in 0..<100 {
      let digits = String(UInt64.random(in: (1 << 60)...UInt64.max), radix: 16)
      let path = location + "/" + Self.sessionPrefix + digits
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
        Glibc.close(descriptor)
        continue
      }
      // If this process is killed, whoever may write the directory can remove the rest.
      if isOfDatabase, let access = FileAccess(of: location) {
        do {
          try access.with(mode: access.mode & 0o020 == 0 ? 0o700 : 0o770).apply(to: descriptor, path: path)
        } catch {
          Glibc.close(descriptor)
          rmdir(path)
          throw error
        }
      }
      let session = Session(path: path, descriptor: descriptor)
      own.session = session
      return session
    }
    throw StorageError(.inUse, "can't create a directory for new blobs: all names are taken", path: location)
  }
}

/// A flock on the directory of blobs: shared by all who read what a snapshot names, and taken alone by who removes blobs.
private final class DirectoryHold: BlobHold {
  private let descriptor: Lock<Int32>

  /// Waits for a shared lock. Nil without a directory, and if a lock can't be had alone at once.
  init?(_ path: String, isAlone: Bool) throws {
    let directory = Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard directory >= 0 else {
      // Who may only open blobs whose names it knows can't hold them.
      if errno == ENOENT || errno == EACCES && !isAlone { return nil }
      throw StorageError.system(errno, "can't open the directory", path)
    }
    descriptor = Lock(directory)
    while flock(directory, isAlone ? LOCK_EX | LOCK_NB : LOCK_SH) != 0 {
      if errno == EINTR { continue }
      // A file system without locks protects nobody.
      if [EOPNOTSUPP, ENOSYS, EINVAL].contains(errno) { break }
      let number = errno
      end()
      if number == EWOULDBLOCK { return nil }
      throw StorageError.system(number, "can't lock the blobs", path)
    }
  }

  func end() {
    descriptor.withLock { descriptor in
      // Closing gives up the lock: nobody else has this open file.
      if descriptor >= 0 { Glibc.close(descriptor) }
      descriptor = -1
    }
  }

  deinit { end() }
}

/// The file of a new blob, in the directory of its process.
///
/// `@unchecked Sendable`: one thread at a time writes it.
private final class NewBlobFile: NewBlobBytes, @unchecked Sendable {
  let place: String
  private var file: FileDescriptor?
  private let syncs: Bool
  private let isDiscarded = Lock(false)

  init(_ path: String, _ file: FileDescriptor, syncs: Bool) {
    place = path
    self.file = file
    self.syncs = syncs
  }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws {
    try file?.write(bytes, at: offset)
  }

  func finish() throws {
    if syncs { try file?.sync() }
    file = nil
  }

  func open() throws -> any BlobBytes { try FileDescriptor(place, O_RDONLY) }

  func discard() {
    file = nil
    isDiscarded.withLock { isDiscarded in
      if !isDiscarded { unlink(place) }
      isDiscarded = true
    }
  }
}
