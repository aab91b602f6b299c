import Bytes

#if canImport(Glibc)
  import Glibc
#endif

/// Tokens that aren't written yet: those of one transaction, or those of many documents while an index is
/// built. One thread at a time.
///
/// Tokens are added by document and returned by term.
final class PendingPostings {
  private struct Token: BitwiseCopyable {
    var term: UInt32
    var position: UInt32
  }

  /// The tokens of one column of one document.
  private struct Run: BitwiseCopyable {
    var document: UInt32
    var column: UInt16
    var flags: UInt16
    var start: Int
    var end: Int
  }

  private struct Term: BitwiseCopyable {
    /// The first eight bytes, big-endian, for sorting.
    var prefix: UInt64
    var hash: UInt32
    var length: UInt32
    var offset: Int
    /// The number of tokens with this term.
    var tokens: Int
  }

  private struct State {
    var bytes: UnsafeMutablePointer<UInt8>
    var byteCount = 0
    var byteCapacity: Int
    var terms: UnsafeMutablePointer<Term>
    var termCount = 0
    var termCapacity: Int
    /// Numbers of terms plus one, by hash; 0 for a free slot.
    var slots: UnsafeMutablePointer<UInt32>
    var slotCount: Int
    var tokens: UnsafeMutablePointer<Token>
    var tokenCount = 0
    var tokenCapacity: Int
  }

  // The state is behind a pointer to avoid exclusivity checks at run time.
  private let state: UnsafeMutablePointer<State>
  private var runs: [Run] = []

  init() {
    state = .allocate(capacity: 1)
    state.initialize(
      to: State(
        bytes: .allocate(capacity: 4096), byteCapacity: 4096, terms: .allocate(capacity: 256),
        termCapacity: 256, slots: .allocate(capacity: 1024), slotCount: 1024,
        tokens: .allocate(capacity: 1024), tokenCapacity: 1024))
    state.pointee.slots.initialize(repeating: 0, count: 1024)
  }

  deinit {
    state.pointee.bytes.deallocate()
    state.pointee.terms.deallocate()
    state.pointee.slots.deallocate()
    state.pointee.tokens.deallocate()
    state.deallocate()
  }

  var isEmpty: Bool { runs.isEmpty }
  /// The number of tokens since the last `removeAll`.
  var tokenCount: Int { state.pointee.tokenCount }
  /// The memory in bytes that the tokens need, including the occurrences that `forEachTerm` makes.
  var usedBytes: Int {
    state.pointee.tokenCount * (MemoryLayout<Token>.stride + MemoryLayout<Occurrence>.stride)
      + state.pointee.byteCount + state.pointee.termCount * MemoryLayout<Term>.stride
  }

  func removeAll() {
    runs.removeAll(keepingCapacity: true)
    state.pointee.byteCount = 0
    state.pointee.tokenCount = 0
    // The memory of a long transaction isn't kept for later short ones.
    if state.pointee.slotCount > 1 << 14 {
      state.pointee.slots.deallocate()
      state.pointee.slotCount = 1024
      state.pointee.slots = .allocate(capacity: 1024)
    }
    if state.pointee.tokenCapacity > 1 << 16 {
      state.pointee.tokens.deallocate()
      state.pointee.tokenCapacity = 1024
      state.pointee.tokens = .allocate(capacity: 1024)
    }
    state.pointee.termCount = 0
    state.pointee.slots.initialize(repeating: 0, count: state.pointee.slotCount)
  }

  // MARK: Adding

  /// Starts a column of a document. The tokens that follow belong to it.
  func begin(_ document: UInt32, column: Int, flags: UInt16) {
    runs.append(
      Run(
        document: document, column: UInt16(column), flags: flags, start: state.pointee.tokenCount,
        end: state.pointee.tokenCount))
  }

  /// Ends the column. Returns false if it had no tokens.
  func end() -> Bool {
    guard var run = runs.popLast() else { return false }
    run.end = state.pointee.tokenCount
    if run.end == run.start { return false }
    runs.append(run)
    return true
  }

  /// Adds flags to all runs from index `count` on.
  func mark(runsFrom count: Int, _ flags: UInt16) {
    for index in count..<runs.count { runs[index].flags |= flags }
  }

  /// The number of document columns that were added.
  var runCount: Int { runs.count }

  /// Adds a token. The positions of a column must ascend.
  @inline(__always)
  func add(_ term: UnsafeRawBufferPointer, position: Int) {
    let number = number(of: term)
    if state.pointee.tokenCount == state.pointee.tokenCapacity { growTokens() }
    state.pointee.tokens[state.pointee.tokenCount] = Token(
      term: number, position: UInt32(truncatingIfNeeded: position))
    state.pointee.tokenCount &+= 1
  }

  @inline(__always)
  private func number(of term: UnsafeRawBufferPointer) -> UInt32 {
    let hash = UInt32(truncatingIfNeeded: ByteHash.of(term, 0))
    let mask = state.pointee.slotCount &- 1
    var slot = Int(hash) & mask
    while true {
      let found = state.pointee.slots[slot]
      if found == 0 { return insert(term, hash, slot) }
      let known = state.pointee.terms + Int(found &- 1)
      if known.pointee.hash == hash, Int(known.pointee.length) == term.count, term.count > 0,
        memcmp(
          state.pointee.bytes + known.pointee.offset, term.baseAddress.unsafelyUnwrapped, term.count) == 0
      {
        known.pointee.tokens &+= 1
        return found &- 1
      }
      slot = (slot &+ 1) & mask
    }
  }

  @inline(never)
  private func insert(_ term: UnsafeRawBufferPointer, _ hash: UInt32, _ slot: Int) -> UInt32 {
    var slot = slot
    if (state.pointee.termCount + 1) * 2 > state.pointee.slotCount {
      growSlots()
      slot = Int(hash) & (state.pointee.slotCount - 1)
      while state.pointee.slots[slot] != 0 { slot = (slot + 1) & (state.pointee.slotCount - 1) }
    }
    if state.pointee.termCount == state.pointee.termCapacity { growTerms() }
    if state.pointee.byteCapacity - state.pointee.byteCount < term.count { growBytes(term.count) }
    if let source = term.baseAddress {
      memcpy(state.pointee.bytes + state.pointee.byteCount, source, term.count)
    }
    var prefix: UInt64 = 0
    for index in 0..<8 { prefix = prefix << 8 | (index < term.count ? UInt64(term[index]) : 0) }
    state.pointee.terms[state.pointee.termCount] = Term(
      prefix: prefix, hash: hash, length: UInt32(term.count), offset: state.pointee.byteCount, tokens: 1)
    state.pointee.byteCount += term.count
    state.pointee.termCount += 1
    state.pointee.slots[slot] = UInt32(state.pointee.termCount)
    return UInt32(state.pointee.termCount - 1)
  }

  private func growSlots() {
    let count = state.pointee.slotCount * 2
    state.pointee.slots.deallocate()
    state.pointee.slots = .allocate(capacity: count)
    state.pointee.slots.initialize(repeating: 0, count: count)
    state.pointee.slotCount = count
    for number in 0..<state.pointee.termCount {
      var slot = Int(state.pointee.terms[number].hash) & (count - 1)
      while state.pointee.slots[slot] != 0 { slot = (slot + 1) & (count - 1) }
      state.pointee.slots[slot] = UInt32(number + 1)
    }
  }

  private static func grown<Element>(
    _ old: UnsafeMutablePointer<Element>, _ count: Int, to capacity: Int
  ) -> UnsafeMutablePointer<Element> {
    let new = UnsafeMutablePointer<Element>.allocate(capacity: capacity)
    new.moveInitialize(from: old, count: count)
    old.deallocate()
    return new
  }

  private func growTerms() {
    state.pointee.termCapacity *= 2
    state.pointee.terms = PendingPostings.grown(
      state.pointee.terms, state.pointee.termCount, to: state.pointee.termCapacity)
  }

  private func growBytes(_ more: Int) {
    state.pointee.byteCapacity = max(state.pointee.byteCapacity * 2, state.pointee.byteCount + more)
    state.pointee.bytes = PendingPostings.grown(
      state.pointee.bytes, state.pointee.byteCount, to: state.pointee.byteCapacity)
  }

  @inline(never)
  private func growTokens() {
    state.pointee.tokenCapacity *= 2
    state.pointee.tokens = PendingPostings.grown(
      state.pointee.tokens, state.pointee.tokenCount, to: state.pointee.tokenCapacity)
  }

  // MARK: Reading

  /// Calls `body` with each term and its occurrences.
  ///
  /// Terms are in byte order. Occurrences are ordered by document, old text before new text, column and
  /// position.
  func forEachTerm(
    _ body: (_ term: UnsafeRawBufferPointer, _ occurrences: UnsafeBufferPointer<Occurrence>) throws -> Void
  ) rethrows {
    let termCount = state.pointee.termCount
    let terms = state.pointee.terms
    let bytes = UnsafeRawPointer(state.pointee.bytes)
    runs.sort {
      if $0.document != $1.document { return $0.document < $1.document }
      let (left, right) = ($0.flags & Occurrence.isOld, $1.flags & Occurrence.isOld)
      return left != right ? left > right : $0.column < $1.column
    }
    var order = (0..<UInt32(termCount)).map { $0 }
    order.sort { left, right in
      let (first, second) = (terms[Int(left)], terms[Int(right)])
      if first.prefix != second.prefix { return first.prefix < second.prefix }
      return compareBytes(
        UnsafeRawBufferPointer(start: bytes + first.offset, count: Int(first.length)),
        UnsafeRawBufferPointer(start: bytes + second.offset, count: Int(second.length))) < 0
    }
    // Reserve a place for each token. The tokens of a term are side by side.
    let places = UnsafeMutablePointer<Int>.allocate(capacity: termCount + 1)
    let occurrences = UnsafeMutablePointer<Occurrence>.allocate(capacity: max(1, state.pointee.tokenCount))
    defer {
      places.deallocate()
      occurrences.deallocate()
    }
    var place = 0
    for number in order {
      places[Int(number)] = place
      place += terms[Int(number)].tokens
    }
    let tokens = state.pointee.tokens
    for run in runs {
      for index in run.start..<run.end {
        let term = Int(tokens[index].term)
        occurrences[places[term]] = Occurrence(
          document: run.document, position: tokens[index].position, column: run.column, flags: run.flags)
        places[term] &+= 1
      }
    }
    for number in order {
      let term = terms[Int(number)]
      try body(
        UnsafeRawBufferPointer(start: bytes + term.offset, count: Int(term.length)),
        UnsafeBufferPointer(start: occurrences + (places[Int(number)] - term.tokens), count: term.tokens))
    }
  }
}
