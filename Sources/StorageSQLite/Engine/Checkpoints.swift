import CSQLite
import SQLiteLibrary
import Storage

/// When the write-ahead log is copied into the file.
///
/// As the library does by itself, a commit that leaves 1,000 pages or more in the log is followed by a
/// checkpoint that waits for nobody. Two things are added. A checkpoint that a snapshot holds up is tried
/// again only when the log has grown by an eighth: each attempt sorts the whole log. And a log that has grown
/// beyond 64 MiB, because snapshots always overlap, is given a moment without any: the writer waits for
/// those that are open, at most a tenth of a second each time the log has doubled.
struct Checkpoints {
  /// How long a writer waits for snapshots.
  static let patience = Duration.milliseconds(100)

  private struct State {
    /// Pages in the log after the last commit.
    var logPages: Int32 = 0
    /// Pages in the log at the last checkpoint, and those at which the next is due unless it starts anew.
    var lastLog = 0
    var nextAttempt = SQLiteLayout.checkpointPages
    var nextWait = SQLiteLayout.logBytes / SQLiteLayout.pageBytes
  }

  private let connection: Connection
  private let state: UnsafeMutablePointer<State>

  init(_ connection: Connection) {
    self.connection = connection
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

  /// After the connection is closed.
  func deallocate() { state.deallocate() }

  /// A checkpoint when one is due. One that fails is no error: the commit is in the log, and what is there
  /// stays until a later one.
  @inline(__always)
  func afterCommit() {
    let pages = Int(state.pointee.logPages)
    if pages >= SQLiteLayout.checkpointPages { checkpoint(pages) }
  }

  @inline(never)
  private func checkpoint(_ pages: Int) {
    // A log that is shorter than it was has started anew.
    guard pages >= state.pointee.nextAttempt || pages < state.pointee.lastLog else { return }
    guard let (log, done) = try? connection.checkpoint(SQLITE_CHECKPOINT_PASSIVE) else { return }
    state.pointee.lastLog = log
    guard done < log else {
      // Snapshots may keep it from starting anew: the next part is copied when it is as long again.
      state.pointee.nextAttempt = log + SQLiteLayout.checkpointPages
      state.pointee.nextWait = SQLiteLayout.logBytes / SQLiteLayout.pageBytes
      return
    }
    state.pointee.nextAttempt = log + max(log / 8, SQLiteLayout.checkpointPages)
    guard log >= state.pointee.nextWait else { return }
    state.pointee.nextWait = log * 2
    connection.waitWhenBusy(upTo: Self.patience)
    defer { connection.waitWhenBusy(upTo: SQLiteFile.longestWait) }
    _ = try? connection.checkpoint(SQLITE_CHECKPOINT_RESTART)
  }
}
