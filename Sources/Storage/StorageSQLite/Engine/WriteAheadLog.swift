import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The write-ahead log of a file: its checkpoints, and what happens after a sync that failed.
///
/// A checkpoint syncs the log and then copies it into the file. When the sync fails, the system may count the pages of
/// the log as written although they aren't on the disk, and later syncs report nothing. The copy of such a log is
/// dangerous: a loss of power during the copy leaves half of it, and no log from which it could be completed. So after a
/// failed checkpoint the log is written again, with the bytes that the system still has in memory. No checkpoint of
/// this process runs before that has succeeded.
///
/// Call it only inside the queue of writers.
final class WriteAheadLog: Sendable {
  private let path: String
  private let claim: OpenFiles.Claim
  private let isSuspect = Lock(false)
  /// Gives up the snapshots that idle readers keep, which would hold a checkpoint back.
  let givesUpSnapshots = Lock<(@Sendable () -> Void)?>(nil)

  init(path: String, _ claim: OpenFiles.Claim) {
    self.path = path
    self.claim = claim
  }

  /// Whether a checkpoint may run now: nobody keeps the file still.
  var mayRunCheckpoint: Bool { StillFile.mayCheckpoint(path, claim) }

  /// Runs a checkpoint on a connection that is in no transaction. Returns the number of pages in the log, and how many
  /// of them are now in the file.
  ///
  /// - Throws: a `SQLiteError`. The log is then as it was, and its commits stay in it.
  @discardableResult
  func checkpoint(_ mode: Int32, on connection: Connection) throws -> (log: Int, done: Int) {
    givesUpSnapshots.withLock { $0 }?()
    if isSuspect.withLock({ $0 }) { try writeAgain(connection) }
    do {
      let result = try connection.checkpoint(mode)
      // Who has begun to read during the checkpoint keeps the log from starting again.
      if result.done == result.log { givesUpSnapshots.withLock { $0 }?() }
      return result
    } catch let error as SQLiteError where error.code == SQLITE_IOERR {
      isSuspect.withLock { $0 = true }
      try? writeAgain(connection)
      throw error
    }
  }

  /// Writes the log again, and syncs it. The lock of writers keeps everybody from adding to it meanwhile.
  private func writeAgain(_ connection: Connection) throws {
    try connection.execute("BEGIN IMMEDIATE")
    defer { try? connection.execute("ROLLBACK") }
    // The library's locks are on other files, so that closing this one releases none of them.
    let descriptor = open(path + "-wal", O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure("open") }
    defer { close(descriptor) }
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { chunk.deallocate() }
    var offset = 0
    while true {
      let read = pread(descriptor, chunk.baseAddress, chunk.count, off_t(offset))
      if read < 0, errno == EINTR { continue }
      guard read >= 0 else { throw Self.failure("pread") }
      guard read > 0 else { break }
      var written = 0
      while written < read {
        let rest = UnsafeRawBufferPointer(rebasing: chunk[written..<read])
        let count = pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset + written))
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { throw Self.failure("pwrite") }
        written += count
      }
      offset += read
    }
    while fsync(descriptor) != 0 {
      guard errno == EINTR else { throw Self.failure("fsync") }
    }
    isSuspect.withLock { $0 = false }
  }

  private static func failure(_ call: String) -> SQLiteError {
    let number = errno
    return SQLiteError(
      extendedCode: SQLITE_IOERR, message: "the log can't be written again", statement: call,
      systemError: number)
  }
}
