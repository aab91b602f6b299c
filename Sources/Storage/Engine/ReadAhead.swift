#if canImport(Glibc)
  import Glibc
#endif

/// Reads the entries of keyspaces in order on a thread of its own, some megabytes ahead of the thread that takes them.
///
/// Digests of what is read are worked out by the one of the two who has time: by the reader while enough is ahead.
///
/// The reader is alone with the transaction until `stop()` returns. `@unchecked Sendable`: the transaction is the
/// reader's, a chunk belongs to one thread at a time, and what both touch is under the lock.
final class ReadAhead: @unchecked Sendable {
  /// Where reading begins.
  struct Position {
    /// Which of the keyspaces.
    var keyspace = 0
    /// Behind which of its keys.
    var lower = KeyRange.Bound.unbounded
  }

  /// Bytes that are read before anybody has taken them, and one chunk more.
  private static let aheadBytes = 2 << 20
  /// So much of it is enough for the reader to look after digests.
  private static let restfulBytes = 1 << 20

  private struct State {
    var filled: [EntryChunk] = []
    /// Taken and given back, to be filled again.
    var empty: [EntryChunk] = []
    /// Of the chunks that are filled and not given back.
    var bytes = 0
    var isReaderWaiting = false
    var isStopped = false
    var failure: (any Error)?
  }

  private let transaction: any ReadTransaction
  private let keyspaces: [(name: String, keyspace: Keyspace)]
  private let taker = pthread_self()
  /// The taker's: of the piece whose chunks it takes.
  private var digest = EntryDigest()
  /// The reader's: all chunks.
  private var made: [EntryChunk] = []
  private let state = Lock(State())
  /// Signalled for each chunk, and once more at the end.
  private let filled = CountingSemaphore()
  private let room = CountingSemaphore()
  private let ended = CountingSemaphore()

  /// Begins to read. `stop()` has to be called once, whatever happens.
  init(
    _ transaction: any ReadTransaction, _ keyspaces: [(name: String, keyspace: Keyspace)],
    from position: Position
  ) {
    self.transaction = transaction
    self.keyspaces = keyspaces
    Workers().enqueue { [self] in run(from: position) }
  }

  // MARK: Taking

  /// The next entries; nil when there are no more. Throws what reading has thrown. The last one is given back first.
  func next() throws -> EntryChunk? {
    filled.wait()
    let chunk = try state.withLock { state throws -> EntryChunk? in
      if !state.filled.isEmpty { return state.filled.removeFirst() }
      if let failure = state.failure { throw failure }
      return nil
    }
    guard let chunk else { return nil }
    digest.add(chunk.madeDigest())
    if let range = chunk.range {
      let (name, keyspace) = keyspaces[chunk.keyspace]
      chunk.piece = KeyspaceRecord.Piece(keyspace: name, shape: keyspace.shape, range: range, digest: digest)
      digest = EntryDigest()
    }
    return chunk
  }

  func giveBack(_ chunk: EntryChunk) {
    let used = chunk.used
    chunk.clear()
    let isRoom = state.withLock { state in
      state.bytes -= used
      state.empty.append(chunk)
      guard state.isReaderWaiting, state.bytes < Self.aheadBytes else { return false }
      state.isReaderWaiting = false
      return true
    }
    if isRoom { room.signal() }
  }

  /// Ends reading, and waits until it has.
  func stop() {
    let isReaderWaiting = state.withLock { state in
      state.isStopped = true
      let isWaiting = state.isReaderWaiting
      state.isReaderWaiting = false
      return isWaiting
    }
    if isReaderWaiting { room.signal() }
    ended.wait()
  }

  // MARK: Reading

  private func run(from position: Position) {
    var failure: (any Error)?
    do {
      // Workers that get no thread do their work in the one that brings it, which can't take meanwhile.
      guard pthread_equal(pthread_self(), taker) == 0 else {
        throw StorageError(.ioError, "reading ahead: the system gives no thread")
      }
      var lower = position.lower
      for index in position.keyspace..<keyspaces.count {
        guard try read(index, behind: lower) else { break }
        lower = .unbounded
      }
    } catch {
      failure = error
    }
    state.withLock { $0.failure = failure }
    filled.signal()
    ended.signal()
  }

  /// Reads one keyspace to its end. False when reading was stopped.
  private func read(_ index: Int, behind start: KeyRange.Bound) throws -> Bool {
    var lower = start
    // Each is held by `made`: no count of references is kept for every entry.
    var chunk = Unmanaged.passUnretained(empty(index, first: 0))
    var bytes = 0
    var isStopped = false
    try transaction.scan(keyspaces[index].keyspace, KeyRange(lower: start)) { key, value in
      let isTaken = chunk._withUnsafeGuaranteedRef { chunk in
        key.withUnsafeBytes { key in value.withUnsafeBytes { chunk.append(key, $0) } }
      }
      if !isTaken {
        let full = chunk.takeUnretainedValue()
        let following = full.first + full.entries
        isStopped = !deliver(full)
        guard !isStopped else { return false }
        let next = empty(index, first: following)
        _ = key.withUnsafeBytes { key in value.withUnsafeBytes { next.append(key, $0) } }
        chunk = .passUnretained(next)
      }
      bytes += key.byteCount + value.byteCount
      guard bytes >= KeyspaceRecord.pieceBytes else { return true }
      let last = [UInt8](copying: key)
      isStopped = !end(
        chunk.takeUnretainedValue(), KeyRange(lower: lower, upper: .inclusive(last)),
        Position(keyspace: index, lower: .exclusive(last)))
      chunk = .passUnretained(empty(index, first: 0))
      lower = .exclusive(last)
      bytes = 0
      return !isStopped
    }
    guard !isStopped else { return false }
    // The last piece reaches to the end: nothing may be behind it.
    return end(chunk.takeUnretainedValue(), KeyRange(lower: lower), Position(keyspace: index + 1))
  }

  /// Hands over the last chunk of a piece.
  private func end(_ chunk: EntryChunk, _ range: KeyRange, _ next: Position) -> Bool {
    chunk.range = range
    chunk.next = next
    return deliver(chunk)
  }

  private func empty(_ keyspace: Int, first: Int) -> EntryChunk {
    let chunk = state.withLock { $0.empty.popLast() } ?? newChunk()
    chunk.keyspace = keyspace
    chunk.first = first
    return chunk
  }

  private func newChunk() -> EntryChunk {
    let chunk = EntryChunk()
    made.append(chunk)
    return chunk
  }

  /// Hands a chunk over, and waits when enough were. False when no more are wanted.
  private func deliver(_ chunk: EntryChunk) -> Bool {
    if state.withLock({ $0.bytes >= Self.restfulBytes }) { _ = chunk.madeDigest() }
    let isEnough = state.withLock { state in
      state.filled.append(chunk)
      state.bytes += chunk.used
      state.isReaderWaiting = state.bytes >= Self.aheadBytes && !state.isStopped
      return state.isReaderWaiting
    }
    filled.signal()
    if isEnough { room.wait() }
    return state.withLock { !$0.isStopped }
  }
}

/// Entries of one keyspace in a row: 4 bytes the key's length, 4 the value's, key, value, in this machine's order.
///
/// Not `Sendable`: handed from thread to thread by `ReadAhead`.
final class EntryChunk {
  /// Of keys, values and lengths; more when one entry has more. Small enough for the processor's cache.
  private static let bytes = 256 << 10

  /// Which of the keyspaces.
  fileprivate(set) var keyspace = 0
  /// Bytes in use.
  @exclusivity(unchecked) private(set) var used = 0
  @exclusivity(unchecked) private(set) var entries = 0
  /// How many entries of its piece are before it.
  fileprivate(set) var first = 0
  private var digest: EntryDigest?
  /// With the last entries of a piece: its range, and where reading goes on behind it.
  fileprivate(set) var range: KeyRange?
  fileprivate(set) var next = ReadAhead.Position()
  /// The piece, when somebody takes its last entries.
  fileprivate(set) var piece: KeyspaceRecord.Piece?

  @exclusivity(unchecked) private var memory = UnsafeMutableRawBufferPointer.allocate(
    byteCount: EntryChunk.bytes, alignment: 16)

  deinit { memory.deallocate() }

  fileprivate func clear() {
    used = 0
    entries = 0
    digest = nil
    range = nil
    piece = nil
    if memory.count > Self.bytes { allocate(Self.bytes) }
  }

  private func allocate(_ count: Int) {
    memory.deallocate()
    memory = .allocate(byteCount: count, alignment: 16)
  }

  /// False when there is no room; an empty one gets as large as it takes.
  fileprivate func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Bool {
    let used = used
    let count = 8 + key.count + value.count
    if count > memory.count - used {
      guard used == 0 else { return false }
      allocate(count)
    }
    guard let start = memory.baseAddress else { return false }
    let place = start + used
    place.storeBytes(of: UInt32(truncatingIfNeeded: key.count), as: UInt32.self)
    place.storeBytes(of: UInt32(truncatingIfNeeded: value.count), toByteOffset: 4, as: UInt32.self)
    if let bytes = key.baseAddress { (place + 8).copyMemory(from: bytes, byteCount: key.count) }
    if let bytes = value.baseAddress {
      (place + 8 + key.count).copyMemory(from: bytes, byteCount: value.count)
    }
    self.used = used + count
    entries += 1
    return true
  }

  /// The digest of its entries, which is worked out once.
  fileprivate func madeDigest() -> EntryDigest {
    if let digest { return digest }
    var made = EntryDigest(behind: first)
    forEach { made.add($0, $1) }
    digest = made
    return made
  }

  /// Hands all entries to `body`, in order.
  func forEach(
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Void
  ) rethrows {
    guard var place = UnsafeRawPointer(memory.baseAddress) else { return }
    for _ in 0..<entries {
      let keyCount = Int(place.loadUnaligned(as: UInt32.self))
      let valueCount = Int(place.loadUnaligned(fromByteOffset: 4, as: UInt32.self))
      let key = place + 8
      let value = key + keyCount
      try body(
        UnsafeRawBufferPointer(start: key, count: keyCount),
        UnsafeRawBufferPointer(start: value, count: valueCount))
      place = value + valueCount
    }
  }
}
