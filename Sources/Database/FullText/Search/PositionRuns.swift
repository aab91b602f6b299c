/// The positions of a term in one document, read from the stored bytes. There is a run of positions for each
/// column that has the term.
struct PositionRuns {
  /// The column of the current run.
  private(set) var column: Int
  /// The number of positions in the current run, at least 1.
  private(set) var count: Int
  /// The columns after the current one, and their number.
  private var details: ByteScanner
  private var left: Int
  /// The positions of the current run and of the runs after it.
  private(set) var positions: ByteScanner

  /// Creates the only run of a document.
  @inline(__always)
  init(column: Int, count: Int, positions: ByteScanner) {
    self.column = column
    self.count = count
    self.positions = positions
    details = positions
    left = 0
  }

  /// Creates runs from `details`: the number of runs, then the column and the length of each run.
  init(_ details: ByteScanner, positions: ByteScanner) throws {
    self.init(column: 0, count: 0, positions: positions)
    self.details = details
    left = try self.details.length()
    guard try next() else { throw InvertedIndexFormat.damaged }
  }

  /// Moves to the run of the next column. Returns false if there is none.
  @inline(__always)
  mutating func next() throws -> Bool {
    guard left > 0 else { return false }
    try positions.skipVarints(count)
    left -= 1
    column = try details.length()
    count = try details.length()
    return true
  }

  /// Appends the positions of the current run.
  @inline(__always)
  func append(to list: PositionList) throws {
    var scanner = positions
    guard count <= scanner.count else { throw InvertedIndexFormat.damaged }
    let target = list.extend(by: count)
    var position = UInt64(column) << 32
    for index in 0..<count {
      position &+= UInt64(try scanner.varint32())
      target[index] = position
    }
  }

  /// Returns whether a position q of `many` follows a position p of `few` with `p + low <= q <= p + high` and
  /// `p != q`. It reads only as many positions as it needs.
  @inline(__always)
  static func isAny(
    of few: PositionRuns, within low: Int, _ high: Int, of many: PositionRuns
  ) throws -> Bool {
    var (first, second) = (few.positions, many.positions)
    var (firstLeft, secondLeft) = (few.count &- 1, many.count &- 1)
    var own = try first.position(behind: 0)
    var other = try second.position(behind: 0)
    while true {
      let least = own &+ low
      while other < least || other == own {
        guard secondLeft > 0 else { return false }
        secondLeft &-= 1
        other = try second.position(behind: other)
      }
      if other <= own &+ high { return true }
      guard firstLeft > 0 else { return false }
      firstLeft &-= 1
      own = try first.position(behind: own)
    }
  }
}

extension ByteScanner {
  /// Reads the next position, stored as the distance from `other`.
  @inline(__always)
  fileprivate mutating func position(behind other: Int) throws -> Int {
    guard next < end else { throw InvertedIndexFormat.damaged }
    let byte = next.pointee
    if _fastPath(byte < 0x80) {
      next += 1
      return other &+ Int(byte)
    }
    if end - next >= 2, next[1] < 0x80 {
      let value = Int(byte & 0x7F) | Int(next[1]) << 7
      next += 2
      return other &+ value
    }
    return other &+ Int(try varint32())
  }
}
