import CSQLite
import SQLiteLibrary
import Storage

/// The schedule of checkpoints, which copy the write-ahead log into the file.
///
/// A commit that leaves 1,000 pages or more in the log is followed by a checkpoint that waits for nobody.
/// This is also the library's default. Two rules are added:
///
/// - If snapshots hold up a checkpoint, the next attempt comes when the log has grown by an eighth, and by at
///   least 1,000 pages. Each attempt sorts the whole log.
/// - If snapshots always overlap, the log may grow beyond 64 MiB. The writer then waits for the open
///   snapshots, so that the log can start again. It waits at most a tenth of a second each time the log has
///   doubled.
struct Checkpoints {
  /// The time that a writer waits for snapshots.
  static let patience = Duration.milliseconds(100)

  private struct State {
    /// The number of pages in the log after the last commit.
    var logPages: Int32 = 0
    /// The number of pages in the log at the last checkpoint. `nextAttempt` and `nextWait` are the numbers of
    /// pages at which the next checkpoint and the next wait are due. A shorter log has started again.
    var lastLog = 0
    var nextAttempt = SQLiteLayout.checkpointPages
    var nextWait = SQLiteLayout.logBytes / SQLiteLayout.pageBytes
  }

  private let connection: Connection
  private let log: WriteAheadLog
  private let state: UnsafeMutablePointer<State>

  init(_ connection: Connection, _ log: WriteAheadLog) {
    self.connection = connection
    self.log = log
    state = .allocate(capacity: 1)
    state.initialize(to: State())
    let hook:
      @convention(c) (UnsafeMutableRawPointer?, OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
        context, _, _, pages in
        context?.assumingMemoryBound(to: State.self).pointee.logPages = pages
        return SQLITE_OK
      }
    _ = csqlite_wal_hook(connection.functions, connection.handle, hook, state)
  }

  /// Frees the state. Call it after the connection is closed.
  func deallocate() { state.deallocate() }

  /// Runs a checkpoint if one is due. A failed checkpoint isn't an error: the commit is in the log and stays
  /// there until a later checkpoint.
  @inline(__always)
  func afterCommit() {
    let pages = Int(state.pointee.logPages)
    if pages >= SQLiteLayout.checkpointPages { checkpoint(pages) }
  }

  @inline(never)
  private func checkpoint(_ pages: Int) {
    // A log shorter than before has started again from its beginning.
    guard pages >= state.pointee.nextAttempt || pages < state.pointee.lastLog else { return }
    guard log.mayRunCheckpoint else {
      state.pointee.nextAttempt = pages + SQLiteLayout.checkpointPages
      return
    }
    guard let (size, done) = try? log.checkpoint(SQLITE_CHECKPOINT_PASSIVE, on: connection) else { return }
    state.pointee.lastLog = size
    guard done < size else {
      // Snapshots may keep the log from starting again. The next checkpoint comes after another 1,000 pages.
      state.pointee.nextAttempt = size + SQLiteLayout.checkpointPages
      state.pointee.nextWait = SQLiteLayout.logBytes / SQLiteLayout.pageBytes
      return
    }
    state.pointee.nextAttempt = size + max(size / 8, SQLiteLayout.checkpointPages)
    guard size >= state.pointee.nextWait else { return }
    state.pointee.nextWait = size * 2
    connection.waitWhenBusy(upTo: Self.patience)
    defer { connection.waitWhenBusy(upTo: SQLiteFile.longestWait) }
    _ = try? log.checkpoint(SQLITE_CHECKPOINT_RESTART, on: connection)
  }

  /// Runs a checkpoint if the last commits may still be in the log. The library runs another one when it closes the
  /// last connection, and tells nobody whether that one failed; it then finds nothing left to sync.
  func beforeClosing() {
    guard state.pointee.logPages > 0, log.mayRunCheckpoint else { return }
    _ = try? log.checkpoint(SQLITE_CHECKPOINT_PASSIVE, on: connection)
  }
}
