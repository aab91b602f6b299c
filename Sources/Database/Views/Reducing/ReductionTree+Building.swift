import Bytes
import Storage

/// Makes the blocks of all levels from rows in their order.
private final class BlockMaker {
  private struct Open {
    var boundary: [UInt8] = []
    var rows: UInt64 = 0
    let reduction: (any Reduction)?
  }

  private let tree: ReductionTree
  private var open: [Open] = []
  private var partial = ByteBuffer()
  /// The finished blocks of each level that nobody has taken.
  private(set) var finished: [[(key: [UInt8], value: [UInt8])]]

  init(_ tree: ReductionTree) throws {
    self.tree = tree
    finished = Array(repeating: [], count: tree.levels)
    for _ in 0..<tree.levels { open.append(Open(reduction: try tree.makePartial())) }
  }

  func add(_ key: RawSpan, _ value: RawSpan) throws {
    let level = tree.level(of: key)
    if level > 0 { try close(level, next: [UInt8](copying: key)) }
    open[0].rows += 1
    if let reduction = open[0].reduction {
      try reduction.add(try StoredRow(key, value), expanding: tree.expanding)
    }
  }

  /// Ends the open blocks of the levels 1 ... `level`.
  func close(_ level: Int, next: [UInt8]) throws {
    for index in 0..<level {
      let block = open[index]
      if block.rows > 0 {
        partial.removeAll(keepingAtMost: 1 << 16)
        try block.reduction?.write(to: &partial)
        if index + 1 < open.count {
          open[index + 1].rows += block.rows
          try open[index + 1].reduction?.merge(partial.bytes.bytes)
        }
        var value = ByteBuffer(capacity: partial.count + 10)
        value.append(varint: block.rows)
        value.append(partial.bytes)
        finished[index].append((ReductionTree.entryKey(index + 1, block.boundary), Array(value.bytes)))
      }
      open[index].rows = 0
      open[index].reduction?.reset()
      open[index].boundary = next
    }
  }

  func take(_ level: Int) -> [(key: [UInt8], value: [UInt8])] {
    defer { finished[level - 1] = [] }
    return finished[level - 1]
  }
}

extension ReductionTree {
  /// So many rows are read at once while blocks are built.
  private static let rowsOfStep = 1 << 16

  /// Stores the blocks of all rows. None may be stored yet.
  package func build(in transaction: any WriteTransaction) throws {
    let maker = try BlockMaker(self)
    try entries.load(in: transaction) { append in
      try make(maker, in: transaction) { key, value in try append(key.span.bytes, value.span.bytes) }
    }
  }

  /// Stores the blocks of the rows that `load` passes to its argument, in the order of their keys, while it stores them.
  /// These are all rows of the view, and no block may be stored yet.
  func build(
    in transaction: any WriteTransaction,
    loading load: (_ add: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    let maker = try BlockMaker(self)
    try load { key, value in try maker.add(key, value) }
    try maker.close(levels, next: [])
    try entries.load(in: transaction) { append in
      for level in 1...levels {
        for (key, value) in maker.take(level) { try append(key.span.bytes, value.span.bytes) }
      }
    }
  }

  /// Passes the blocks of all rows to `body`, in the order of keys. Nothing is lent while it runs.
  private func make(
    _ maker: BlockMaker, in transaction: any ReadTransaction, _ body: ([UInt8], [UInt8]) throws -> Void
  ) throws {
    var from = KeyRange.Bound.unbounded
    var goesOn = true
    while goesOn {
      goesOn = false
      var count = 0
      var last: [UInt8] = []
      try rows.scan(KeyRange(lower: from), order: .ascending, in: transaction) { key, value in
        try maker.add(key, value)
        count += 1
        guard count < ReductionTree.rowsOfStep else {
          last = [UInt8](copying: key)
          goesOn = true
          return false
        }
        return true
      }
      from = .exclusive(last)
      for (key, value) in maker.take(1) { try body(key, value) }
    }
    try maker.close(levels, next: [])
    for level in 1...levels {
      for (key, value) in maker.take(level) { try body(key, value) }
    }
  }

  /// Compares the stored blocks with the rows. Returns what is wrong, in words: the first faults.
  package func check(in transaction: any ReadTransaction) throws -> [String] {
    var faults = try rows.check(in: transaction) + entries.check(in: transaction)
    func fault(_ text: String) { if faults.count < 20 { faults.append(text) } }
    var expected = 0
    try make(try BlockMaker(self), in: transaction) { key, value in
      expected += 1
      var isEqual = false
      let isStored = try entries.read(key.span.bytes, in: transaction) {
        isEqual = $0.isEqual(to: value.span.bytes)
      }
      if !isStored {
        fault("a partial reduction of level \(key[0]) is missing")
      } else if !isEqual {
        fault("a partial reduction of level \(key[0]) differs from that of its rows")
      }
    }
    var stored = 0
    try entries.scan(.all, order: .ascending, fetch: .keys, in: transaction) { _, _ in
      stored += 1
      return true
    }
    if stored > expected { fault("\(stored - expected) partial reductions belong to no rows") }
    return faults
  }
}
