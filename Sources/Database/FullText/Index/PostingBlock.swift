import Bytes

#if canImport(Glibc)
  import Glibc
#endif

// The postings of one term: the documents, the frequencies per column, and the positions.
//
//   block     := count:varint  maximum:varint  shortest:varint  entriesLength:varint  list
//   list      := entry{count}  positions{count}
//   entry     := step:varint [details]         step = (document - the one before) * 2 + (0 with details, 1 without)
//   details   := of an index of one column:    frequency:varint
//              | of one of several, step odd:  column:varint                  (then details are there, frequency 1)
//              | of one of several, step even: columns:varint (column:varint frequency:varint){columns}
//   positions := (first:varint (position - the one before):varint{frequency - 1}){columns}
//
//   maximum   the highest frequency of a posting, all columns together
//   shortest  a lower bound of the documents' lengths. Only the three highest bits of a length are kept, so
//             that a text that becomes a little shorter doesn't change the blocks of all its words
//
// The first document of a list or of a block is a step from 0, so that a block can be read alone.
//
// Single words need only the entries. Positions follow the entries.

/// A posting in its stored form.
struct StoredPosting {
  var document: UInt32
  /// The lowest bit of the step.
  var isSimple: Bool
  /// The number of occurrences in all columns together.
  var frequency: UInt32
  var details: UnsafeRawBufferPointer
  var positions: UnsafeRawBufferPointer
}

/// Reads the postings of a list in order, with all details and positions. For writers and checks.
struct StoredPostings {
  private var entries: ByteScanner
  private var positions: ByteScanner
  private var left: Int
  private var document: UInt32 = 0
  private var isFirst = true
  private let columns: Int

  /// Reads a list that takes all of `list`.
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

  /// Returns the next posting, or nil after the last one. Throws `damaged` if bytes are left after the last
  /// posting.
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

/// The header of a block, and the two parts of its list.
struct PostingBlockHeader {
  var count: Int
  var maximumFrequency: UInt32
  var shortest: UInt32
  var entries: UnsafeRawBufferPointer
  var positions: UnsafeRawBufferPointer

  /// Returns the lower bound that `shortest` keeps of a length: its three highest bits.
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
    // Each posting takes at least one byte. This bounds the memory that a wrong count can ask for.
    guard count > 0, count <= entries.count, count <= positions.count else {
      throw InvertedIndexFormat.damaged
    }
  }
}

/// An occurrence of a term in a document.
struct Occurrence: BitwiseCopyable {
  var document: UInt32
  var position: UInt32
  var column: UInt16
  var flags: UInt16

  /// The occurrence is in the old text and is removed.
  static let isOld: UInt16 = 1
  /// The document has become shorter. Its postings are written even if they are the same, for the bounds of
  /// the blocks.
  static let isForced: UInt16 = 2

  var isOld: Bool { flags & Occurrence.isOld != 0 }
}

/// Encodes a list of postings. Document numbers must ascend.
struct PostingEncoder: ~Copyable {
  private var entries = ByteBuffer(capacity: 2_048)
  private var positions = ByteBuffer(capacity: 2_048)
  private(set) var count = 0
  private(set) var lastDocument: UInt32 = 0
  private var maximumFrequency: UInt32 = 0
  private var shortest = UInt32.max
  private let columns: Int
  /// The state before the last posting.
  private var before = (entries: 0, positions: 0, last: UInt32(0), maximum: UInt32(0), shortest: UInt32.max)

  init(columns: Int) { self.columns = columns }

  /// The size of the list in bytes.
  var size: Int { entries.count &+ positions.count }

  mutating func removeAll() {
    entries.removeAll()
    positions.removeAll()
    count = 0
    lastDocument = 0
    maximumFrequency = 0
    shortest = .max
  }

  /// Removes the last posting. It can't be called twice in a row.
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

  /// Adds a stored posting. `length` is a lower bound of the document's length.
  mutating func append(_ posting: StoredPosting, length: UInt32) {
    begin(posting.document, isSimple: posting.isSimple, posting.frequency, length)
    entries.append(posting.details)
    positions.append(posting.positions)
  }

  /// Adds a document that has at least one occurrence.
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

  /// Appends the list without a header, as it is stored in a term page.
  func write(listTo target: inout ByteBuffer) {
    target.append(entries.bytes)
    target.append(positions.bytes)
  }

  /// Appends the block: the header and the list.
  func write(blockTo target: inout ByteBuffer) {
    target.append(varint: UInt64(count))
    target.append(varint: maximumFrequency)
    target.append(varint: shortest)
    target.append(varint: UInt64(entries.count))
    target.append(entries.bytes)
    target.append(positions.bytes)
  }
}
