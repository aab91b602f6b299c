/// The rows of an arrangement in their order, by partitions.
struct WindowPartitions {
  let arrangement: CompiledWindows.Arrangement
  let rows: [UnsafeMutablePointer<QueryValue>]
  let context: EvaluationContext
  /// The numbers of the rows, in order.
  private(set) var numbers: [Int]

  init(
    _ arrangement: CompiledWindows.Arrangement, _ rows: [UnsafeMutablePointer<QueryValue>],
    _ context: EvaluationContext
  ) {
    self.arrangement = arrangement
    self.rows = rows
    self.context = context
    numbers = Array(rows.indices)
  }

  /// Brings the rows into their order. Equal rows stay in the order in which they came. Rows that come in order take
  /// time in proportion to their number.
  mutating func sort() throws {
    let terms = (arrangement.partition + arrangement.order).map { ($0, context.order($0.collation)) }
    let rows = rows
    let cancellation = context.cancellation
    try numbers.sort { left, right in
      try cancellation.check()
      for (term, order) in terms {
        let result = order.compare(rows[left][term.input], rows[right][term.input])
        if result != 0 { return (result < 0) != term.isDescending }
      }
      return false
    }
  }

  func forEach(_ body: (WindowPartition) throws -> Void) throws {
    let orders = arrangement.partition.map { ($0.input, context.order($0.collation)) }
    var start = 0
    while start < numbers.count {
      var end = start + 1
      while end < numbers.count,
        orders.allSatisfy({ $1.areEqual(rows[numbers[end]][$0], rows[numbers[start]][$0]) })
      {
        end += 1
      }
      try context.cancellation.check()
      let found = Array(numbers[start..<end])
      try body(WindowPartition(arrangement, WindowRows(found.map { rows[$0] }), found, context))
      start = end
    }
  }
}

/// The rows of a partition by their positions in its order: in memory, or in a temporary file.
struct WindowRows {
  private let memory: [UnsafeMutablePointer<QueryValue>]
  private let paged: PagedRows?
  let indices: Range<Int>
  var count: Int { indices.count }

  init(_ rows: [UnsafeMutablePointer<QueryValue>]) {
    memory = rows
    paged = nil
    indices = rows.indices
  }

  /// Rows in a file. A row is valid until some others were read (`PagedRows.leastPages`).
  init(_ rows: PagedRows) {
    memory = []
    paged = rows
    indices = 0..<rows.count
  }

  @inline(__always)
  subscript(position: Int) -> UnsafePointer<QueryValue> {
    if let paged { return paged[position] }
    return UnsafePointer(memory[position])
  }
}

/// The rows of one partition, in order, and the groups of peers among them.
struct WindowPartition {
  let rows: WindowRows
  /// The numbers of the rows in the order of arrival.
  let numbers: [Int]
  /// The term by which distances of RANGE are measured.
  let distance: CompiledWindows.Term?
  /// For each row, the number of its group of peers.
  let groups: [Int]
  /// For each group, the position of its first row, and last the number of rows.
  let starts: [Int]
  /// What a partition and a function take for each row beside the row, in bytes.
  static let rowBytes = 4 * MemoryLayout<Int>.stride

  init(
    _ arrangement: CompiledWindows.Arrangement, _ rows: WindowRows, _ numbers: [Int],
    _ context: EvaluationContext
  ) {
    self.numbers = numbers
    self.rows = rows
    distance = arrangement.order.last
    let orders = arrangement.order.map { ($0.input, context.order($0.collation)) }
    var groups = [0]
    var starts = [0]
    for position in rows.indices.dropFirst() {
      let isPeer = orders.allSatisfy { $1.areEqual(rows[position][$0], rows[position - 1][$0]) }
      if !isPeer { starts.append(position) }
      groups.append(starts.count - 1)
    }
    self.groups = groups
    self.starts = starts + [rows.count]
  }

  /// The positions of the peers of a row.
  func peers(of position: Int) -> Range<Int> { starts[groups[position]]..<starts[groups[position] + 1] }
}
