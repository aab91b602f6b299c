import Fleece

/// Computes functions over windows for rows in a temporary file: for each arrangement, it sorts them and takes one partition after the
/// other. A partition that memory doesn't hold is in a file too.
final class SpilledWindows {
  //   row    := input*                          in the order in which rows came
  //   sorted := input* number                   in the order of an arrangement
  //   result := number function value           in the order of numbers and functions

  private let windows: CompiledWindows
  private let context: EvaluationContext
  private let keeping: RowKeeping
  private let file: RowFile
  private let results: RowSorter
  private let result = UnsafeMutablePointer<QueryValue>.allocate(3, repeating: .missing)

  /// - Parameter file: the inputs of all rows.
  init(_ windows: CompiledWindows, _ context: EvaluationContext, _ file: RowFile) {
    self.windows = windows
    self.context = context
    self.file = file
    keeping = RowKeeping(context)
    results = RowSorter(width: 3, keeping, .window) { left, right in
      let order = compareNumbers(left[0], right[0])
      return order != 0 ? order : compareNumbers(left[1], right[1])
    }
  }

  deinit { result.deallocate() }

  /// Calls `body` with each row, and the results of all functions, in the order in which rows came, until it returns false.
  func forEachRow(_ body: (UnsafePointer<QueryValue>, UnsafePointer<QueryValue>) throws -> Bool) throws {
    for number in windows.arrangements.indices { try compute(number) }
    let sorted = try results.sorted()
    let rows = file.rows(0..<file.end)
    let values = UnsafeMutablePointer<QueryValue>.allocate(windows.functions.count, repeating: .null)
    // The sorted results are lent one by one.
    let arena = EvaluationArena(capacity: 1_024, keeping.budget)
    defer { values.deallocate() }
    while let row = try rows.next() {
      try keeping.cancellation.check()
      arena.reset()
      for index in windows.functions.indices {
        guard let result = try sorted.next() else { throw keeping.files.damaged }
        values[index] = arena.copy(result[2], keeping.sharedKeys)
      }
      guard try body(row, values) else { return }
    }
  }

  /// Computes the functions of an arrangement.
  private func compute(_ number: Int) throws {
    let arrangement = windows.arrangements[number]
    let place = file.width
    let terms = (arrangement.partition + arrangement.order).map { ($0, context.order($0.collation)) }
    let sorter = RowSorter(width: place + 1, keeping, .window) { left, right in
      for (term, order) in terms {
        let result = order.compare(left[term.input], right[term.input])
        if result != 0 { return term.isDescending ? -result : result }
      }
      return 0
    }
    try fill(sorter)
    let keys = arrangement.partition.map {
      GroupedRows.Key(place: $0.input, order: context.order($0.collation))
    }
    let rows = GroupedRows(try sorter.sorted(), by: keys, keeping)
    while try rows.nextGroup() != nil {
      let partition = GatheredPartition(keeping, width: place)
      while let row = try rows.next() { try partition.add(row, row[place]) }
      try evaluate(number, partition)
    }
  }

  private func fill(_ sorter: RowSorter) throws {
    let row = UnsafeMutablePointer<QueryValue>.allocate(file.width + 1, repeating: .missing)
    defer { row.deallocate() }
    let rows = file.rows(0..<file.end)
    var number: Int64 = 0
    while let inputs = try rows.next() {
      row.update(from: inputs, count: file.width)
      row[file.width] = .int(number)
      number += 1
      try sorter.add(row)
    }
  }

  private func evaluate(_ number: Int, _ gathered: GatheredPartition) throws {
    let bytes = gathered.numbers.count * WindowPartition.rowBytes
    keeping.budget.take(bytes)
    defer { keeping.budget.giveBack(bytes) }
    try keeping.budget.check(.window)
    let partition = WindowPartition(windows.arrangements[number], gathered.rows, gathered.numbers, context)
    for (index, function) in windows.functions.enumerated() where function.arrangement == number {
      let arena = EvaluationArena(capacity: 1_024, keeping.budget)
      try WindowEvaluation(function, partition, context, arena, emptiesArena: true).compute {
        position, value in
        try gathered.check()
        result[0] = .int(Int64(partition.numbers[position]))
        result[1] = .int(Int64(index))
        result[2] = value
        try results.add(result)
      }
      try gathered.check()
    }
  }
}

/// The rows of a partition as they come.
private final class GatheredPartition {
  private let keeping: RowKeeping
  private let width: Int
  private var arena: EvaluationArena
  private var memory: [UnsafeMutablePointer<QueryValue>] = []
  private var paged: PagedRows?
  /// The numbers of the rows in the order of arrival.
  private(set) var numbers: [Int] = []

  init(_ keeping: RowKeeping, width: Int) {
    self.keeping = keeping
    self.width = width
    arena = EvaluationArena(capacity: 1_024, keeping.budget)
  }

  var rows: WindowRows { paged.map { WindowRows($0) } ?? WindowRows(memory) }
  func check() throws { try paged?.check() }

  func add(_ row: UnsafePointer<QueryValue>, _ number: QueryValue) throws {
    if case .int(let number) = number { numbers.append(Int(number)) }
    if let paged {
      try paged.append(row)
      return
    }
    memory.append(arena.copy(row, count: width, keeping.sharedKeys))
    guard try keeping.budget.mustSpill(arena.allocatedBytes, .window) else { return }
    let paged = try PagedRows(width: width, keeping)
    for row in memory { try paged.append(row) }
    self.paged = paged
    memory = []
    arena = EvaluationArena(capacity: 64, keeping.budget)
  }
}
