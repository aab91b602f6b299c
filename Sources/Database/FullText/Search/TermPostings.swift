import Storage

/// The postings of one term. Blocks are found by their keys. A block is decoded only when one of its
/// documents is needed.
final class TermPostings: PostingSource {
  // The state is behind a pointer to avoid exclusivity checks at run time.
  struct State {
    /// The documents of the current block, then `PostingSource.end`.
    var documents: UnsafeMutablePointer<UInt32>
    var frequencies: UnsafeMutablePointer<UInt32>
    /// For a document with the term in one column: the column * 2 + 1. For other documents: the offset of the
    /// number of columns in the entries, * 2.
    var details: UnsafeMutablePointer<UInt32>
    var capacity: Int
    var count = 0
    var index = 0
    /// The number of postings whose positions have been skipped. `positions` is after these positions.
    var positionsIndex = 0
    var positions: UnsafePointer<UInt8>
    var positionsEnd: UnsafePointer<UInt8>
    var entries: UnsafeRawBufferPointer
    /// Whether `documents` has the block that the last `seekBlock` moved to.
    var isDecoded = false
    var isBegun = false
    /// The highest document number that belongs in the current block.
    var blockUpper: UInt32 = 0
    var blockMaximum: UInt32 = .max
    var blockShortest: UInt32 = 0
  }

  private let reader: InvertedIndexReader
  /// The number of documents that have the term.
  let documentCount: Int
  /// The number of the list of blocks; nil if `page` has all postings.
  private let list: UInt32?
  let columns: Int
  let state: UnsafeMutablePointer<State>
  /// The current block, or the whole list if the term has no blocks.
  @exclusivity(unchecked) private var page = PageCopy()
  @exclusivity(unchecked) private var blocks: (any Cursor)?
  /// The header of the current block. It points into `page`.
  @exclusivity(unchecked) private var header: PostingBlockHeader?

  /// The approximate memory of an object without its page, in bytes: the object, its state and its three
  /// arrays.
  static let leastBytes = 192 + MemoryLayout<State>.stride + 3 * 64 * MemoryLayout<UInt32>.stride

  init(_ entry: TermEntry, _ reader: InvertedIndexReader) {
    self.reader = reader
    documentCount = Int(entry.documents)
    list = entry.list
    columns = reader.state.columns
    page.take(entry.inline)
    state = .allocate(capacity: 1)
    let nowhere = ByteScanner(page.bytes)
    state.initialize(
      to: State(
        documents: .allocate(capacity: 64), frequencies: .allocate(capacity: 64),
        details: .allocate(capacity: 64), capacity: 64, positions: nowhere.next, positionsEnd: nowhere.next,
        entries: UnsafeRawBufferPointer(start: nil, count: 0)))
    state.pointee.documents[0] = PostingSource.end
    if list == nil { state.pointee.blockUpper = InvertedIndexFormat.lastDocument }
  }

  deinit {
    state.pointee.documents.deallocate()
    state.pointee.frequencies.deallocate()
    state.pointee.details.deallocate()
    state.deallocate()
  }

  override var estimate: Int { documentCount }
  override var frequency: UInt32 { state.pointee.frequencies[state.pointee.index] }
  /// The highest document number that belongs in the current block.
  var blockUpper: UInt32 { state.pointee.blockUpper }
  /// The highest frequency in the current block. `blockShortest` is a lower bound of its documents' lengths
  /// in tokens.
  var blockMaximum: UInt32 { state.pointee.blockMaximum }
  var blockShortest: UInt32 { state.pointee.blockShortest }

  // MARK: Blocks

  /// Moves to the block in which a document would be, without decoding it. Returns false if there is no such
  /// block.
  func seekBlock(_ target: UInt32) throws -> Bool {
    let state = state
    if state.pointee.isBegun, target <= state.pointee.blockUpper { return true }
    guard let list else {
      if state.pointee.isBegun { return false }
      state.pointee.isBegun = true
      return true
    }
    try reader.check()
    state.pointee.isBegun = true
    state.pointee.isDecoded = false
    state.pointee.count = 0
    state.pointee.index = 0
    var isFound: Bool
    if let blocks {
      // It is usually the next block.
      isFound = try blocks.next()
      if isFound, try !take(blocks, from: target) {
        isFound = try blocks.seek(InvertedIndexFormat.blockKey(list, target))
        if isFound { _ = try take(blocks, from: 0) }
      }
    } else {
      let cursor = try reader.transaction.cursor(
        in: reader.keyspaces.blocks, InvertedIndexFormat.range(ofList: list))
      blocks = cursor
      isFound = target == 0 ? try cursor.first() : try cursor.seek(InvertedIndexFormat.blockKey(list, target))
      if isFound { _ = try take(cursor, from: 0) }
    }
    guard isFound else {
      state.pointee.blockUpper = PostingSource.end
      header = nil
      state.pointee.documents[0] = PostingSource.end
      state.pointee.isDecoded = true
      return false
    }
    let header = try PostingBlockHeader(page.bytes)
    self.header = header
    state.pointee.blockMaximum = header.maximumFrequency
    state.pointee.blockShortest = header.shortest
    return true
  }

  /// Copies the block at the cursor. Returns false if no document from `target` on belongs in the block.
  private func take(_ blocks: any Cursor, from target: UInt32) throws -> Bool {
    var isTaken = false
    try blocks.lendEntry { key, value in
      let upper = UInt32(truncatingIfNeeded: try InvertedIndexFormat.number(ofKey: key))
      guard upper >= target else { return }
      state.pointee.blockUpper = upper
      // The header points into the page, which is replaced.
      header = nil
      page.take(value)
      isTaken = true
    }
    return isTaken
  }

  private func decode() throws {
    let state = state
    let count: Int
    if let header {
      count = header.count
      guard try decode(count, header.entries) == header.entries.count else {
        throw InvertedIndexFormat.damaged
      }
      setPositions(header.positions)
    } else {
      count = documentCount
      let length = try decode(count, page.bytes)
      setPositions(UnsafeRawBufferPointer(rebasing: page.bytes[length...]))
    }
    state.pointee.documents[count] = PostingSource.end
    state.pointee.count = count
    state.pointee.index = 0
    state.pointee.positionsIndex = 0
    state.pointee.isDecoded = true
  }

  private func setPositions(_ bytes: UnsafeRawBufferPointer) {
    let scanner = ByteScanner(bytes)
    state.pointee.positions = scanner.next
    state.pointee.positionsEnd = scanner.end
  }

  /// Decodes entries. Returns the number of bytes that they take.
  private func decode(_ count: Int, _ bytes: UnsafeRawBufferPointer) throws -> Int {
    guard count <= bytes.count else { throw InvertedIndexFormat.damaged }
    if count >= state.pointee.capacity { grow(count + 1) }
    state.pointee.entries = bytes
    let documents = state.pointee.documents
    let frequencies = state.pointee.frequencies
    let details = state.pointee.details
    let columns = UInt32(truncatingIfNeeded: columns)
    var scanner = ByteScanner(bytes)
    let start = scanner.next
    var document: UInt32 = 0
    var floor: UInt32 = 0
    for index in 0..<count {
      var step: UInt32
      var frequency: UInt32
      var detail: UInt32
      if columns > 1, scanner.count >= 4 {
        // The two most common forms, without a branch between them: one column with a frequency of 1, or with
        // a frequency.
        let word = UInt32(
          littleEndian: UnsafeRawPointer(scanner.next).loadUnaligned(as: UInt32.self))
        let isSimple = word & 1 == 1
        let mask: UInt32 = isSimple ? 0x0000_8080 : 0x8080_FF80
        let wanted: UInt32 = isSimple ? 0 : 0x0100
        let column = (isSimple ? word >> 8 : word >> 16) & 0xFF
        frequency = isSimple ? 1 : word >> 24
        if _fastPath(word & mask == wanted && column < columns && frequency > 0) {
          step = word & 0xFF
          detail = column << 1 | 1
          scanner.next += isSimple ? 2 : 4
        } else {
          (step, frequency, detail) = try TermPostings.entry(&scanner, columns, start)
        }
      } else {
        (step, frequency, detail) = try TermPostings.entry(&scanner, columns, start)
      }
      let (number, overflow) = document.addingReportingOverflow(step >> 1)
      guard !overflow, number >= floor else { throw InvertedIndexFormat.damaged }
      document = number
      floor = number &+ 1
      documents[index] = number
      frequencies[index] = frequency
      details[index] = detail
    }
    guard document < InvertedIndexFormat.lastDocument else { throw InvertedIndexFormat.damaged }
    return scanner.next - start
  }

  private static func entry(
    _ scanner: inout ByteScanner, _ columns: UInt32, _ start: UnsafePointer<UInt8>
  ) throws -> (step: UInt32, frequency: UInt32, detail: UInt32) {
    let step = try scanner.varint32()
    if columns == 1 {
      let frequency = step & 1 == 1 ? 1 : try scanner.varint32()
      guard frequency > 0 else { throw InvertedIndexFormat.damaged }
      return (step, frequency, 1)
    }
    if step & 1 == 1 {
      let column = try scanner.varint32()
      guard column < columns else { throw InvertedIndexFormat.damaged }
      return (step, 1, column << 1 | 1)
    }
    let place = UInt32(truncatingIfNeeded: (scanner.next - start) << 1)
    let count = try scanner.varint32()
    guard count >= 1, count <= columns else { throw InvertedIndexFormat.damaged }
    var sum: UInt32 = 0
    var floor: UInt32 = 0
    for _ in 0..<count {
      let column = try scanner.varint32()
      let frequency = try scanner.varint32()
      let (total, overflow) = sum.addingReportingOverflow(frequency)
      guard column >= floor, column < columns, frequency > 0, !overflow else {
        throw InvertedIndexFormat.damaged
      }
      sum = total
      floor = column + 1
    }
    return (step, sum, count == 1 ? (floor - 1) << 1 | 1 : place)
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
    let state = state
    let index = state.pointee.index &+ 1
    if _fastPath(index < state.pointee.count) {
      state.pointee.index = index
      document = state.pointee.documents[index]
      return
    }
    try advance(to: document &+ 1)
  }

  override func advance(to target: UInt32) throws { _ = try moved(to: target) }

  /// Like `advance`, but returns the new current document.
  @inline(__always)
  func moved(to target: UInt32) throws -> UInt32 {
    let state = state
    if _fastPath(state.pointee.isDecoded) {
      if document >= target { return document }
      // It is usually one of the next documents in the block. The end mark after the last document is above
      // any target.
      let documents = state.pointee.documents
      var index = state.pointee.index
      var left = 12
      while left > 0, documents[index] < target {
        index &+= 1
        left &-= 1
      }
      let found = documents[index]
      if _fastPath(left > 0 && index < state.pointee.count) {
        state.pointee.index = index
        document = found
        return found
      }
      state.pointee.index = index
    }
    try search(target)
    return document
  }

  @inline(never)
  private func search(_ wanted: UInt32) throws {
    let state = state
    var target = wanted
    while true {
      guard try seekBlock(target) else {
        document = PostingSource.end
        return
      }
      if !state.pointee.isDecoded { try decode() }
      let documents = state.pointee.documents
      let count = state.pointee.count
      var index = state.pointee.index
      if index < count, documents[index] < target {
        // Gallop forward, then search by halves.
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
      state.pointee.index = index
      if index < count {
        document = documents[index]
        return
      }
      guard list != nil, state.pointee.blockUpper < InvertedIndexFormat.lastDocument else {
        document = PostingSource.end
        return
      }
      target = max(target, state.pointee.blockUpper &+ 1)
    }
  }

  // MARK: Columns and positions

  override func forEachColumn(_ body: (_ column: Int, _ frequency: UInt32) -> Void) throws {
    let detail = state.pointee.details[state.pointee.index]
    if detail & 1 == 1 { return body(Int(detail >> 1), frequency) }
    var scanner = ByteScanner(state.pointee.entries)
    scanner.next += Int(detail >> 1)
    for _ in 0..<(try scanner.varint32()) {
      let column = Int(try scanner.varint32())
      body(column, try scanner.varint32())
    }
  }

  /// Returns the positions of the term in the current document, column by column.
  @inline(__always)
  func runs() throws -> PositionRuns {
    let state = state
    var scanner = ByteScanner(
      UnsafeRawBufferPointer(
        start: state.pointee.positions, count: state.pointee.positionsEnd - state.pointee.positions))
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
    let detail = state.pointee.details[index]
    if detail & 1 == 1 {
      return PositionRuns(
        column: Int(detail >> 1), count: Int(frequencies[index]), positions: scanner)
    }
    var details = ByteScanner(state.pointee.entries)
    details.next += Int(detail >> 1)
    return try PositionRuns(details, positions: scanner)
  }

  override func appendPositions(_ column: Int?, to positions: PositionList) throws {
    var runs = try runs()
    repeat {
      if column == nil || column == runs.column { try runs.append(to: positions) }
    } while try runs.next()
  }
}
