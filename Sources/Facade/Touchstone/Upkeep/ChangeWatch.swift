import Documents
import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Notices commits and purges of other processes while there are observers.
///
/// SQLite writes its log, and LMDB its file, with calls of the system, of which inotify tells. The event comes a
/// little before the commit can be seen: SQLite then syncs and changes shared memory. So each event is followed by
/// several looks, the last one 1.3 seconds later, and there is a look every ten seconds in any case. Without
/// inotify, for example because the user has used up the watches, it looks four times a second.
///
/// A server tells of commits itself, if it can. Otherwise it is asked four times a second.
///
/// Commits of this process cause events too. A look then finds nothing.
final class ChangeWatch: Sendable {
  /// The time in which events are gathered before the first look, and the times before the next looks.
  private static let delays = [0.02, 0.05, 0.25, 1.0]
  /// The time between looks without events, and without inotify.
  private static let idleSeconds = 10.0
  private static let pollSeconds = 0.25

  private struct State {
    var isRunning = false
    var isClosed = false
    /// The descriptor of inotify and its watch, while the thread runs and the system supports it.
    var descriptor: Int32 = -1
    var watch: Int32 = -1
  }

  private let store: DocumentStore
  /// The path or the location of the database.
  private let path: String
  /// The directory with the engine's files. Nil if the database is on a server.
  private let directory: String?
  /// The server with the database. Nil if it is a directory.
  private let server: (any ServerHome)?
  private let state = Lock(State())
  private let thread = Workers()
  /// Wakes the thread where there is no inotify.
  private let alarm = CountingSemaphore()

  init(_ store: DocumentStore, path: String, directory: String? = nil, server: (any ServerHome)? = nil) {
    self.server = server
    self.store = store
    self.path = path
    self.directory = directory
  }

  /// Starts the thread when there are observers, and ends it when there are none.
  func observersChanged() {
    let isObserved = store.isObserved
    let starts = state.withLock { state in
      guard !state.isClosed else { return false }
      if !isObserved { wake(&state) }
      guard isObserved, !state.isRunning else { return false }
      state.isRunning = true
      return true
    }
    if starts { thread.enqueue { self.run() } }
  }

  /// Ends the thread. Called after the engine has been closed.
  func close() {
    state.withLock { state in
      state.isClosed = true
      wake(&state)
    }
  }

  /// Removing the watch makes an event, which wakes the thread.
  private func wake(_ state: inout State) {
    guard state.isRunning else { return }
    server?.wake()
    if state.descriptor >= 0 {
      inotify_rm_watch(state.descriptor, state.watch)
      state.watch = -1
    } else {
      alarm.signal()
    }
  }

  // MARK: The thread

  private func run() {
    begin()
    var step = 0
    while true {
      guard !endIfUnneeded() else { return }
      let isEvent = wait(step < Self.delays.count ? Self.delays[step] : Self.idleSeconds)
      guard !endIfUnneeded() else { return }
      if isEvent {
        // More events of the same commit follow.
        usleep(UInt32(Self.delays[0] * 1e6))
        discardEvents()
        // A server tells when a commit can be seen.
        step = server == nil ? 1 : Self.delays.count
      } else {
        step = min(step + 1, Self.delays.count)
      }
      if !look() { step = min(step, Self.delays.count - 1) }
    }
  }

  /// Reports news to observers. Returns false if it has to be tried again soon.
  private func look() -> Bool {
    do { return try store.inBackground { try store.noticeChanges() } } catch {
      // The database was closed, which ends the thread, or the next look tries again.
      Log.write(
        LogText.level(of: error), .database, path,
        "can't look for commits of other processes: \(LogText.of(error))")
      return true
    }
  }

  /// Whether the thread has nothing to do. It has ended then as far as `observersChanged()` knows.
  private func endIfUnneeded() -> Bool {
    let isObserved = store.isObserved
    return state.withLock { state in
      // An observer may have been added since; then it has called `observersChanged()`, which waits for this lock.
      guard state.isClosed || (!isObserved && !store.isObserved) else {
        if state.descriptor >= 0, state.watch < 0, let directory { addWatch(&state, directory) }
        return false
      }
      state.isRunning = false
      if state.descriptor >= 0 { Glibc.close(state.descriptor) }
      (state.descriptor, state.watch) = (-1, -1)
      return true
    }
  }

  private func begin() {
    guard let directory else { return }
    state.withLock { state in
      state.descriptor = inotify_init1(Int32(O_NONBLOCK | O_CLOEXEC))
      if state.descriptor >= 0 { addWatch(&state, directory) }
      if state.descriptor < 0 {
        Log.write(
          .info, .database, directory, "the system can't watch the directory, so it is looked at regularly")
      }
    }
  }

  private func addWatch(_ state: inout State, _ directory: String) {
    state.watch = inotify_add_watch(state.descriptor, directory, UInt32(IN_MODIFY))
    guard state.watch < 0 else { return }
    Glibc.close(state.descriptor)
    state.descriptor = -1
  }

  /// Waits for an event of the engine's files, at most `seconds`. Returns false on timeout, and after a wake.
  private func wait(_ seconds: Double) -> Bool {
    if let isEvent = server?.waitForCommit(seconds: seconds) { return isEvent }
    let descriptor = state.withLock { $0.descriptor }
    guard descriptor >= 0 else {
      _ = alarm.wait(seconds: min(seconds, Self.pollSeconds))
      return false
    }
    let end = LogClock.now + UInt64(seconds * 1e9)
    while true {
      let now = LogClock.now
      guard now < end else { return false }
      var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      let count = poll(&polled, 1, Int32((end - now) / 1_000_000) + 1)
      guard count > 0 else {
        if count < 0, errno != EINTR { return false }
        continue
      }
      let (isData, isWake) = events(descriptor)
      if isData { return true }
      if isWake { return false }
    }
  }

  private func discardEvents() {
    let descriptor = state.withLock { $0.descriptor }
    if descriptor >= 0 { _ = events(descriptor) }
  }

  /// Reads the events so far: whether one is about the engine's data, and whether the watch has ended.
  private func events(_ descriptor: Int32) -> (isData: Bool, isWake: Bool) {
    var isData = false
    var isWake = false
    withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 8) { buffer in
      while true {
        let size = read(descriptor, buffer.baseAddress, buffer.count)
        guard size > 0 else { return }
        // wd:i32 mask:u32 cookie:u32 length:u32 name, padded with zeros
        var offset = 0
        while offset + 16 <= size {
          let mask = buffer.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
          let length = Int(buffer.loadUnaligned(fromByteOffset: offset + 12, as: UInt32.self))
          let end = min(offset + 16 + length, size)
          if mask & UInt32(IN_Q_OVERFLOW) != 0 {
            isData = true
          } else if mask & UInt32(IN_IGNORED) != 0 {
            isWake = true
          } else {
            let name = buffer[(offset + 16)..<end].prefix { $0 != 0 }
            // Readers write the files of locks and shared memory.
            let isLock = name.ends("-lock") || name.ends("-shm")
            if name.starts(with: "data-".utf8), !isLock { isData = true }
          }
          offset = end
        }
      }
    }
    return (isData, isWake)
  }
}

extension Slice where Base == UnsafeMutableRawBufferPointer {
  fileprivate func ends(_ text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}
