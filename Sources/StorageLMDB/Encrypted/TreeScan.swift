import CLMDB
import Storage

/// The closure scan over one tree.
struct TreeScan {
  typealias Body = (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool

  let tree: Tree
  let reader: RecordReader
  let fetch: ScanFetch
  /// In a write transaction, whose body may write: what tells.
  let writes: Writes?

  struct Writes {
    /// How often something was written.
    let count: () -> Int
    /// The tree as it is by now.
    let tree: () throws -> Tree
  }

  func run(_ range: KeyRange, _ order: ScanOrder, _ body: Body) throws {
    try KeyBound.with(range.lower) { lower in
      try KeyBound.with(range.upper) { upper in
        let path = TreePath()
        switch order {
        case .descending:
          if try path.moveToLast(tree, to: upper, reader) { try descend(path, lower, body) }
        case .ascending, .stored:
          if try path.moveToFirst(tree, from: lower, reader) { try ascend(path, upper, body) }
        }
      }
    }
  }

  private func ascend(_ path: TreePath, _ upper: KeyBound, _ body: Body) throws {
    var written = writes?.count() ?? 0
    var last: [UInt8] = []
    leaves: while true {
      let node = path.leafNode
      // Bounds are looked at once a leaf, but for the last one.
      let isLast = upper.isBelow(MDB_val(node.leafKey(node.count - 1)))
      var index = path.index
      while index < node.count {
        let key = node.leafKey(index)
        if isLast, upper.isBelow(MDB_val(key)) { return }
        if writes != nil { last = [UInt8](key) }
        guard try visit(key, node, index, body) else { return }
        if let writes, writes.count() != written {
          written = writes.count()
          let isOnEntry = try KeyBound.with(.exclusive(last)) {
            try path.moveToFirst(try writes.tree(), from: $0, reader)
          }
          guard isOnEntry else { return }
          continue leaves
        }
        index &+= 1
      }
      guard try path.moveToNextLeaf(reader) else { return }
    }
  }

  private func descend(_ path: TreePath, _ lower: KeyBound, _ body: Body) throws {
    var written = writes?.count() ?? 0
    var last: [UInt8] = []
    leaves: while true {
      let node = path.leafNode
      let isLast = lower.isAbove(MDB_val(node.leafKey(0)))
      var index = path.index
      while index >= 0 {
        let key = node.leafKey(index)
        if isLast, lower.isAbove(MDB_val(key)) { return }
        if writes != nil { last = [UInt8](key) }
        guard try visit(key, node, index, body) else { return }
        if let writes, writes.count() != written {
          written = writes.count()
          let isOnEntry = try KeyBound.with(.exclusive(last)) {
            try path.moveToLast(try writes.tree(), to: $0, reader)
          }
          guard isOnEntry else { return }
          continue leaves
        }
        index &-= 1
      }
      guard try path.moveToPreviousLeaf(reader) else { return }
    }
  }

  @inline(__always)
  private func visit(_ key: UnsafeRawBufferPointer, _ node: Node, _ index: Int, _ body: Body) throws -> Bool {
    if fetch == .keys { return try body(key, UnsafeRawBufferPointer(start: nil, count: 0)) }
    switch node.value(index) {
    case .inline(let value): return try body(key, value)
    case .large(let reference, let count):
      let value = try reader.large(reference, count: count)
      return try withExtendedLifetime(value) { try body(key, value.contents) }
    }
  }
}
