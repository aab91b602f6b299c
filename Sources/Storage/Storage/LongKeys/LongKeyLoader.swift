import Bytes

/// Loads sorted entries into a map that is empty. Nodes are behind all keys, so their entries wait until the others are
/// there.
final class LongKeyLoader {
  /// The bytes that wait at most, of either kind.
  private static let maximumBytes = 4 << 20

  private let map: LongKeyspace
  private let transaction: any WriteTransaction
  private struct State: ~Copyable {
    /// Stems at the top and short keys, in order.
    var top = WaitingEntries()
    /// Entries of nodes, in any order.
    var inner = WaitingEntries()
    var last = ByteBuffer(capacity: 512)
  }

  // A pointer avoids exclusivity checks at run time.
  private let state: UnsafeMutablePointer<State>
  /// Whether nodes are there already, so that nothing can be appended.
  private var hasNodes = false

  init(_ map: LongKeyspace, _ transaction: any WriteTransaction) {
    self.map = map
    self.transaction = transaction
    state = .allocate(capacity: 1)
    state.initialize(to: State())
  }

  deinit {
    state.deinitialize(count: 1)
    state.deallocate()
  }

  func append(_ key: RawSpan, _ value: RawSpan) throws {
    try LongKeyspace.check(key)
    let order = state.pointee.last.bytes.bytes.compare(key)
    guard order < 0 else {
      throw StorageError(.outOfOrder, "a loaded key isn't greater than the one before it")
    }
    if key.byteCount <= LongKeyLayout.wholeKeyBytes {
      state.pointee.top.append(key, value)
    } else {
      let place = try LongKeyPlace(key)
      let hasStem = place[stem: 0].isEqual(
        to: state.pointee.last.bytes.bytes.extracting(first: LongKeyLayout.stemBytes))
      if !hasStem { state.pointee.top.append(place[stem: 0], RawSpan()) }
      for index in 1..<max(place.stemCount, 1) { state.pointee.inner.append(place[stem: index], RawSpan()) }
      state.pointee.inner.append(place.entry, value)
      if state.pointee.inner.bytes > Self.maximumBytes { try loadInner() }
    }
    if state.pointee.top.bytes > Self.maximumBytes { try loadTop() }
    state.pointee.last.removeAll()
    state.pointee.last.append(key)
  }

  func finish() throws {
    try loadTop()
    try loadInner()
  }

  private func loadTop() throws {
    if hasNodes {
      try state.pointee.top.forEach { try transaction.put($0, $1, in: map.keyspace) }
    } else {
      try transaction.load(map.keyspace) { append in try state.pointee.top.forEach(append) }
    }
    state.pointee.top.removeAll()
  }

  /// The first time, nodes are appended. Later ones get in between.
  private func loadInner() throws {
    guard state.pointee.inner.bytes > 0 else { return }
    state.pointee.inner.sort()
    if hasNodes {
      try state.pointee.inner.forEach { try transaction.put($0, $1, in: map.keyspace) }
    } else {
      try loadTop()
      hasNodes = true
      try transaction.load(map.keyspace) { append in try state.pointee.inner.forEach(append) }
    }
    state.pointee.inner.removeAll()
  }
}

/// Copies of entries.
private struct WaitingEntries: ~Copyable {
  private struct Place: BitwiseCopyable {
    var start: Int
    var keyEnd: Int
    var end: Int
  }

  private var memory = ByteBuffer(capacity: 1 << 12)
  private var places: ContiguousArray<Place> = []

  /// The bytes of all entries.
  var bytes: Int { memory.count }

  mutating func append(_ key: RawSpan, _ value: RawSpan) {
    let start = memory.count
    memory.append(key)
    let keyEnd = memory.count
    memory.append(value)
    places.append(Place(start: start, keyEnd: keyEnd, end: memory.count))
  }

  /// Sorts the entries by key. Equal ones, which are stems, are left out but for one.
  mutating func sort() {
    let memory = memory.bytes
    func key(_ place: Place) -> UnsafeRawBufferPointer {
      UnsafeRawBufferPointer(rebasing: memory[place.start..<place.keyEnd])
    }
    places.sort { compareBytes(key($0), key($1)) < 0 }
    var kept: ContiguousArray<Place> = []
    for place in places {
      if let last = kept.last, equalBytes(key(last), key(place)) { continue }
      kept.append(place)
    }
    places = kept
  }

  func forEach(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    let memory = memory.bytes
    for place in places {
      try body(
        UnsafeRawBufferPointer(rebasing: memory[place.start..<place.keyEnd]).bytes,
        UnsafeRawBufferPointer(rebasing: memory[place.keyEnd..<place.end]).bytes)
    }
  }

  mutating func removeAll() {
    memory.removeAll()
    places.removeAll(keepingCapacity: true)
  }
}
