import Fleece

/// A hash table of document IDs by the values they are joined by. IDs of equal values keep their insertion
/// order. When memory doesn't hold it, it is in a temporary file, sorted by hashes.
final class HashJoinTable {
  private struct Node: BitwiseCopyable {
    let id: TextSlice
    var next: UnsafeMutablePointer<Node>?
  }

  private var table: RowTable
  private var arena: EvaluationArena
  private let orders: [ValueOrder]
  private let keeping: RowKeeping
  private var late: RowSorter?
  private var file: HashedIDs?
  private let probe: UnsafeMutablePointer<QueryValue>
  private var first: [UnsafeMutablePointer<Node>] = []
  private var last: [UnsafeMutablePointer<Node>] = []
  private let width: Int
  private let budget: QueryMemoryBudget
  /// The memory of one group of equal values in `first` and `last`, in bytes.
  private static let listBytes = 2 * MemoryLayout<UnsafeMutablePointer<Node>>.stride

  init(_ orders: [ValueOrder], _ keeping: RowKeeping) {
    self.orders = orders
    self.keeping = keeping
    budget = keeping.budget
    table = RowTable(orders, budget)
    arena = EvaluationArena(capacity: 16_384, budget)
    width = orders.count
    probe = .allocate(width + 2, repeating: .missing)
  }

  deinit {
    probe.deallocate()
    budget.giveBack(first.count * Self.listBytes)
  }

  /// Adds a document. The values and the ID are copied.
  ///
  /// - Throws: `memoryLimit`, `diskLimit`, `memoryBusy`, or `StorageError` of a temporary file.
  func add(_ values: UnsafePointer<QueryValue>, _ id: TextSlice, _ sharedKeys: SharedKeys) throws {
    let hash = table.hash(values)
    if let late { return try add(values, id, hash, to: late) }
    let node = arena.allocate(1, of: Node.self)
    node.initialize(to: Node(id: arena.copy(id), next: nil))
    if let number = table.find(values, hash) {
      last[number].pointee.next = node
      last[number] = node
    } else {
      table.add(arena.copy(values, count: width, sharedKeys), hash)
      first.append(node)
      last.append(node)
      budget.take(Self.listBytes)
    }
    let isFull = try budget.mustSpill(
      arena.allocatedBytes + table.allocatedBytes + first.count * Self.listBytes, .join)
    if isFull { try spill() }
  }

  // MARK: In a temporary file

  //   row := hash id value*

  private func add(
    _ values: UnsafePointer<QueryValue>, _ id: TextSlice, _ hash: UInt64, to sorter: RowSorter
  ) throws {
    probe[0] = .uint(hash)
    probe[1] = .string(id)
    for index in 0..<width { probe[2 + index] = values[index] }
    try sorter.add(probe)
  }

  /// Moves all IDs to a sorter, which later ones go to as well.
  private func spill() throws {
    let sorter = RowSorter(width: width + 2, keeping, .join) { compareNumbers($0[0], $1[0]) }
    for number in 0..<table.count {
      let row = table.row(number)
      let hash = table.hash(row)
      var node: UnsafeMutablePointer<Node>? = first[number]
      while let found = node {
        try add(row, found.pointee.id, hash, to: sorter)
        node = found.pointee.next
      }
    }
    late = sorter
    budget.giveBack(first.count * Self.listBytes)
    (first, last) = ([], [])
    table = RowTable(orders, budget)
    arena = EvaluationArena(capacity: 64, budget)
  }

  /// Ends the additions. Then look up.
  func finish() throws {
    guard let late else { return }
    file = try HashedIDs(late.sorted(), orders, keeping)
    self.late = nil
  }

  /// Calls `body` with the IDs of documents that have these values, until it returns false. Returns the last
  /// result of `body`, or true without a match.
  func forEachMatch(
    _ values: UnsafePointer<QueryValue>, _ body: (UnsafeRawBufferPointer) throws -> Bool
  ) throws -> Bool {
    if let file { return try file.forEachMatch(values, table.hash(values), body) }
    guard let number = table.find(values, table.hash(values)) else { return true }
    var node: UnsafeMutablePointer<Node>? = first[number]
    while let found = node {
      guard try body(found.pointee.id.bytes) else { return false }
      node = found.pointee.next
    }
    return true
  }
}

/// The rows of a hash join in a temporary file: hashes, IDs and joined values, in the order of the hashes.
private final class HashedIDs {
  private let rows: PagedRows
  private let orders: [ValueOrder]
  /// The hashes of the first rows of all pages.
  private var hashes: [UInt64] = []
  private let budget: QueryMemoryBudget

  init(_ sorted: OrderedRows, _ orders: [ValueOrder], _ keeping: RowKeeping) throws {
    self.orders = orders
    budget = keeping.budget
    rows = try PagedRows(width: orders.count + 2, keeping)
    while let row = try sorted.next() {
      guard try rows.append(row) else { continue }
      hashes.append(Self.hash(row))
      budget.take(MemoryLayout<UInt64>.stride)
    }
    try budget.check(.join)
  }

  deinit { budget.giveBack(hashes.count * MemoryLayout<UInt64>.stride) }

  private static func hash(_ row: UnsafePointer<QueryValue>) -> UInt64 {
    if case .uint(let hash) = row[0] { hash } else { 0 }
  }

  func forEachMatch(
    _ values: UnsafePointer<QueryValue>, _ hash: UInt64, _ body: (UnsafeRawBufferPointer) throws -> Bool
  ) throws -> Bool {
    // The last known hash below this one: rows with this hash come after its row.
    var (low, high) = (0, hashes.count)
    while low < high {
      let middle = (low + high) / 2
      if hashes[middle] < hash { low = middle + 1 } else { high = middle }
    }
    var number = low > 0 ? rows.firstRow(ofPage: low - 1) : 0
    while number < rows.count {
      let row = try rows.row(number)
      number += 1
      let other = Self.hash(row)
      if other < hash { continue }
      if other > hash { break }
      guard orders.indices.allSatisfy({ orders[$0].areEqual(row[2 + $0], values[$0]) }),
        case .string(let id) = row[1]
      else { continue }
      guard try body(id.bytes) else { return false }
    }
    return true
  }
}

/// A set of document IDs in insertion order, which has to fit into memory. `DistinctRows` needn't.
final class IdentifierSet {
  private let table: RowTable
  private let arena: EvaluationArena
  private let probe: UnsafeMutablePointer<QueryValue>
  private let budget: QueryMemoryBudget
  private let clause: MemoryClause

  /// Creates a set. Its memory counts towards a budget, and `clause` is named when the limit is exceeded.
  init(_ budget: QueryMemoryBudget, _ clause: MemoryClause) {
    self.budget = budget
    self.clause = clause
    table = RowTable([ValueOrder(.empty)], budget)
    arena = EvaluationArena(capacity: 16_384, budget)
    probe = .allocate(1, repeating: .missing)
  }

  deinit { probe.deallocate() }

  /// Adds a copy of an ID. Returns false when the ID is already in the set.
  ///
  /// - Throws: `memoryLimit`.
  @discardableResult
  func insert(_ id: UnsafeRawBufferPointer) throws -> Bool {
    probe.pointee = .string(TextSlice(id))
    let hash = table.hash(probe)
    if table.find(probe, hash) != nil { return false }
    let kept = arena.allocate(1, of: QueryValue.self)
    kept.initialize(to: .string(arena.copy(TextSlice(id))))
    table.add(kept, hash)
    try budget.check(clause)
    return true
  }

  /// The number of an ID in the order of insertion. Nil when it isn't in the set.
  func number(of id: TextSlice) -> Int? {
    probe.pointee = .string(id)
    return table.find(probe, table.hash(probe))
  }
}
