import Bytes
import Storage
import StorageMemory

/// The write transaction of a `PostgresEngine`: one body's part of it. Writes wait in memory for the commit, or until they take
/// much memory; reads see them there.
final class PostgresWriter: PostgresTransaction, WriteTransaction {
  /// The number of bytes of unsent writes from which they are sent before the commit.
  static let sendingBytes = 8 << 20

  private let connection: Connection
  private(set) var state: WriterState
  /// The state at the beginning of the part, while nothing of it is sent. Nil in the first part, which is never undone alone.
  private(set) var before: WriterState?
  /// Whether the server has a savepoint for the part.
  private(set) var hasSavepoint = false
  /// The failure after which the transaction can't be committed.
  private(set) var breakage: StorageError?
  /// The size of what was written since the last sending, in bytes.
  private var unsentBytes: Int

  private var memory: WriterMemory { engine.writing }

  init(_ engine: PostgresEngine, _ connection: Connection, _ state: WriterState, isPart: Bool) {
    self.connection = connection
    self.state = state
    before = isPart ? state : nil
    unsentBytes = state.unsentBytes
    super.init(engine, nil, state.catalog)
  }

  var lineage: UInt64? { engine.queue.lineage }
  var turn: UInt64? { engine.queue.turn }

  /// Does nothing. The engine ends the transaction.
  override func end() {}

  // MARK: The server

  override func locked<Result>(_ body: (Connection) throws -> Result) throws -> Result {
    try body(connection)
  }

  /// The server rolls a transaction back when anything in it fails. Without the connection it has been rolled back: it may be run
  /// again.
  override func reporting<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as PostgresError {
      let failure = error.storageError("a write transaction has failed", engine.location, lost: .conflict)
      breakage = breakage ?? failure
      throw failure
    }
  }

  override func unsent(_ number: Int) -> SortedRecords { state.entries[number] ?? SortedRecords() }

  /// Sends what isn't sent, and then other requests, whose answers it returns.
  private func send(_ requests: [Request] = []) throws -> ArraySlice<Answer> {
    var all: [Request] = []
    if !state.isSent {
      if var before, !hasSavepoint {
        // What other parts have written comes before this part, which may be undone.
        all = before.requests() + [.text("SAVEPOINT part")]
        state = state.without(before)
        before.noteSent()
        self.before = before
        hasSavepoint = true
      }
      all += state.requests()
    } else if before != nil, !hasSavepoint {
      all = [.text("SAVEPOINT part")]
      hasSavepoint = true
    }
    state.noteSent()
    unsentBytes = 0
    let answers = try reporting { try connection.exchange(all + requests) }
    return answers.suffix(requests.count)
  }

  private func sendIfLarge() throws {
    if unsentBytes >= Self.sendingBytes { _ = try send() }
  }

  // MARK: Reading

  override func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws
    -> Bool
  {
    try PostgresEngine.check(key, in: keyspace)
    try check(keyspace)
    if let own = state.entries[keyspace.number]?.record(at: key) {
      guard UnsentMark.isPut(own.mark) else { return false }
      return try lend(own, body)
    }
    if !state.hasSent, let known = memory.record(key, keyspace.number) {
      guard known.mark == WriterMemory.present else { return false }
      return try lend(known, body)
    }
    let answer = try stored(key, keyspace.number)
    guard let answer else {
      if !state.hasSent { memory.noteAbsent(key, keyspace.number) }
      return false
    }
    if !state.hasSent { memory.note(key, answer.bytes(0, 0).bytes, keyspace.number) }
    try lend(answer, body)
    return true
  }

  private func lend(_ record: MemoryRecord, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    beginLending()
    defer { endLending() }
    try record.withBytes { _, value in try body(value) }
    return true
  }

  override func entryCount(of keyspace: Keyspace) throws -> EntryCount {
    try check(keyspace)
    let own = unsent(keyspace.number)
    var difference = 0
    var place = own.start
    while place < own.end {
      switch own[place].mark {
      case UnsentMark.new: difference += 1
      case UnsentMark.gone: difference -= 1
      case UnsentMark.changed: break
      default:
        // Only the server knows.
        _ = try send()
        return .exact(try storedCount(keyspace.number))
      }
      place = own.after(place)
    }
    return .exact(try storedCount(keyspace.number) + difference)
  }

  // MARK: Keyspaces

  private func beginWrite() throws {
    try checkOpen()
    guard lent == 0 else {
      throw StorageError(.bytesAreLent, "a write inside a closure that bytes of its transaction are lent to")
    }
    if let breakage { throw breakage }
  }

  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    try beginWrite()
    try KeyspaceName.check(name, path: engine.location)
    if let keyspace = catalog.keyspaces[name] {
      guard keyspace.shape == shape else {
        throw StorageError(
          .shapeMismatch, "the keyspace \"\(name)\" has the shape \(keyspace.shape), not \(shape)",
          path: engine.location)
      }
      return keyspace
    }
    guard catalog.keyspaces.count < StorageLimits.maximumKeyspaces,
      catalog.lastNumber < PostgresCatalog.maximumNumber
    else {
      throw StorageError(
        .tooManyKeyspaces, "there are \(catalog.keyspaces.count) keyspaces, which is the limit",
        path: engine.location)
    }
    let keyspace = state.catalog.add(name, shape)
    state.changes.append(.add(number: keyspace.number, name: name, shape: shape))
    state.greatest[keyspace.number] = []
    noteCatalog()
    return keyspace
  }

  func dropKeyspace(_ keyspace: Keyspace) throws {
    try beginWrite()
    try check(keyspace)
    guard let name = state.catalog.remove(keyspace.number) else { return }
    state.entries[keyspace.number] = nil
    state.greatest[keyspace.number] = nil
    let addition = WriterState.Change.add(number: keyspace.number, name: name, shape: keyspace.shape)
    if let index = state.changes.firstIndex(of: addition) {
      state.changes.remove(at: index)
    } else {
      state.changes.append(.remove(number: keyspace.number))
    }
    noteCatalog()
  }

  private func noteCatalog() {
    state.isChanged = true
    state.changesCatalog = true
    catalog = state.catalog
    writes += 1
  }

  // MARK: Entries

  private func checkEntry(_ key: RawSpan, _ value: RawSpan, _ keyspace: Keyspace) throws {
    try beginWrite()
    try PostgresEngine.check(key, in: keyspace)
    guard value.byteCount <= StorageLimits.maximumValueBytes else {
      throw StorageError(
        .valueTooLarge, "a value of \(value.byteCount) bytes is over the limit", path: engine.location)
    }
    try check(keyspace)
  }

  private func set(_ key: RawSpan, _ value: RawSpan, _ number: Int, mark: UInt8) throws {
    writes += 1
    state.isChanged = true
    unsentBytes += key.byteCount + value.byteCount + 32
    _ = state.entries[number, default: SortedRecords()].set(key, value, replaces: true, mark: mark)
    try sendIfLarge()
  }

  /// The mark of a put: what is known of the key on the server.
  private func markOfPut(_ key: RawSpan, _ number: Int) -> UInt8 {
    if let own = state.entries[number]?.record(at: key) {
      return switch own.mark {
      case UnsentMark.removed: UnsentMark.put
      case UnsentMark.gone: UnsentMark.changed
      default: own.mark
      }
    }
    guard !state.hasSent else { return UnsentMark.put }
    if let greatest = state.greatest[number], greatest.span.bytes.compare(key) < 0 {
      // A key that this transaction has removed is among the unsent ones.
      return UnsentMark.new
    }
    guard let known = memory.record(key, number) else { return UnsentMark.put }
    return known.mark == WriterMemory.present ? UnsentMark.changed : UnsentMark.new
  }

  private func raiseGreatest(_ key: RawSpan, _ number: Int) {
    guard let greatest = state.greatest[number], greatest.span.bytes.compare(key) < 0 else { return }
    setGreatest(key, number)
  }

  private func setGreatest(_ key: RawSpan, _ number: Int) {
    state.greatest[number, default: []].removeAll(keepingCapacity: true)
    key.withUnsafeBytes { state.greatest[number, default: []].append(contentsOf: $0) }
  }

  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    try checkEntry(key, value, keyspace)
    let mark = markOfPut(key, keyspace.number)
    raiseGreatest(key, keyspace.number)
    try set(key, value, keyspace.number, mark: mark)
  }

  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try checkEntry(key, value, keyspace)
    guard try !isThere(key, keyspace) else { return false }
    var mark = markOfPut(key, keyspace.number)
    // It was just looked for.
    if mark == UnsentMark.put, state.entries[keyspace.number]?.record(at: key) == nil {
      mark = UnsentMark.new
    }
    raiseGreatest(key, keyspace.number)
    try set(key, value, keyspace.number, mark: mark)
    return true
  }

  private func isThere(_ key: RawSpan, _ keyspace: Keyspace) throws -> Bool {
    let number = keyspace.number
    // The greatest key spares the question.
    if state.entries[number]?.record(at: key) == nil, let greatest = state.greatest[number],
      greatest.span.bytes.compare(key) < 0
    {
      return false
    }
    return try read(key, in: keyspace) { _ in }
  }

  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try checkEntry(key, key, keyspace)
    let number = keyspace.number
    let own = state.entries[number]?.record(at: key)
    guard try isThere(key, keyspace) else { return false }
    if state.greatest[number].map({ $0.span.bytes.compare(key) == 0 }) == true {
      state.greatest[number] = nil
    }
    if let own, own.mark == UnsentMark.new {
      writes += 1
      _ = state.entries[number]?.remove(key)
      return true
    }
    let isUnknown = own?.mark == UnsentMark.put
    try set(key, key.extracting(0..<0), number, mark: isUnknown ? UnsentMark.removed : UnsentMark.gone)
    return true
  }

  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    try beginWrite()
    try check(keyspace)
    let (lower, upper) = EntryKey.bounds(range)
    guard EntryKey.isLess(lower, upper) else { return 0 }
    writes += 1
    state.isChanged = true
    state.greatest[keyspace.number] = nil
    return try lower.withUnsafeBytes { lower in
      try upper.withUnsafeBytes { upper in
        let request = Request.prepared(
          .deleteRange, [.integer(keyspace.number), .bytes(lower), .bytes(upper)])
        return try send([request]).first?.integer(0, 0) ?? 0
      }
    }
  }

  /// Looks for the greatest key only once.
  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    try checkEntry(key, value, keyspace)
    let number = keyspace.number
    if state.greatest[number] == nil {
      let (lower, upper) = EntryKey.bounds(.all)
      let stream = EntryStream(self, number, from: lower, to: upper, isDescending: true, hasValues: false)
      state.greatest[number] = try reporting { try stream.next() } ? stream.copiedKey() : []
    }
    // No key is empty, so nothing is less than the greatest key of an empty keyspace.
    guard state.greatest[number].map({ $0.span.bytes.compare(key) < 0 }) == true else {
      throw StorageError(
        .outOfOrder, "an appended key isn't greater than all others", path: engine.location)
    }
    var mark = UnsentMark.new
    if let own = state.entries[number]?.record(at: key) {
      mark = own.mark == UnsentMark.gone ? UnsentMark.changed : UnsentMark.put
    }
    setGreatest(key, number)
    try set(key, value, number, mark: mark)
  }
}
