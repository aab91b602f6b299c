import Fleece

/// The rows of an arrangement by partitions, each in its order.
struct WindowPartitions {
  /// A row, and the beginning of its first value in the order.
  private struct Place: BitwiseCopyable {
    var prefix: UInt64
    /// The number of the row in the order of arrival.
    var number: Int
  }

  /// A term of the order.
  private struct Term: BitwiseCopyable {
    var input: Int
    var isDescending: Bool
    var order: ValueOrder
  }

  private let arrangement: CompiledWindows.Arrangement
  private let rows: [UnsafeMutablePointer<QueryValue>]
  private let context: EvaluationContext
  /// What finding the partitions takes for each row, in bytes. It comes on top of `WindowPartition.rowBytes`.
  static let rowBytes = MemoryLayout<Place>.stride + 2 * MemoryLayout<Int>.stride

  init(
    _ arrangement: CompiledWindows.Arrangement, _ rows: [UnsafeMutablePointer<QueryValue>],
    _ context: EvaluationContext
  ) {
    self.arrangement = arrangement
    self.rows = rows
    self.context = context
  }

  /// Calls `body` with each partition, in no particular order. Equal rows of one stay in the order in which they came. Rows that come in
  /// order take time in proportion to their number.
  func forEach(_ body: (WindowPartition) throws -> Void) throws {
    let (partitions, count) = try partitionNumbers()
    // The rows of each partition follow each other.
    var ends = Array(repeating: 0, count: count + 1)
    for partition in partitions { ends[partition + 1] += 1 }
    for partition in 0..<count { ends[partition + 1] += ends[partition] }
    let places = UnsafeMutableBufferPointer<Place>.allocate(capacity: rows.count)
    defer { places.deallocate() }
    let first = arrangement.order.first.map { term($0) }
    for number in rows.indices {
      var prefix: UInt64 = 0
      if let first {
        prefix = first.order.prefix(of: rows[number][first.input])
        if first.isDescending { prefix = ~prefix }
      }
      let partition = partitions[number]
      places.initializeElement(at: ends[partition], to: Place(prefix: prefix, number: number))
      ends[partition] += 1
    }
    var start = 0
    for partition in 0..<count {
      let end = ends[partition]
      try context.cancellation.check()
      let own = UnsafeMutableBufferPointer(rebasing: places[start..<end])
      try sort(own)
      let numbers = own.map(\.number)
      try body(WindowPartition(arrangement, WindowRows(numbers.map { rows[$0] }), numbers, context))
      start = end
    }
  }

  private func term(_ term: CompiledWindows.Term) -> Term {
    Term(input: term.input, isDescending: term.isDescending, order: context.order(term.collation))
  }

  /// The number of each row's partition, and how many there are.
  private func partitionNumbers() throws -> (numbers: [Int], count: Int) {
    let terms = arrangement.partition
    guard !terms.isEmpty else { return (Array(repeating: 0, count: rows.count), 1) }
    let arena = EvaluationArena(capacity: 1024, context.budget)
    let table = RowTable(terms.map { context.order($0.collation) }, context.budget)
    var numbers: [Int] = []
    numbers.reserveCapacity(rows.count)
    var key = arena.allocate(terms.count, of: QueryValue.self)
    for row in rows {
      try context.cancellation.check()
      // The values are those of rows, which live longer.
      for (index, term) in terms.enumerated() { key[index] = row[term.input] }
      let hash = table.hash(key)
      if let number = table.find(key, hash) {
        numbers.append(number)
        continue
      }
      numbers.append(table.add(key, hash))
      try context.budget.check(.window)
      key = arena.allocate(terms.count, of: QueryValue.self)
    }
    return (numbers, table.count)
  }

  private func sort(_ places: UnsafeMutableBufferPointer<Place>) throws {
    let terms = arrangement.order.map { term($0) }
    guard !terms.isEmpty, places.count > 1 else { return }
    let cancellation = context.cancellation
    try rows.withUnsafeBufferPointer { rows in
      try terms.withUnsafeBufferPointer { terms in
        var sorted = places
        try sorted.sort { left, right in
          try cancellation.check()
          if left.prefix != right.prefix { return left.prefix < right.prefix }
          for index in 0..<terms.count {
            let term = terms[index]
            let result = term.order.compare(rows[left.number][term.input], rows[right.number][term.input])
            if result != 0 { return (result < 0) != term.isDescending }
          }
          return false
        }
      }
    }
  }
}

/// The rows of a partition by their positions in its order: in memory, or in a temporary file.
struct WindowRows {
  /// Owns the addresses of rows in memory.
  private final class Addresses {
    let start: UnsafeMutablePointer<UnsafeMutablePointer<QueryValue>>

    init(_ rows: [UnsafeMutablePointer<QueryValue>]) {
      start = .allocate(capacity: max(1, rows.count))
      for (index, row) in rows.enumerated() { (start + index).initialize(to: row) }
    }

    deinit { start.deallocate() }
  }

  private let memory: Addresses?
  private let start: UnsafeMutablePointer<UnsafeMutablePointer<QueryValue>>?
  private let paged: PagedRows?
  let indices: Range<Int>
  var count: Int { indices.count }

  init(_ rows: [UnsafeMutablePointer<QueryValue>]) {
    let memory = Addresses(rows)
    self.memory = memory
    start = memory.start
    paged = nil
    indices = rows.indices
  }

  /// Rows in a file. A row is valid until some others were read (`PagedRows.leastPages`).
  init(_ rows: PagedRows) {
    memory = nil
    start = nil
    paged = rows
    indices = 0..<rows.count
  }

  @inline(__always)
  subscript(position: Int) -> UnsafePointer<QueryValue> {
    // No object is retained for a row in memory.
    if let start { return UnsafePointer(start[position]) }
    return paged.unsafelyUnwrapped[position]
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
