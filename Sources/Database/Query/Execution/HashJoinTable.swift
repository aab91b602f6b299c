import Fleece

/// A hash table of document IDs by the values they are joined by. IDs of equal values keep their insertion
/// order.
final class HashJoinTable {
  private struct Node: BitwiseCopyable {
    let id: TextSlice
    var next: UnsafeMutablePointer<Node>?
  }

  private let table: RowTable
  private let arena: EvaluationArena
  private var first: [UnsafeMutablePointer<Node>] = []
  private var last: [UnsafeMutablePointer<Node>] = []
  private let width: Int
  private let budget: QueryMemoryBudget
  /// The memory of one group of equal values in `first` and `last`, in bytes.
  private static let listBytes = 2 * MemoryLayout<UnsafeMutablePointer<Node>>.stride

  init(_ orders: [ValueOrder], _ budget: QueryMemoryBudget) {
    table = RowTable(orders, budget)
    arena = EvaluationArena(capacity: 16_384, budget)
    width = orders.count
    self.budget = budget
  }

  deinit { budget.giveBack(first.count * Self.listBytes) }

  /// Adds a document. The values and the ID are copied.
  ///
  /// - Throws: `memoryLimit`.
  func add(_ values: UnsafePointer<QueryValue>, _ id: TextSlice, _ sharedKeys: SharedKeys) throws {
    let node = arena.allocate(1, of: Node.self)
    node.initialize(to: Node(id: arena.copy(id), next: nil))
    let hash = table.hash(values)
    if let number = table.find(values, hash) {
      last[number].pointee.next = node
      last[number] = node
    } else {
      table.add(arena.copy(values, count: width, sharedKeys), hash)
      first.append(node)
      last.append(node)
      budget.take(Self.listBytes)
    }
    try budget.check(.join)
  }

  /// Calls `body` with the IDs of documents that have these values, until it returns false. Returns the last
  /// result of `body`, or true without a match.
  func forEachMatch(
    _ values: UnsafePointer<QueryValue>, _ body: (UnsafeRawBufferPointer) throws -> Bool
  ) throws -> Bool {
    guard let number = table.find(values, table.hash(values)) else { return true }
    var node: UnsafeMutablePointer<Node>? = first[number]
    while let found = node {
      guard try body(found.pointee.id.bytes) else { return false }
      node = found.pointee.next
    }
    return true
  }
}

/// A set of document IDs in insertion order.
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

  var count: Int { table.count }

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

  /// Calls `body` with each ID until it returns false. Returns the last result of `body`, or true for an
  /// empty set.
  func forEach(_ body: (UnsafeRawBufferPointer) throws -> Bool) rethrows -> Bool {
    for number in 0..<table.count {
      guard case .string(let id) = table.row(number).pointee else { continue }
      if try !body(id.bytes) { return false }
    }
    return true
  }
}
