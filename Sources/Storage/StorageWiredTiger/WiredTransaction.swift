import Bytes
import CWiredTiger
import Storage
import StorageFlat

/// A snapshot of WiredTiger: a transaction of a session that only reads.
class WiredSnapshot: FlatRead {
  fileprivate let library: WiredLibrary
  fileprivate let session: WiredSession

  init(_ library: WiredLibrary, _ session: WiredSession) throws {
    self.library = library
    self.session = session
    do { try session.begin() } catch {
      session.close()
      throw error
    }
  }

  func end() { rollBack() }

  fileprivate final func rollBack() {
    session.rollBack()
    library.giveBack(session)
  }

  final func read(_ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws
    -> Bool
  {
    try session.read(key, body)
  }

  final func iterator(from lower: [UInt8], to upper: [UInt8]) throws -> any FlatIterator {
    WiredIterator(session, try session.cursor(), lower, upper)
  }
}

/// A write transaction of WiredTiger.
///
/// WiredTiger has no savepoints. Within a part, the value that each write replaces is kept, and put back when the
/// part is undone.
final class WiredWrite: WiredSnapshot, FlatWrite {
  private struct Undo {
    let key: [UInt8]
    /// Nil if there was no value.
    let value: [UInt8]?
  }

  private var undo: [Undo]?
  /// About what the transaction takes in the log.
  private var bytes = 0
  private var writing: WiredSession.Cursor?
  private var setting: WiredSession.Cursor?

  /// The transaction ends with `commit` or `abort`.
  override func end() {}

  private func cursor(at key: UnsafeRawBufferPointer) throws -> WiredSession.Cursor {
    let cursor = try writing ?? session.cursor()
    writing = cursor
    cwt_set_key(cursor, key.baseAddress, key.count)
    return cursor
  }

  /// WiredTiger's limit is 4 GiB, with what it adds.
  private static let maximumBytes = 2 << 30
  /// What WiredTiger adds to a write, at most.
  private static let overheadBytes = 32

  /// Counts a write.
  private func count(_ key: UnsafeRawBufferPointer, _ value: Int) throws {
    bytes += key.count + value + Self.overheadBytes
    guard bytes <= Self.maximumBytes else {
      throw StorageError(
        .transactionTooLarge, "a transaction writes more than \(Self.maximumBytes) bytes",
        path: session.messages.path)
    }
  }

  /// Keeps what a write to a key replaces, within a part.
  private func note(_ key: UnsafeRawBufferPointer) throws {
    guard undo != nil else { return }
    var old: [UInt8]?
    _ = try read(key) { old = [UInt8]($0) }
    undo?.append(Undo(key: [UInt8](key), value: old))
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool {
    try note(key)
    return try write(key, value)
  }

  /// Returns whether there was no value.
  private func write(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool {
    if try addIfNew(key, value) { return true }
    try count(key, value.count)
    let cursor = try cursor(at: key)
    cwt_set_value(cursor, value.baseAddress, value.count)
    try session.messages.check(cursor.pointee.update(cursor), "can't write")
    return false
  }

  private func addIfNew(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool {
    let cursor = try cursor(at: key)
    cwt_set_value(cursor, value.baseAddress, value.count)
    let result = cursor.pointee.insert(cursor)
    if result == WT_DUPLICATE_KEY { return false }
    try session.messages.check(result, "can't write")
    try count(key, value.count)
    return true
  }

  /// One search, where `put` may take two.
  func set(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws {
    try note(key)
    try count(key, value.count)
    let cursor = try setting ?? session.setter()
    setting = cursor
    cwt_set_key(cursor, key.baseAddress, key.count)
    cwt_set_value(cursor, value.baseAddress, value.count)
    try session.messages.check(cursor.pointee.insert(cursor), "can't write")
  }

  /// With the cursor of `put`, which stands near the entry before: `set` has the one for appended entries.
  func add(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws {
    _ = try put(key, value)
  }

  func insert(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool {
    try note(key)
    return try addIfNew(key, value)
  }

  func delete(_ key: UnsafeRawBufferPointer) throws -> Bool {
    try note(key)
    return try removeIfThere(key)
  }

  private func removeIfThere(_ key: UnsafeRawBufferPointer) throws -> Bool {
    try count(key, 0)
    let cursor = try cursor(at: key)
    let result = cursor.pointee.remove(cursor)
    if result == WT_NOTFOUND { return false }
    try session.messages.check(result, "can't delete")
    return true
  }

  func remove(_ key: UnsafeRawBufferPointer) throws { _ = try delete(key) }

  /// Removes a range of entries. Not within a part.
  func truncate(from lower: [UInt8], to upper: [UInt8]) throws {
    bytes += lower.count + upper.count + Self.overheadBytes
    try session.truncate(from: lower, to: upper)
  }

  func beginPart() throws { undo = [] }

  func undoPart() throws {
    let steps = undo ?? []
    undo = nil
    for step in steps.reversed() {
      try step.key.withUnsafeBytes { key in
        if let value = step.value {
          _ = try value.withUnsafeBytes { try set(key, $0) }
        } else {
          _ = try removeIfThere(key)
        }
      }
    }
  }

  func commit() throws {
    giveBackCursors()
    guard bytes > 0 else { return rollBack() }
    do { try library.reserveLog(bytes) } catch {
      rollBack()
      throw error
    }
    do { try session.commit() } catch {
      library.noteFailure(session)
      throw error
    }
    library.committed(bytes, session)
    library.giveBack(session)
  }

  func abort() {
    giveBackCursors()
    rollBack()
  }

  private func giveBackCursors() {
    if let writing { session.giveBack(writing) }
    if let setting { session.giveBack(setter: setting) }
    (writing, setting) = (nil, nil)
  }
}

/// A position of WiredTiger.
final class WiredIterator: FlatIterator {
  private let session: WiredSession
  private var cursor: WiredSession.Cursor?
  private let lower: [UInt8]
  private let upper: [UInt8]
  /// The key of the entry, in the library's memory, until the next move.
  private var key = UnsafeRawBufferPointer(start: nil, count: 0)

  init(_ session: WiredSession, _ cursor: WiredSession.Cursor, _ lower: [UInt8], _ upper: [UInt8]) {
    self.session = session
    self.cursor = cursor
    self.lower = lower
    self.upper = upper
  }

  func close() {
    if let cursor { session.giveBack(cursor) }
    cursor = nil
  }

  func seek(_ key: UnsafeRawBufferPointer) throws -> Bool {
    guard let cursor, let side = try search(cursor, key) else { return false }
    guard try side >= 0 || stands(cursor, cursor.pointee.next(cursor)) else { return false }
    return try isInside(cursor)
  }

  func seek(before key: UnsafeRawBufferPointer) throws -> Bool {
    guard let cursor, let side = try search(cursor, key) else { return false }
    guard try side < 0 || stands(cursor, cursor.pointee.prev(cursor)) else { return false }
    return try isInside(cursor)
  }

  /// Moves to an entry near a key. Returns its order relative to the key; nil if there is no entry.
  private func search(_ cursor: WiredSession.Cursor, _ key: UnsafeRawBufferPointer) throws -> Int32? {
    cwt_set_key(cursor, key.baseAddress, key.count)
    var side: Int32 = 0
    let result = cursor.pointee.search_near(cursor, &side)
    if result == WT_NOTFOUND { return nil }
    try session.messages.check(result, "can't read")
    return side
  }

  /// A move is away from the other end of the range, so it looks at one end.
  func next() throws -> Bool {
    guard let cursor, try stands(cursor, cursor.pointee.next(cursor)) else { return false }
    return upper.withUnsafeBytes { compareBytes(key, $0) < 0 }
  }

  func previous() throws -> Bool {
    guard let cursor, try stands(cursor, cursor.pointee.prev(cursor)) else { return false }
    return lower.withUnsafeBytes { compareBytes($0, key) <= 0 }
  }

  /// Takes the key after a move. Returns false if there is no entry.
  private func stands(_ cursor: WiredSession.Cursor, _ result: Int32) throws -> Bool {
    if result == WT_NOTFOUND { return false }
    try session.messages.check(result, "can't read")
    key = try session.messages.key(of: cursor)
    return true
  }

  func walk(descending: Bool, _ body: (FlatEntry) throws -> Bool) throws {
    guard let cursor else { throw StorageError(.closed, "the cursor is closed") }
    let messages = session.messages
    guard let move = descending ? cursor.pointee.prev : cursor.pointee.next else { return }
    try (descending ? lower : upper).withUnsafeBytes { end in
      var key = key
      while true {
        guard try body((key, try messages.value(of: cursor))) else { return }
        let result = move(cursor)
        if result == WT_NOTFOUND { return }
        try messages.check(result, "can't read")
        key = try messages.key(of: cursor)
        guard descending ? compareBytes(end, key) <= 0 : compareBytes(key, end) < 0 else { return }
      }
    }
  }

  private func isInside(_ cursor: WiredSession.Cursor) throws -> Bool {
    key = try session.messages.key(of: cursor)
    return lower.withUnsafeBytes { compareBytes($0, key) } <= 0
      && upper.withUnsafeBytes { compareBytes(key, $0) } < 0
  }

  func entry() throws -> FlatEntry {
    guard let cursor else { throw StorageError(.closed, "the cursor is closed") }
    return (key, try session.messages.value(of: cursor))
  }
}
