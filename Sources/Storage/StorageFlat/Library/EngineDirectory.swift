import CFileSystem
import Storage

#if canImport(Glibc)
  import Glibc
#endif

// The engine's "file" is a directory. It has the library's files, and this one, which is written first:
//
//   touchstone    one line of ASCII: "touchstone ENGINE FORMAT SEQUENCE\n"
//
// ENGINE is the name of the engine and FORMAT the version of the layout, 1. SEQUENCE is the library's sequence
// number when it was last closed, in decimal: a library that finds less has lost commits, because a file was
// truncated or an old one was put in its place.

/// The directory of an engine whose library needs one of its own, with its lock.
///
/// The directory itself is locked with `flock`: exclusively by a process that writes, shared by those that only
/// read if the library can have several of them. The lock ends with the process.
package final class EngineDirectory: Sendable {
  static let recordName = "touchstone"
  static let format = 1

  package let path: String
  package let isReadOnly: Bool
  /// The sequence number of the last close; 0 for a new directory.
  package let closedSequence: UInt64
  private let engine: String
  private let descriptor: Lock<Int32>

  /// Opens or makes the directory, as `options` say, and locks it: shared, or exclusively.
  package init(_ path: String, engine: String, _ options: EngineOptions, isShared: Bool) throws {
    try StorageError.checkPath(path)
    isReadOnly = options.isReadOnly
    self.path = path
    self.engine = engine
    if options.isReadOnly {
      guard options.creation != .createNew else {
        throw StorageError(.invalidArgument, "a new file can't be opened for reading only", path: path)
      }
    } else if options.creation != .openExisting {
      try Self.make(path, engine, options)
    }
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOTDIR, access(path, F_OK) == 0 {
        throw StorageError(
          .notADatabase, "this is a file, but the engine \(engine) keeps its data in a directory", path: path)
      }
      throw StorageError.system(errno, "can't open the directory", path)
    }
    do {
      closedSequence = try Self.checkRecord(path, engine)
      try Self.checkFiles(path)
      if !isReadOnly, faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0 {
        throw StorageError.system(errno, "can't write to the directory", path)
      }
      try Self.lock(descriptor, path, engine, isShared: isShared)
    } catch {
      close(descriptor)
      throw error
    }
    self.descriptor = Lock(descriptor)
  }

  deinit { unlock() }

  /// Unlocks the directory. A forked child that hasn't executed its program yet has the lock too, so closing
  /// alone isn't enough.
  package func unlock() {
    descriptor.withLock { descriptor in
      guard descriptor >= 0 else { return }
      flock(descriptor, LOCK_UN)
      close(descriptor)
      descriptor = -1
    }
  }

  // MARK: The record

  /// Makes the directory with its record, in one step. Does nothing if it exists, or throws `alreadyExists`.
  private static func make(_ path: String, _ engine: String, _ options: EngineOptions) throws {
    var status = stat()
    if lstat(path, &status) == 0 {
      guard options.creation != .createNew else { throw exists(path) }
      return
    }
    let new = path + "-new-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    guard mkdir(new, options.access == nil ? 0o755 : 0o700) == 0 else {
      throw StorageError.system(errno, "can't make the directory", path)
    }
    do {
      try options.access?.ofDirectory.apply(to: new)
      try write(0, to: new, engine)
      if options.durability != .none { try AtomicFile.syncDirectory(of: new) }
      if renameat2(AT_FDCWD, new, AT_FDCWD, path, UInt32(RENAME_NOREPLACE)) != 0 {
        // A file system that can't do this: a rename replaces only an empty directory.
        guard errno == EINVAL || errno == ENOSYS, rename(new, path) == 0 else {
          throw StorageError.system(errno, "can't make the directory", path)
        }
      }
      if options.durability != .none { try AtomicFile.syncDirectory(of: path) }
    } catch {
      unlink(new + "/" + recordName)
      rmdir(new)
      guard let failure = error as? StorageError, failure.code == .alreadyExists else { throw error }
      // Another process was faster.
      guard options.creation != .createNew else { throw exists(path) }
    }
  }

  private static func exists(_ path: String) -> StorageError {
    StorageError(.alreadyExists, "a file or directory with this name exists", path: path)
  }

  private static func write(_ sequence: UInt64, to path: String, _ engine: String) throws {
    try AtomicFile.write(
      "touchstone \(engine) \(format) \(sequence)\n".utf8, to: path + "/" + recordName, permissions: 0o644)
  }

  /// Libraries would wait for who writes to a pipe in the place of a file.
  private static func checkFiles(_ path: String) throws {
    for name in try FileTree.names(in: path) {
      var status = stat()
      let file = path + "/" + name
      guard stat(file, &status) == 0 else { continue }
      guard [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) else {
        throw StorageError(
          .notADatabase, "the database can't be opened: this isn't a regular file", path: file)
      }
    }
  }

  /// Returns the sequence number of the last close.
  private static func checkRecord(_ path: String, _ engine: String) throws -> UInt64 {
    let bytes: [UInt8]
    do { bytes = try AtomicFile.read(path + "/" + recordName, limit: 256) } catch let error as StorageError
      where error.code == .notFound || error.code == .invalidArgument
    {
      throw StorageError(
        .notADatabase, "the directory has no record of an engine (the file \(recordName))", path: path)
    }
    let words = String(decoding: bytes, as: UTF8.self).split(
      separator: " ", omittingEmptySubsequences: false)
    guard words.count == 4, words[0] == "touchstone", let found = Int(words[2]),
      words[3].last == "\n", let sequence = UInt64(words[3].dropLast())
    else {
      throw StorageError(
        .damaged, "the record of the engine (the file \(recordName)) can't be read", path: path)
    }
    guard words[1] == engine else {
      throw StorageError(
        .notADatabase, "the directory belongs to the engine \(words[1]), not to \(engine)", path: path)
    }
    guard found == format else {
      throw StorageError(
        .unsupportedVersion, "the layout has version \(found); this release reads version \(format)",
        path: path)
    }
    return sequence
  }

  /// Notes the sequence number at a close.
  package func noteClosed(_ sequence: UInt64) throws {
    guard !isReadOnly, sequence != closedSequence else { return }
    try Self.write(sequence, to: path, engine)
  }

  /// Throws `damaged` if the library has lost commits since the last close.
  package func checkSequence(_ sequence: UInt64) throws {
    guard sequence < closedSequence else { return }
    throw StorageError(
      .damaged,
      "commits are lost: the files end with change \(sequence), but had \(closedSequence) when they were closed",
      path: path)
  }

  // MARK: The lock

  private static func lock(_ descriptor: Int32, _ path: String, _ engine: String, isShared: Bool) throws {
    while flock(descriptor, (isShared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0 {
      guard errno != EINTR else { continue }
      guard errno == EWOULDBLOCK else { throw StorageError.system(errno, "can't lock", path) }
      let holders = holders(of: descriptor)
      let who =
        switch holders.count {
        case 0: "another process"
        case 1: holders[0] == getpid() ? "this process" : "the process \(holders[0])"
        default: "the processes \(holders.map { "\($0)" }.joined(separator: ", "))"
        }
      throw StorageError(
        .inUse, "\(who) has it open, and the engine \(engine) serves one process at a time", path: path)
    }
  }

  /// The processes that have locked a directory, as the system lists them. Empty if it doesn't.
  private static func holders(of descriptor: Int32) -> [Int32] {
    var status = stat()
    guard fstat(descriptor, &status) == 0, let list = fopen("/proc/locks", "re") else { return [] }
    defer { fclose(list) }
    var holders: [Int32] = []
    var line = [CChar](repeating: 0, count: 512)
    while fgets(&line, Int32(line.count), list) != nil {
      // 3: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF; one that waits has "->" before its kind.
      let words = line.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        .split { $0 == " " || $0 == "\n" }
      guard words.count > 5, words[1] == "FLOCK", let process = Int32(words[4]), process > 0,
        words[5].split(separator: ":").last == "\(status.st_ino)"
      else { continue }
      holders.append(process)
    }
    return Array(Set(holders)).sorted()
  }
}
