import CWiredTiger
import Storage
import StorageFlat

#if canImport(Glibc)
  import Glibc
#endif

/// A connection of WiredTiger, as a `FlatLibrary`.
///
/// `@unchecked Sendable`: a connection may be used from any thread, and a session belongs to one transaction at a
/// time. What changes here changes only in `renew` and `close`, while nobody else uses the library; `isBroken`, and
/// the bytes of commits that aren't in `sessions`, only in the write transaction.
final class WiredLibrary: FlatLibrary, @unchecked Sendable {
  let messages: WiredMessages
  private(set) var wired: WiredSettings
  /// The open directory, for `WiredLog`.
  private let folder: Int32
  private let isReadOnly: Bool
  private let isNew: Bool
  private var connection: UnsafeMutablePointer<WT_CONNECTION>?
  private let sessions = Lock(Sessions())
  private var isBroken = false
  /// The bytes of commits since a writer has last waited for room in the cache.
  private var unthrottled = 0
  /// The bytes of commits since the log was measured last.
  private var unmeasured = 0
  /// The number of sessions that wait to be used again.
  private static let maximumIdle = 64
  /// The bytes of commits after which a writer waits for room in the cache.
  private static let throttledBytes = 1 << 20

  /// Sessions without a transaction.
  private struct Sessions {
    var readers: [WiredSession] = []
    var writer: WiredSession?
    /// Whether a session is stuck.
    var isStuck = false
    /// The bytes of commits since the open.
    var committedBytes = 0
    /// The bytes of the largest commit since the open.
    var largestCommit = 0
    /// Whether there were commits since the last checkpoint of `size`.
    var hasCommitted = false
  }

  init(_ directory: EngineDirectory, _ options: EngineOptions) throws {
    messages = WiredMessages(path: directory.path, messages: cwt_make_messages())
    isReadOnly = options.isReadOnly
    isNew = directory.closedSequence == 0
    wired = try WiredSettings(options)
    folder = Glibc.open(directory.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try open()
  }

  /// An engine that was replaced while snapshots were open isn't closed by anyone else.
  deinit {
    if folder >= 0 { Glibc.close(folder) }
    // A connection that can't be closed goes on using the messages.
    if connection != nil, (try? checkNoneIsStuck()) == nil { return }
    closeConnection()
    cwt_free_messages(messages.messages)
  }

  var library: String {
    var (major, minor, patch): (Int32, Int32, Int32) = (0, 0, 0)
    _ = wiredtiger_version(&major, &minor, &patch)
    return "WiredTiger \(major).\(minor).\(patch)"
  }

  var settings: [(name: String, value: String)] { wired.listed }

  // MARK: Opening

  /// A file that is there while the database is open for writing, and after a process was killed.
  private var openMark: String { messages.path + "/touchstone-open" }

  private func open() throws {
    if isReadOnly, access(openMark, F_OK) == 0 {
      throw StorageError(
        .readOnly, "the database wasn't closed; WiredTiger must replay its log, so open it for writing once",
        path: messages.path)
    }
    if !isNew { try checkFilesAreThere() }
    if !isReadOnly { try AtomicFile.write([], to: openMark, permissions: 0o644) }
    let settings = wired.connection(creates: isNew, isReadOnly: isReadOnly)
    var opened: UnsafeMutablePointer<WT_CONNECTION>?
    let result = messages.messages.map { messages in
      withUnsafeMutablePointer(to: &messages.pointee.handler) { handler in
        wiredtiger_open(self.messages.path, handler, settings, &opened)
      }
    }
    guard let result, result == 0, let opened else {
      let error = messages.error(result ?? ENOMEM, "can't open the database", isOpening: true)
      guard let name = wired.extensionName, error.engineMessage?.contains(name) ?? false else { throw error }
      throw StorageError(
        .unsupported, "the compression \(wired.compression) needs WiredTiger's library \(name)",
        path: messages.path,
        engineCode: error.engineCode, engineMessage: error.engineMessage)
    }
    connection = opened
    do {
      let session = try WiredSession(opened, messages, writes: !isReadOnly)
      if !isReadOnly { try session.create(wired.tableSettings) }
      try session.openTable()
      giveBack(session)
    } catch {
      closeConnection()
      // The table has the compression with which it was made, and tells only in this way which.
      let said = (error as? StorageError)?.engineMessage ?? ""
      let other = WiredSettings.compressions.first { said.contains("unknown compressor '\($0)'") }
      guard let other, wired.compression != other else { throw error }
      wired.compression = other
      try open()
    }
  }

  /// WiredTiger makes some missing files anew, and the entries would be gone.
  private func checkFilesAreThere() throws {
    for name in ["WiredTiger", "WiredTiger.turtle", "WiredTiger.wt", "entries.wt"] {
      guard access(messages.path + "/" + name, F_OK) != 0, errno == ENOENT else { continue }
      throw StorageError(.damaged, "the file \(name) is missing", path: messages.path)
    }
  }

  private func closeConnection() {
    // Closing a connection closes its sessions.
    sessions.withLock { $0 = Sessions() }
    if let connection { _ = connection.pointee.close(connection, nil) }
    connection = nil
  }

  /// After a failed write to the log WiredTiger panics: from then on every call fails.
  private var hasPanicked: Bool { messages.messages.map { cwt_has_panicked($0) != 0 } ?? false }

  var needsRenewal: Bool { isBroken || hasPanicked }
  /// A failed checkpoint is tried again, and what WiredTiger can't go on after is a panic.
  var hasFailedInBackground: Bool { false }
  var isUnreadable: Bool { connection == nil || isBroken || hasPanicked }

  /// A commit has failed. WiredTiger may refuse everything from then on.
  func noteFailure(_ session: WiredSession) {
    isBroken = true
    if session.isStuck { giveBack(session) } else { session.close() }
  }

  func renew() throws {
    // It has no log from which its commits could come back.
    if wired.isBulkLoad { throw messages.error(WT_PANIC, "a bulk load has failed") }
    try checkNoneIsStuck()
    closeConnection()
    if let messages = messages.messages { cwt_clear_messages(messages) }
    // Until it is open.
    isBroken = true
    try open()
    isBroken = false
  }

  func close() throws -> Bool {
    guard let connection else { return false }
    try checkNoneIsStuck()
    // Closing the connection writes a checkpoint.
    sessions.withLock { $0 = Sessions() }
    self.connection = nil
    let result = connection.pointee.close(connection, nil)
    guard !isReadOnly else { return false }
    if isBroken || hasPanicked {
      // The log has all commits, but not those of a bulk load.
      guard wired.isBulkLoad else { return false }
      throw messages.error(result == 0 ? WT_PANIC : result, "can't close the database")
    }
    try messages.check(result, "can't close the database")
    unlink(openMark)
    return true
  }

  /// Throws if WiredTiger has given up in the middle of a transaction. It has no way then to end that, and not even
  /// to close its files.
  private func checkNoneIsStuck() throws {
    guard hasPanicked, sessions.withLock({ $0.isStuck }) else { return }
    throw messages.error(
      WT_PANIC,
      "WiredTiger gave up while a transaction was open, and can't close its files; open the database in a new process"
    )
  }

  /// WiredTiger has no number of commits. 1 says that its files are there.
  var sequence: UInt64 { 1 }

  // MARK: Sessions

  func session(writes: Bool = false) throws -> WiredSession {
    let idle = sessions.withLock { writes ? $0.writer.take() : $0.readers.popLast() }
    if let idle { return idle }
    guard let connection else {
      throw StorageError(
        .ioError, "the database couldn't be opened anew after a failure", path: messages.path)
    }
    return try WiredSession(connection, messages, writes: writes)
  }

  /// Keeps a session without a transaction for later.
  func giveBack(_ session: WiredSession) {
    let isKept = sessions.withLock { sessions in
      guard !session.isStuck else {
        sessions.isStuck = true
        return true
      }
      if session.writes {
        guard sessions.writer == nil else { return false }
        sessions.writer = session
      } else {
        guard sessions.readers.count < Self.maximumIdle else { return false }
        sessions.readers.append(session)
      }
      return true
    }
    if !isKept { session.close() }
  }

  // MARK: Reading and writing

  func beginRead() throws -> any FlatRead { try WiredSnapshot(self, try session()) }

  func beginWrite() throws -> any FlatWrite { try WiredWrite(self, try session(writes: true)) }

  /// Makes sure that the disk has room for a commit of so many bytes.
  func reserveLog(_ bytes: Int) throws {
    let unwritten = sessions.withLock {
      // `limitLog` lets no more wait for a checkpoint.
      min($0.committedBytes, 2 * wired.checkpointLogBytes + $0.largestCommit)
    }
    try WiredLog(directory: messages.path, folder: folder).reserve(
      bytes, spare: unwritten, cacheBytes: wired.cacheBytes, isBuffered: bytes <= wired.bufferedRecordBytes)
  }

  func read(_ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
    let session = try session()
    defer { giveBack(session) }
    // A read without a transaction sees the last commit.
    return try session.read(key, body)
  }

  /// Called after a commit of about so many bytes, between two transactions of the session.
  func committed(_ bytes: Int, _ session: WiredSession) {
    sessions.withLock { sessions in
      sessions.committedBytes += bytes
      sessions.largestCommit = max(sessions.largestCommit, bytes)
      sessions.hasCommitted = true
    }
    unthrottled += bytes
    unmeasured += bytes
    if unthrottled >= Self.throttledBytes {
      unthrottled = 0
      waitForRoomInCache()
    }
    if unmeasured >= wired.logFileBytes {
      unmeasured = 0
      limitLog(session, after: bytes)
    }
  }

  /// Sessions that write don't wait for room in the cache, so this does: a snapshot begins when there is some.
  private func waitForRoomInCache() {
    guard let session = try? session() else { return }
    // An error says that this has taken `WiredSettings.cacheWait`, or that WiredTiger has given up.
    do {
      try session.begin()
      session.rollBack()
      giveBack(session)
    } catch { session.close() }
  }

  /// Writes a checkpoint if the log is twice as long as it should be: a writer can be faster than the thread of
  /// WiredTiger's that writes them, and then the log would grow without end. The last commit isn't counted: that thread
  /// has only just heard of it, and a writer of one large transaction needn't wait.
  private func limitLog(_ session: WiredSession, after commit: Int) {
    guard let bytes = try? WiredLog(directory: messages.path).bytes(),
      bytes > 2 * wired.checkpointLogBytes + commit
    else { return }
    // The commit is done. If this fails, WiredTiger gives up, and the next transaction opens the files anew.
    try? session.writeCheckpoint()
  }

  func removeRange(from lower: [UInt8], to upper: [UInt8], record: [UInt8]) throws {
    let write = try WiredWrite(self, try session(writes: true))
    do {
      try write.truncate(from: lower, to: upper)
      _ = try record.withUnsafeBytes { try write.delete($0) }
    } catch {
      write.abort()
      throw error
    }
    try write.commit()
  }

  /// A bulk cursor writes the pages of the table one after another, without the cache. It needs a table that is just made: even
  /// a read of an empty one spoils it.
  func fill(_ next: () throws -> FlatEntry?) throws {
    let idle = sessions.withLock { sessions in
      defer { (sessions.readers, sessions.writer) = ([], nil) }
      return sessions.readers + [sessions.writer].compactMap(\.self)
    }
    for session in idle { session.close() }
    let session = try session(writes: true)
    var isLoaded = false
    do {
      if try session.drop() {
        try session.create(wired.tableSettings)
        try session.load(next)
        isLoaded = true
      }
    } catch {
      noteFailure(session)
      throw error
    }
    giveBack(session)
    if !isLoaded { try fillByTransactions(next) }
  }

  // MARK: Maintenance

  /// WiredTiger's compaction leaves up to half of the unused blocks, and the log. A copy has neither.
  var compactsInPlace: Bool { false }

  func compact() throws {}

  /// WiredTiger's own check needs the table for itself, and others couldn't read meanwhile. The engine's check reads
  /// all entries, and so all blocks that aren't in the cache, whose checksums WiredTiger compares.
  func checkFiles() throws -> [String] { [] }

  /// Unused are the blocks that the table's file has and doesn't use, and the log, once all of it is in the table. A checkpoint keeps
  /// the blocks of the one before it until it is whole, so what was removed is unused only after two of them.
  func size(entries: Int) throws -> (bytes: Int, unused: Int) {
    let session = try session()
    defer { giveBack(session) }
    let isWritten = try writeTable(session)
    let table = try session.statistics(
      [WT_STAT_DSRC_BLOCK_SIZE, WT_STAT_DSRC_BLOCK_REUSE_BYTES], of: "statistics:\(WiredSettings.table)")
    // WiredTiger removes files of the log at any time: each is measured once.
    let log = try WiredLog(directory: messages.path).bytes()
    let others = try FileTree.names(in: messages.path)
      .filter { !WiredLog.isFile($0) && $0 != WiredSettings.tableFile }
      .reduce(0) { $0 + FileSize.of(messages.path + "/" + $1) }
    return (table[0] + log + others, table[1] + (isWritten ? log : 0))
  }

  /// Writes all commits to the table, unless the disk has no room for that, where WiredTiger would give up. Returns whether
  /// they are there.
  private func writeTable(_ session: WiredSession) throws -> Bool {
    let isBehind = sessions.withLock { sessions in
      defer { sessions.hasCommitted = false }
      return sessions.hasCommitted
    }
    guard isBehind, !isReadOnly else { return true }
    do {
      try reserveLog(0)
      try session.writeCheckpoint()
      try session.writeCheckpoint(evenIfUnchanged: true)
      return true
    } catch {
      sessions.withLock { $0.hasCommitted = true }
      guard let error = error as? StorageError, error.code == .diskFull else { throw error }
      return false
    }
  }
}
