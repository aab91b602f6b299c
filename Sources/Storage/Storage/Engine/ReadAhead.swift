#if canImport(Glibc)
  import Glibc
#endif

/// Reads the entries of keyspaces in order on a separate thread, up to 2 MiB ahead of the thread that takes
/// them.
///
/// The reader computes the digest of a chunk while enough is read ahead. Otherwise the taker computes it.
///
/// Only the reader uses the transaction until `stop()` returns.
///
/// `@unchecked Sendable`: only the reader uses the transaction, only one thread at a time uses a chunk, and
/// the lock protects the state that both threads use.
final class ReadAhead: @unchecked Sendable {
  /// The place where reading begins.
  struct Position {
    /// The index in the list of keyspaces.
    var keyspace = 0
    /// The bound behind which the keyspace is read.
    var lower = KeyRange.Bound.unbounded
  }

  /// The number of bytes after which the reader waits for the taker. The last chunk may exceed it.
  private static let aheadBytes = 2 << 20
  /// The number of bytes read ahead from which the reader computes digests.
  private static let restfulBytes = 1 << 20

  private struct State {
    var filled: [EntryChunk] = []
    /// Chunks that were given back and can be filled again.
    var empty: [EntryChunk] = []
    /// The bytes in filled chunks that weren't given back yet.
    var bytes = 0
    var isReaderWaiting = false
    var isStopped = false
    var failure: (any Error)?
  }

  private let transaction: any ReadTransaction
  private let keyspaces: [(name: String, keyspace: Keyspace)]
  private let taker = pthread_self()
  /// The digest of the current piece so far. Only the taker uses it.
  private var digest = EntryDigest()
  /// All chunks. Only the reader uses it.
  private var made: [EntryChunk] = []
  private let state = Lock(State())
  /// Signalled for each chunk, and once more at the end.
  private let filled = CountingSemaphore()
  private let room = CountingSemaphore()
  private let ended = CountingSemaphore()

  /// Begins to read. The caller must call `stop()` exactly once, also after an error.
  init(
    _ transaction: any ReadTransaction, _ keyspaces: [(name: String, keyspace: Keyspace)],
    from position: Position
  ) {
    self.transaction = transaction
    self.keyspaces = keyspaces
    Workers().enqueue { [self] in run(from: position) }
  }

  // MARK: Taking

  /// Returns the next chunk, or nil if no entries are left. Rethrows an error of the reader. The caller gives
  /// back the previous chunk first.
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

  /// Ends reading and waits until the reader has ended.
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
      // If no thread could be started, `Workers` runs the job on the enqueuing thread. That is the taker,
      // which can't take chunks meanwhile.
      guard pthread_equal(pthread_self(), taker) == 0 else {
        throw StorageError(.ioError, "can't start a thread for reading ahead")
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

  /// Reads one keyspace to its end. Returns false if reading was stopped.
  private func read(_ index: Int, behind start: KeyRange.Bound) throws -> Bool {
    var lower = start
    // `made` holds each chunk, so an unmanaged reference is safe. It saves reference counting for every
    // entry.
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
    // The last piece has no upper bound, so that verification finds entries behind the last key.
    return end(chunk.takeUnretainedValue(), KeyRange(lower: lower), Position(keyspace: index + 1))
  }

  /// Delivers the last chunk of a piece.
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

  /// Delivers a chunk, and waits while enough is read ahead. Returns false if reading was stopped.
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

/// A run of entries of one keyspace. Each entry is the key's length (4 bytes), the value's length (4 bytes),
/// the key and the value. The lengths are in the machine's byte order.
///
/// Not `Sendable`: `ReadAhead` passes chunks between threads.
final class EntryChunk {
  /// The capacity for keys, values and lengths, in bytes. A single larger entry enlarges it. A chunk of this
  /// size fits into the processor's cache.
  private static let bytes = 256 << 10

  /// The index in the list of keyspaces.
  fileprivate(set) var keyspace = 0
  /// Bytes in use.
  @exclusivity(unchecked) private(set) var used = 0
  @exclusivity(unchecked) private(set) var entries = 0
  /// The number of entries before this chunk in its piece.
  fileprivate(set) var first = 0
  private var digest: EntryDigest?
  /// The range of the piece, set only on the last chunk of the piece. `next` is the position after it.
  fileprivate(set) var range: KeyRange?
  fileprivate(set) var next = ReadAhead.Position()
  /// The finished piece, set when the taker takes the last chunk of the piece.
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

  /// Appends an entry. Returns false if there is no room. An empty chunk grows to fit the entry.
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

  /// The digest of the entries, computed once.
  fileprivate func madeDigest() -> EntryDigest {
    if let digest { return digest }
    var made = EntryDigest(behind: first)
    forEach { made.add($0, $1) }
    digest = made
    return made
  }

  /// Passes all entries to `body`, in order.
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
