import Fleece

/// IDs of documents by the values that they are joined by; of equal values in the order they came in.
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
  private let budget: MemoryBudget
  /// Of `first` and `last`.
  private static let listBytes = 2 * MemoryLayout<UnsafeMutablePointer<Node>>.stride

  init(_ orders: [ValueOrder], _ budget: MemoryBudget) {
    table = RowTable(orders, budget)
    arena = EvaluationArena(capacity: 16_384, budget)
    width = orders.count
    self.budget = budget
  }

  deinit { budget.giveBack(first.count * Self.listBytes) }

  /// Adds a document. Values and ID are copied.
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
      let kept = arena.allocate(width, of: QueryValue.self)
      for index in 0..<width { kept[index] = arena.copy(values[index], sharedKeys) }
      table.add(kept, hash)
      first.append(node)
      last.append(node)
      budget.take(Self.listBytes)
    }
    try budget.check(.join)
  }

  /// Calls `body` with the IDs of documents with these values until it returns false; returns what it said last.
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

/// IDs of documents, each once, in the order they came in.
final class IdentifierSet {
  private let table: RowTable
  private let arena: EvaluationArena
  private let probe: UnsafeMutablePointer<QueryValue>
  private let budget: MemoryBudget
  private let clause: MemoryClause

  /// A set whose memory counts in a budget, for a clause.
  init(_ budget: MemoryBudget, _ clause: MemoryClause) {
    self.budget = budget
    self.clause = clause
    table = RowTable([ValueOrder(.empty)], budget)
    arena = EvaluationArena(capacity: 16_384, budget)
    probe = .allocate(capacity: 1)
    probe.initialize(to: .missing)
  }

  deinit { probe.deallocate() }

  var count: Int { table.count }

  /// Adds an ID, which is copied. False when it is there already.
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

  /// Calls `body` with each until it returns false; returns what it said last.
  func forEach(_ body: (UnsafeRawBufferPointer) throws -> Bool) rethrows -> Bool {
    for number in 0..<table.count {
      guard case .string(let id) = table.row(number).pointee else { continue }
      if try !body(id.bytes) { return false }
    }
    return true
  }
}
