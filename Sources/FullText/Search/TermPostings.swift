import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The postings of one term. Blocks are found by their keys and decoded when one of their documents is looked at; what
/// lies between is skipped.
final class TermPostings: PostingSource {
  private struct State {
    var documents: UnsafeMutablePointer<UInt32>
    var frequencies: UnsafeMutablePointer<UInt32>
    /// Where the details of entries begin, in an index of several columns.
    var details: UnsafeMutablePointer<UInt32>
    var capacity: Int
    var count = 0
    var index = 0
    /// The postings whose positions have been skipped, and what comes behind them.
    var positionsIndex = 0
    var positions: UnsafePointer<UInt8>
  }

  private let reader: InvertedIndexReader
  private let entry: TermEntry
  private let columns: Int
  private let state: UnsafeMutablePointer<State>
  @exclusivity(unchecked) private var bytes = GrowingBytes(capacity: 2_048)
  private var blocks: (any Cursor)?
  private var positionsEnd: UnsafePointer<UInt8>
  private var entriesStart: UnsafePointer<UInt8>
  private var entriesEnd: UnsafePointer<UInt8>
  private var header: PostingBlockHeader?
  private var isDecoded = false
  private var isBegun = false
  /// No document above this is in the block at hand.
  private(set) var blockUpper: UInt32 = 0
  /// Bounds of the block at hand: the highest frequency, and the fewest tokens of a document.
  private(set) var blockMaximum: UInt32 = .max
  private(set) var blockShortest: UInt32 = 0

  init(_ entry: TermEntry, _ reader: InvertedIndexReader) {
    self.reader = reader
    self.entry = entry
    columns = reader.state.columns
    let nothing = UnsafePointer(bytes.start)
    positionsEnd = nothing
    entriesStart = nothing
    entriesEnd = nothing
    state = .allocate(capacity: 1)
    state.initialize(
      to: State(
        documents: .allocate(capacity: 64), frequencies: .allocate(capacity: 64),
        details: .allocate(capacity: 64), capacity: 64, positions: nothing))
    if entry.list == nil {
      bytes.append(entry.inline)
      blockUpper = InvertedIndexFormat.lastDocument
    }
  }

  deinit {
    state.pointee.documents.deallocate()
    state.pointee.frequencies.deallocate()
    state.pointee.details.deallocate()
    state.deallocate()
  }

  /// How many documents have the term.
  var documentCount: Int { Int(entry.documents) }
  override var estimate: Int { Int(entry.documents) }
  override var frequency: UInt32 { state.pointee.frequencies[state.pointee.index] }

  // MARK: Blocks

  /// Goes to the block in which a document would be, without looking into it. False when there is none.
  func seekBlock(_ target: UInt32) throws -> Bool {
    if isBegun, target <= blockUpper { return true }
    guard let list = entry.list else {
      if isBegun { return false }
      isBegun = true
      blockUpper = InvertedIndexFormat.lastDocument
      return true
    }
    var found: Entry?
    if let blocks {
      // Mostly it is the next one.
      found = try blocks.next()
      if let entry = found, try InvertedIndexFormat.number(ofKey: entry.key) & 0xFFFF_FFFF < UInt64(target) {
        found = try blocks.seek(InvertedIndexFormat.blockKey(list, target))
      }
    } else {
      let cursor = try reader.transaction.cursor(
        in: reader.keyspaces.blocks, InvertedIndexFormat.range(ofList: list))
      blocks = cursor
      found = target == 0 ? try cursor.first() : try cursor.seek(InvertedIndexFormat.blockKey(list, target))
    }
    isBegun = true
    isDecoded = false
    guard let found else {
      blockUpper = PostingSource.end
      header = nil
      state.pointee.count = 0
      isDecoded = true
      return false
    }
    blockUpper = UInt32(truncatingIfNeeded: try InvertedIndexFormat.number(ofKey: found.key))
    bytes.removeAll()
    bytes.append(found.value)
    let header = try PostingBlockHeader(bytes.bytes)
    self.header = header
    blockMaximum = header.maximumFrequency
    blockShortest = header.shortest
    return true
  }

  private func decode() throws {
    isDecoded = true
    let count: Int
    if let header {
      count = header.count
      var scanner = ByteScanner(header.entries)
      try decode(count, &scanner)
      guard scanner.isAtEnd else { throw InvertedIndexFormat.damaged }
      let start = ByteScanner(header.positions)
      state.pointee.positions = start.next
      positionsEnd = start.end
    } else {
      count = Int(entry.documents)
      var scanner = ByteScanner(bytes.bytes)
      try decode(count, &scanner)
      state.pointee.positions = scanner.next
      positionsEnd = scanner.end
    }
    state.pointee.count = count
    state.pointee.index = 0
    state.pointee.positionsIndex = 0
  }

  private func decode(_ count: Int, _ scanner: inout ByteScanner) throws {
    guard count <= scanner.count else { throw InvertedIndexFormat.damaged }
    if count > state.pointee.capacity { grow(count) }
    entriesStart = scanner.next
    entriesEnd = scanner.end
    let documents = state.pointee.documents
    let frequencies = state.pointee.frequencies
    var document: UInt32 = 0
    var floor: UInt32 = 0
    let columns = columns
    let details = state.pointee.details
    for index in 0..<count {
      let step = try scanner.varint32()
      let (number, overflow) = document.addingReportingOverflow(step >> 1)
      guard !overflow, number >= floor else { throw InvertedIndexFormat.damaged }
      document = number
      floor = number &+ 1
      documents[index] = number
      if columns == 1 {
        frequencies[index] = step & 1 == 1 ? 1 : try scanner.varint32()
        if _slowPath(frequencies[index] == 0) { throw InvertedIndexFormat.damaged }
      } else {
        details[index] = UInt32(truncatingIfNeeded: (scanner.next - entriesStart) << 1) | (step & 1)
        frequencies[index] = try TermPostings.columnsFrequency(&scanner, step, columns)
      }
    }
    guard document < InvertedIndexFormat.lastDocument else { throw InvertedIndexFormat.damaged }
  }

  @inline(__always)
  private static func columnsFrequency(
    _ scanner: inout ByteScanner, _ step: UInt32, _ columns: Int
  ) throws -> UInt32 {
    if step & 1 == 1 {
      guard try scanner.varint32() < UInt32(columns) else { throw InvertedIndexFormat.damaged }
      return 1
    }
    let count = try scanner.varint32()
    guard count >= 1, count <= UInt32(columns) else { throw InvertedIndexFormat.damaged }
    var sum: UInt32 = 0
    for _ in 0..<count {
      let column = try scanner.varint32()
      let (total, overflow) = sum.addingReportingOverflow(try scanner.varint32())
      guard column < UInt32(columns), !overflow else { throw InvertedIndexFormat.damaged }
      sum = total
    }
    guard sum > 0 else { throw InvertedIndexFormat.damaged }
    return sum
  }

  private func grow(_ count: Int) {
    state.pointee.documents.deallocate()
    state.pointee.frequencies.deallocate()
    state.pointee.details.deallocate()
    let capacity = max(count, state.pointee.capacity * 2)
    state.pointee.documents = .allocate(capacity: capacity)
    state.pointee.frequencies = .allocate(capacity: capacity)
    state.pointee.details = .allocate(capacity: capacity)
    state.pointee.capacity = capacity
  }

  // MARK: Documents

  override func next() throws {
    let index = state.pointee.index &+ 1
    if _fastPath(index < state.pointee.count) {
      state.pointee.index = index
      document = state.pointee.documents[index]
      return
    }
    try advance(to: document &+ 1)
  }

  override func advance(to target: UInt32) throws {
    if isBegun, isDecoded, document >= target { return }
    var target = target
    while true {
      guard try seekBlock(target) else {
        document = PostingSource.end
        return
      }
      if !isDecoded { try decode() }
      let documents = state.pointee.documents
      let count = state.pointee.count
      var index = state.pointee.index
      if index < count, documents[index] < target {
        // Steps that double, then halves.
        var step = 1
        var low = index
        while index < count, documents[index] < target {
          low = index
          index &+= step
          step &*= 2
        }
        var high = min(index, count)
        low &+= 1
        while low < high {
          let middle = (low &+ high) / 2
          if documents[middle] < target { low = middle &+ 1 } else { high = middle }
        }
        index = low
      }
      if index < count {
        state.pointee.index = index
        document = documents[index]
        return
      }
      state.pointee.index = count
      guard entry.list != nil, blockUpper < InvertedIndexFormat.lastDocument else {
        document = PostingSource.end
        return
      }
      target = max(target, blockUpper &+ 1)
    }
  }

  // MARK: Positions

  override func forEachColumn(_ body: (_ column: Int, _ frequency: UInt32) -> Void) throws {
    guard columns > 1 else { return body(0, frequency) }
    let place = state.pointee.details[state.pointee.index]
    var scanner = ByteScanner(
      UnsafeRawBufferPointer(start: entriesStart, count: entriesEnd - entriesStart))
    scanner.next += Int(place >> 1)
    if place & 1 == 1 { return body(Int(try scanner.varint32()), 1) }
    for _ in 0..<(try scanner.varint32()) {
      let column = Int(try scanner.varint32())
      body(column, try scanner.varint32())
    }
  }

  override func appendPositions(_ column: Int?, to positions: PositionList) throws {
    var scanner = ByteScanner(
      UnsafeRawBufferPointer(
        start: state.pointee.positions, count: positionsEnd - state.pointee.positions))
    let index = state.pointee.index
    let frequencies = state.pointee.frequencies
    var before = state.pointee.positionsIndex
    var skipped = 0
    while before < index {
      skipped &+= Int(frequencies[before])
      before &+= 1
    }
    if skipped > 0 { try scanner.skipVarints(skipped) }
    state.pointee.positionsIndex = before
    state.pointee.positions = scanner.next
    if columns == 1 {
      return try TermPostings.append(frequencies[index], 0, &scanner, to: positions)
    }
    let place = state.pointee.details[index]
    var details = ByteScanner(
      UnsafeRawBufferPointer(start: entriesStart, count: entriesEnd - entriesStart))
    details.next += Int(place >> 1)
    if place & 1 == 1 {
      let own = Int(try details.varint32())
      if column == nil || column == own { try TermPostings.append(1, own, &scanner, to: positions) }
      return
    }
    for _ in 0..<(try details.varint32()) {
      let own = Int(try details.varint32())
      let count = try details.varint32()
      if column == nil || column == own {
        try TermPostings.append(count, own, &scanner, to: positions)
      } else {
        try scanner.skipVarints(Int(count))
      }
    }
  }

  @inline(__always)
  private static func append(
    _ count: UInt32, _ column: Int, _ scanner: inout ByteScanner, to positions: PositionList
  ) throws {
    let count = Int(count)
    guard count <= scanner.count else { throw InvertedIndexFormat.damaged }
    let target = positions.extend(by: count)
    var position = UInt64(column) << 32
    var index = 0
    while index < count {
      position &+= UInt64(try scanner.varint32())
      target[index] = position
      index &+= 1
    }
  }
}
