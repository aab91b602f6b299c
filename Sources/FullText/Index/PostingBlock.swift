#if canImport(Glibc)
  import Glibc
#endif

// Postings of one term: which documents have it, how often in which columns, and where.
//
//   block     := count:varint  maximum:varint  shortest:varint  entriesLength:varint  list
//   list      := entry{count}  positions{count}
//   entry     := step:varint [details]         step = (document - the one before) * 2 + (0 with details, 1 without)
//   details   := of an index of one column:    frequency:varint
//              | of one of several, step odd:  column:varint                  (then details are there, frequency 1)
//              | of one of several, step even: columns:varint (column:varint frequency:varint){columns}
//   positions := (first:varint (position - the one before):varint{frequency - 1}){columns}
//
//   maximum   no posting has a higher frequency, all columns together
//   shortest  no document of the block has fewer tokens; of a length the three highest bits are kept, so that a text
//             that gets a little shorter doesn't change the blocks of all of its words
//
// The first document of a list is a step from 0 in a term page, and in a block from the number after that of the block
// before it... which isn't known when a block is read alone: there too it is a step from 0.
//
// Words need the entries only; positions lie apart, behind them.

/// A posting in its stored form.
struct StoredPosting {
  var document: UInt32
  /// Step's lowest bit.
  var isSimple: Bool
  /// All columns together.
  var frequency: UInt32
  var details: UnsafeRawBufferPointer
  var positions: UnsafeRawBufferPointer
}

/// Goes through the postings of a list one after the other, whole: for writers and checks.
struct StoredPostings {
  private var entries: ByteScanner
  private var positions: ByteScanner
  private var left: Int
  private var document: UInt32 = 0
  private var isFirst = true
  private let columns: Int

  /// The postings of a list that has nothing else behind it.
  init(list: UnsafeRawBufferPointer, count: Int, columns: Int) throws {
    self.columns = columns
    left = count
    entries = ByteScanner(list)
    var ahead = entries
    for _ in 0..<count { _ = try StoredPostings.entry(&ahead, columns) }
    positions = ahead
    let length = ahead.next - entries.next
    entries = ByteScanner(UnsafeRawBufferPointer(rebasing: list[..<length]))
  }

  init(block header: PostingBlockHeader, columns: Int) {
    self.columns = columns
    left = header.count
    entries = ByteScanner(header.entries)
    positions = ByteScanner(header.positions)
  }

  @inline(__always)
  private static func entry(_ scanner: inout ByteScanner, _ columns: Int) throws
    -> (step: UInt32, frequency: UInt32)
  {
    let step = try scanner.varint32()
    if columns == 1 { return (step, step & 1 == 1 ? 1 : try scanner.varint32()) }
    if step & 1 == 1 {
      guard try scanner.varint32() < UInt32(columns) else { throw InvertedIndexFormat.damaged }
      return (step, 1)
    }
    var frequency: UInt32 = 0
    let count = try scanner.varint32()
    guard count >= 1, count <= UInt32(columns) else { throw InvertedIndexFormat.damaged }
    for _ in 0..<count {
      guard try scanner.varint32() < UInt32(columns) else { throw InvertedIndexFormat.damaged }
      let (sum, overflow) = frequency.addingReportingOverflow(try scanner.varint32())
      if overflow { throw InvertedIndexFormat.damaged }
      frequency = sum
    }
    return (step, frequency)
  }

  /// The next posting; nil behind the last, when nothing may be left.
  mutating func next() throws -> StoredPosting? {
    guard left > 0 else {
      guard entries.isAtEnd, positions.isAtEnd else { throw InvertedIndexFormat.damaged }
      return nil
    }
    left -= 1
    var start = entries
    let (step, frequency) = try StoredPostings.entry(&entries, columns)
    _ = try start.varint32()
    let (number, overflow) = document.addingReportingOverflow(step >> 1)
    guard !overflow, isFirst || step > 1, frequency > 0, number < InvertedIndexFormat.lastDocument else {
      throw InvertedIndexFormat.damaged
    }
    document = number
    isFirst = false
    let from = positions.next
    try positions.skipVarints(Int(frequency))
    return StoredPosting(
      document: document, isSimple: step & 1 == 1, frequency: frequency,
      details: UnsafeRawBufferPointer(start: start.next, count: entries.next - start.next),
      positions: UnsafeRawBufferPointer(start: from, count: positions.next - from))
  }
}

/// What stands before a block's list.
struct PostingBlockHeader {
  var count: Int
  var maximumFrequency: UInt32
  var shortest: UInt32
  var entries: UnsafeRawBufferPointer
  var positions: UnsafeRawBufferPointer

  /// What `shortest` is of a document of a length.
  @inline(__always)
  static func lengthBound(_ length: UInt32) -> UInt32 {
    let shift = UInt32(max(0, 29 - length.leadingZeroBitCount))
    return (length >> shift) << shift
  }

  @inline(__always)
  init(_ block: UnsafeRawBufferPointer) throws {
    var scanner = ByteScanner(block)
    count = try scanner.length()
    maximumFrequency = try scanner.varint32()
    shortest = try scanner.varint32()
    entries = try scanner.bytes(try scanner.length())
    positions = scanner.rest
    // Each posting has a byte at least: a wrong count can't ask for much memory.
    guard count > 0, count <= entries.count, count <= positions.count else {
      throw InvertedIndexFormat.damaged
    }
  }
}

/// Where a term occurs in one document: the tokens of one column after those of another.
struct Occurrence: BitwiseCopyable {
  var document: UInt32
  var position: UInt32
  var column: UInt16
  var flags: UInt16

  /// The text that was: it is taken out.
  static let isOld: UInt16 = 1
  /// The document has become shorter: its postings are written even when they are the same, for the blocks' bounds.
  static let isForced: UInt16 = 2

  var isOld: Bool { flags & Occurrence.isOld != 0 }
}

/// Makes a list of postings, which come by ascending number.
struct PostingEncoder: ~Copyable {
  private var entries = GrowingBytes(capacity: 2_048)
  private var positions = GrowingBytes(capacity: 2_048)
  private(set) var count = 0
  private(set) var lastDocument: UInt32 = 0
  private var maximumFrequency: UInt32 = 0
  private var shortest = UInt32.max
  private let columns: Int
  /// What the encoder was before the last posting.
  private var before = (entries: 0, positions: 0, last: UInt32(0), maximum: UInt32(0), shortest: UInt32.max)

  init(columns: Int) { self.columns = columns }

  /// Bytes of the list.
  var size: Int { entries.count &+ positions.count }

  mutating func removeAll() {
    entries.removeAll()
    positions.removeAll()
    count = 0
    lastDocument = 0
    maximumFrequency = 0
    shortest = .max
  }

  /// Takes the last posting back. Not twice in a row.
  mutating func removeLast() {
    entries.truncate(to: before.entries)
    positions.truncate(to: before.positions)
    lastDocument = before.last
    maximumFrequency = before.maximum
    shortest = before.shortest
    count -= 1
  }

  @inline(__always)
  private mutating func begin(_ document: UInt32, isSimple: Bool, _ frequency: UInt32, _ length: UInt32) {
    before = (entries.count, positions.count, lastDocument, maximumFrequency, shortest)
    entries.append(varint: UInt64(document &- lastDocument) << 1 | (isSimple ? 1 : 0))
    lastDocument = document
    count &+= 1
    if frequency > maximumFrequency { maximumFrequency = frequency }
    let bound = PostingBlockHeader.lengthBound(length)
    if bound < shortest { shortest = bound }
  }

  /// Adds a posting as it is stored. `length` is a lower bound of its document's.
  mutating func append(_ posting: StoredPosting, length: UInt32) {
    begin(posting.document, isSimple: posting.isSimple, posting.frequency, length)
    entries.append(posting.details)
    positions.append(posting.positions)
  }

  /// Adds a document, of which there is an occurrence at least.
  mutating func append(_ occurrences: UnsafeBufferPointer<Occurrence>, length: UInt32) {
    let document = occurrences[0].document
    let frequency = UInt32(truncatingIfNeeded: occurrences.count)
    begin(document, isSimple: frequency == 1, frequency, length)
    if frequency == 1 {
      if columns > 1 { entries.append(varint: UInt32(occurrences[0].column)) }
      positions.append(varint: occurrences[0].position)
      return
    }
    if columns == 1 {
      entries.append(varint: frequency)
      appendPositions(occurrences, 0, occurrences.count)
      return
    }
    var runs: UInt64 = 1
    for index in 1..<occurrences.count where occurrences[index].column != occurrences[index - 1].column {
      runs += 1
    }
    entries.append(varint: runs)
    var start = 0
    while start < occurrences.count {
      let column = occurrences[start].column
      var end = start + 1
      while end < occurrences.count, occurrences[end].column == column { end += 1 }
      entries.append(varint: UInt32(column))
      entries.append(varint: UInt64(end - start))
      appendPositions(occurrences, start, end)
      start = end
    }
  }

  @inline(__always)
  private mutating func appendPositions(
    _ occurrences: UnsafeBufferPointer<Occurrence>, _ start: Int, _ end: Int
  ) {
    var last: UInt32 = 0
    for index in start..<end {
      positions.append(varint: occurrences[index].position &- last)
      last = occurrences[index].position
    }
  }

  /// Appends the list alone, as term pages have it.
  func write(listTo target: inout GrowingBytes) {
    target.append(entries.bytes)
    target.append(positions.bytes)
  }

  /// Appends a block.
  func write(blockTo target: inout GrowingBytes) {
    target.append(varint: UInt64(count))
    target.append(varint: maximumFrequency)
    target.append(varint: shortest)
    target.append(varint: UInt64(entries.count))
    target.append(entries.bytes)
    target.append(positions.bytes)
  }
}
