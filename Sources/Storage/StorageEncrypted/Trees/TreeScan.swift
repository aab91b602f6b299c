import CLMDB
import Storage
import StorageLMDB

/// The scan of one tree that calls a closure for each entry. It has its own path, which holds the nodes while
/// their bytes are lent.
struct TreeScan {
  typealias Body = (_ key: RawSpan, _ value: RawSpan) throws -> Bool

  let tree: Tree
  let reader: NodeRecordReader
  let fetch: ScanFetch

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
    repeat {
      let node = path.leafNode
      // Compares with the bound once per leaf, except in the last leaf.
      let isLast = upper.isBelow(MDB_val(node.leafKey(node.count - 1)))
      for index in path.index..<node.count {
        let key = node.leafKey(index)
        if isLast, upper.isBelow(MDB_val(key)) { return }
        guard try visit(key, node, index, body) else { return }
      }
    } while try path.moveToNextLeaf(reader)
  }

  private func descend(_ path: TreePath, _ lower: KeyBound, _ body: Body) throws {
    repeat {
      let node = path.leafNode
      let isLast = lower.isAbove(MDB_val(node.leafKey(0)))
      for index in stride(from: path.index, through: 0, by: -1) {
        let key = node.leafKey(index)
        if isLast, lower.isAbove(MDB_val(key)) { return }
        guard try visit(key, node, index, body) else { return }
      }
    } while try path.moveToPreviousLeaf(reader)
  }

  @inline(__always)
  private func visit(_ key: UnsafeRawBufferPointer, _ node: Node, _ index: Int, _ body: Body) throws -> Bool {
    if fetch == .keys {
      return try withExtendedLifetime(node) {
        try body(key.bytes, UnsafeRawBufferPointer(start: nil, count: 0).bytes)
      }
    }
    switch node.value(index) {
    case .inline(let value): return try withExtendedLifetime(node) { try body(key.bytes, value.bytes) }
    case .large(let reference, let count):
      let value = try reader.large(reference, count: count)
      return try withExtendedLifetime((node, value)) { try body(key.bytes, value.contents.bytes) }
    }
  }
}
