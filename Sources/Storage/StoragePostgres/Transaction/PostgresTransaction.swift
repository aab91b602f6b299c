import Bytes
import Storage
import StorageFlat
import StorageMemory

/// A snapshot of a `PostgresEngine`: a transaction of the server that only reads, alone or shared with others.
class PostgresTransaction: ReadTransaction {
  let engine: PostgresEngine
  final var catalog: PostgresCatalog
  /// The number of closures to which bytes of this transaction are currently lent.
  final private(set) var lent = 0
  /// The number of writes. It tells a cursor that its position is invalid.
  final var writes = 0
  final private(set) var isOpen = true
  private let session: ReadSession?

  init(_ engine: PostgresEngine, _ session: ReadSession?, _ catalog: PostgresCatalog) {
    self.engine = engine
    self.session = session
    self.catalog = catalog
  }

  deinit { end() }

  func end() {
    guard isOpen else { return }
    close()
    if let session { engine.readerEnded(session) }
  }

  /// Ends the use of the object, and nothing else.
  final func close() { isOpen = false }

  final func checkOpen() throws {
    guard isOpen else { throw StorageError(.closed, "the transaction was used after its end") }
    if engine.isForked { throw engine.forked }
  }

  final func beginLending() { lent += 1 }
  final func endLending() { lent -= 1 }

  // MARK: The server

  /// Runs `body` with the connection while nobody else uses it. Throws `PostgresError`.
  func locked<Result>(_ body: (Connection) throws -> Result) throws -> Result {
    guard let session else { throw StorageError(.closed, "the transaction has ended") }
    return try session.locked(body)
  }

  /// Runs `body`, and turns the server's errors into those of this transaction. When the connection of a snapshot is lost, the
  /// snapshot is: a new one may be had.
  func reporting<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as PostgresError {
      throw error.storageError("a read in a snapshot has failed", engine.location, lost: .snapshotExpired)
    }
  }

  /// The entries that aren't on the server yet.
  func unsent(_ number: Int) -> SortedRecords { SortedRecords() }

  // MARK: Keyspaces

  final func keyspace(named name: String) throws -> Keyspace? {
    try checkOpen()
    return catalog.keyspaces[name]
  }

  final func keyspaces() throws -> [String: Keyspace] {
    try checkOpen()
    return catalog.keyspaces
  }

  final func check(_ keyspace: Keyspace) throws {
    try checkOpen()
    guard catalog.names[keyspace.number] != nil else { throw PostgresEngine.noSuchKeyspace(keyspace) }
  }

  // MARK: Reading

  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    try PostgresEngine.check(key, in: keyspace)
    try check(keyspace)
    guard let answer = try stored(key, keyspace.number) else { return false }
    try lend(answer, body)
    return true
  }

  /// The value that the server has at a key, as the only field of an answer.
  final func stored(_ key: RawSpan, _ number: Int) throws -> Answer? {
    try key.withUnsafeBytes { key in
      let answer = try reporting {
        try locked { try $0.run(.get, [.integer(number), .bytes(key)]) }
      }
      return answer.count == 1 ? answer : nil
    }
  }

  final func lend(_ answer: Answer, _ body: (_ value: RawSpan) throws -> Void) throws {
    lent += 1
    defer { lent -= 1 }
    try withExtendedLifetime(answer) { try body(answer.bytes(0, 0).bytes) }
  }

  func getMany(
    _ keys: KeyList, in keyspace: Keyspace, _ body: (_ index: Int, _ value: RawSpan) throws -> Bool
  ) throws {
    try check(keyspace)
    for index in 0..<keys.count { try PostgresEngine.check(keys[index], in: keyspace) }
    let values = FoundValues(self, keyspace)
    var start = 0
    while start < keys.count {
      let end = min(keys.count, start + FoundValues.most)
      try values.ask((start..<end).map { [UInt8](copying: keys[$0]) })
      for index in start..<end {
        var goesOn = true
        _ = try values.lend(keys[index]) { goesOn = try body(index, $0) }
        guard goesOn else { return }
        try checkOpen()
      }
      start = end
    }
  }

  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    try check(keyspace)
    let (lower, upper) = EntryKey.bounds(range)
    let stream = EntryStream(
      self, keyspace.number, from: lower, to: upper, isDescending: order == .descending,
      hasValues: fetch == .entries)
    lent += 1
    defer { lent -= 1 }
    while try reporting({ try stream.next() }) {
      guard try reporting({ try stream.lend(body) }) else { return }
      try checkOpen()
    }
  }

  final func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    try check(keyspace)
    return PostgresCursor(self, keyspace, range)
  }

  func entryCount(of keyspace: Keyspace) throws -> EntryCount {
    try check(keyspace)
    return .exact(try storedCount(keyspace.number))
  }

  /// The number of entries that the server has.
  final func storedCount(_ number: Int) throws -> Int {
    let answer = try reporting { try locked { try $0.run(.count, [.integer(number)]) } }
    return answer.count == 1 ? answer.integer(0, 0) : 0
  }

  /// Reads the values of many entries in one request. The references of entries are asked for one by one, as the protocol says, so
  /// which keys the next ones name is guessed.
  func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool
  ) throws {
    try check(keyspace)
    try check(target)
    let (lower, upper) = EntryKey.bounds(range)
    let stream = EntryStream(
      self, keyspace.number, from: lower, to: upper, isDescending: order == .descending, hasValues: true)
    let values = FollowedValues(FoundValues(self, target), stream)
    lent += 1
    defer { lent -= 1 }
    while try reporting({ try stream.next() }) {
      let goesOn = try reporting {
        try stream.lend { key, value -> Bool in
          var goesOn = true
          switch try reference(key, value) {
          case .end: return false
          case .none: return true
          case .inKey(let place):
            guard place.lowerBound >= 0, place.upperBound <= key.byteCount else {
              throw Self.outside(place, key)
            }
            try values.lend(key, place, isInKey: true) { goesOn = try body(key, value, $0) }
          case .inValue(let place):
            guard place.lowerBound >= 0, place.upperBound <= value.byteCount else {
              throw Self.outside(place, value)
            }
            try values.lend(value, place, isInKey: false) { goesOn = try body(key, value, $0) }
          }
          return goesOn
        }
      }
      guard goesOn else { return }
      try checkOpen()
    }
  }

  private static func outside(_ place: Range<Int>, _ bytes: RawSpan) -> StorageError {
    StorageError(
      .invalidArgument, "a reference names the bytes \(place) of an entry of \(bytes.byteCount) bytes")
  }
}
