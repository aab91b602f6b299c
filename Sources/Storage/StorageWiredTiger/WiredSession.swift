import CWiredTiger
import Storage
import StorageFlat

#if canImport(Glibc)
  import Glibc
#endif

/// A session of WiredTiger, with cursors that are used again. One thread at a time uses it.
final class WiredSession {
  typealias Cursor = UnsafeMutablePointer<WT_CURSOR>

  let messages: WiredMessages
  private let session: UnsafeMutablePointer<WT_SESSION>
  /// Whether the session is for write transactions.
  let writes: Bool
  /// Whether a transaction or a position couldn't be given up, because WiredTiger has given up itself. Such a
  /// session can't be closed either, and closing the connection would wait for it forever.
  private(set) var isStuck = false
  @exclusivity(unchecked) private var idle: [Cursor] = []
  /// A cursor whose inserts replace values.
  private var idleSetter: Cursor?
  private static let maximumIdle = 8

  init(_ connection: UnsafeMutablePointer<WT_CONNECTION>, _ messages: WiredMessages, writes: Bool) throws {
    self.messages = messages
    self.writes = writes
    // A session that writes doesn't help to make room in the cache. In WiredTiger 3.2 a commit whose write to the
    // log failed would wait for that room forever, because the threads that make it have ended.
    let settings = writes ? "ignore_cache_size=true" : nil
    var session: UnsafeMutablePointer<WT_SESSION>?
    try messages.check(
      connection.pointee.open_session(connection, nil, settings, &session), "can't open a session")
    guard let session else {
      throw StorageError(.engineFailure, "can't open a session", path: messages.path)
    }
    self.session = session
  }

  /// Closes the session and all its cursors. The connection is open.
  func close() { _ = session.pointee.close(session, nil) }

  func create(_ settings: String) throws {
    try messages.check(
      session.pointee.create(session, WiredSettings.table, settings), "can't make the table")
  }

  /// Opens the table, for the cursors that come.
  func openTable() throws { giveBack(try cursor()) }

  /// Removes the table. No session has a cursor. Returns false if a thread of WiredTiger's is looking at it.
  func drop() throws -> Bool {
    let result = session.pointee.drop(session, WiredSettings.table, nil)
    guard result != EBUSY else { return false }
    try messages.check(result, "can't remove the table")
    return true
  }

  func begin() throws {
    try messages.check(
      session.pointee.begin_transaction(session, "isolation=snapshot"), "can't begin a transaction")
  }

  /// WiredTiger 3.2 commits although the log couldn't be written, if the record is larger than half a buffer of the
  /// log: it loses the error, gives up, and says so only in a message.
  func commit() throws {
    let result = session.pointee.commit_transaction(session, nil)
    guard let known = messages.messages else { return try messages.check(result, "can't commit") }
    // A commit that fails undoes itself, unless WiredTiger has given up before it began.
    if result != 0, cwt_panicked_elsewhere(known, session) != 0 { isStuck = true }
    try messages.check(result, "can't commit")
    guard cwt_has_lost(known, session) != 0 else { return }
    throw messages.error(WT_PANIC, "can't write the log")
  }

  /// Writes what has changed to the table's file. Then files of the log from before are free, and blocks from before the
  /// last checkpoint.
  func writeCheckpoint(evenIfUnchanged: Bool = false) throws {
    try messages.check(
      session.pointee.checkpoint(session, evenIfUnchanged ? "force=true" : nil), "can't write a checkpoint")
  }

  func rollBack() { if session.pointee.rollback_transaction(session, nil) != 0 { isStuck = true } }

  func truncate(from lower: [UInt8], to upper: [UInt8]) throws {
    let (start, stop) = (try cursor(), try cursor())
    defer {
      giveBack(start)
      giveBack(stop)
    }
    // Both ends belong to the range, and need not exist. A key of 4 bytes is no entry's.
    lower.withUnsafeBytes { cwt_set_key(start, $0.baseAddress, $0.count) }
    try upper.withUnsafeBytes { upper in
      cwt_set_key(stop, upper.baseAddress, upper.count)
      let result = session.pointee.truncate(session, nil, start, stop, nil)
      if result != WT_NOTFOUND { try messages.check(result, "can't remove a keyspace") }
    }
  }

  /// Fills the table, which is just made, with entries in the order of their keys.
  func load(_ next: () throws -> FlatEntry?) throws {
    let cursor = try open("bulk")
    do {
      while let (key, value) = try next() {
        cwt_set_key(cursor, key.baseAddress, key.count)
        cwt_set_value(cursor, value.baseAddress, value.count)
        try messages.check(cursor.pointee.insert(cursor), "can't write")
      }
    } catch {
      _ = cursor.pointee.close(cursor)
      throw error
    }
    try messages.check(cursor.pointee.close(cursor), "can't write")
  }

  /// A cursor over the table that no one else uses.
  func cursor() throws -> Cursor {
    if let cursor = idle.popLast() { return cursor }
    return try open("overwrite=false")
  }

  private func open(_ settings: String) throws -> Cursor {
    var cursor: Cursor?
    try messages.check(
      session.pointee.open_cursor(session, WiredSettings.table, nil, settings, &cursor),
      "can't open a cursor")
    guard let cursor else { throw StorageError(.engineFailure, "can't open a cursor", path: messages.path) }
    return cursor
  }

  /// Values of statistics: those of the connection, or of a table.
  func statistics(_ numbers: [Int32], of source: String = "statistics:") throws -> [Int] {
    var cursor: Cursor?
    try messages.check(
      session.pointee.open_cursor(session, source, nil, "statistics=(fast)", &cursor),
      "can't open the statistics")
    guard let cursor else { return numbers.map { _ in 0 } }
    defer { _ = cursor.pointee.close(cursor) }
    return try numbers.map { number in
      var value: Int64 = 0
      try messages.check(cwt_get_statistic(cursor, number, &value), "can't read a statistic")
      return Int(value)
    }
  }

  /// A cursor whose inserts replace values, which no one else uses. There is one at a time.
  func setter() throws -> Cursor {
    if let cursor = idleSetter.take() { return cursor }
    return try open("overwrite=true")
  }

  func giveBack(setter: Cursor) {
    guard setter.pointee.reset(setter) == 0 else { return isStuck = true }
    idleSetter = setter
  }

  func giveBack(_ cursor: Cursor) {
    // Gives up the page, which could otherwise be neither evicted nor split: a load into it then takes ten times as long.
    guard cursor.pointee.reset(cursor) == 0 else { return isStuck = true }
    if idle.count < Self.maximumIdle { idle.append(cursor) } else { _ = cursor.pointee.close(cursor) }
  }

  /// Lends the value at a key, in the cursor's memory.
  func read(_ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
    let cursor = try cursor()
    defer { giveBack(cursor) }
    cwt_set_key(cursor, key.baseAddress, key.count)
    let result = cursor.pointee.search(cursor)
    if result == WT_NOTFOUND { return false }
    try messages.check(result, "can't read")
    try body(try messages.value(of: cursor))
    return true
  }
}

extension WiredMessages {
  func value(of cursor: WiredSession.Cursor) throws -> UnsafeRawBufferPointer {
    var item = WT_ITEM()
    try check(cwt_get_value(cursor, &item), "can't read a value")
    return UnsafeRawBufferPointer(start: item.data, count: item.size)
  }

  func key(of cursor: WiredSession.Cursor) throws -> UnsafeRawBufferPointer {
    var item = WT_ITEM()
    try check(cwt_get_key(cursor, &item), "can't read a key")
    return UnsafeRawBufferPointer(start: item.data, count: item.size)
  }
}
