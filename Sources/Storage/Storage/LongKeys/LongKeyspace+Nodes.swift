import Bytes

extension LongKeyspace {
  /// The range of the stems and short keys that a range of keys may begin in. Nodes are behind it.
  static func topRange(_ range: KeyRange) -> KeyRange {
    var top = range
    if case .inclusive(let bytes) = range.lower, bytes.count >= LongKeyLayout.stemBytes {
      top.lower = .inclusive([UInt8](bytes[..<LongKeyLayout.stemBytes]))
    } else if case .exclusive(let bytes) = range.lower, bytes.count >= LongKeyLayout.stemBytes {
      top.lower = .inclusive([UInt8](bytes[..<LongKeyLayout.stemBytes]))
    }
    switch range.upper {
    case .unbounded: top.upper = .exclusive(behindKeys)
    case .inclusive(let bytes), .exclusive(let bytes):
      if bytes.first == LongKeyLayout.nodeMark {
        top.upper = .exclusive(behindKeys)
      } else if bytes.count >= LongKeyLayout.stemBytes {
        top.upper = .inclusive([UInt8](bytes[..<LongKeyLayout.stemBytes]))
      }
    }
    return top
  }

  private static let behindKeys: [UInt8] = [LongKeyLayout.nodeMark]

  /// Lends the entries of `range` whose keys begin with a stem at the top. Returns false if `body` did.
  ///
  /// Keys may go on through thousands of nodes, so nodes that are open are on a stack of their own. A node above another
  /// one is scanned again from its stem on.
  func scanNodes(
    below stem: RawSpan, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    in transaction: any ReadTransaction,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws -> Bool {
    let digest = try KeyDigest()
    // The bytes that all keys of the innermost node begin with, and then those of an entry.
    var path = [UInt8](copying: stem)
    let lower = NodeBound(range.lower)
    let upper = NodeBound(range.upper)
    var nodes = [
      OpenNode(
        prefix: try path.withUnsafeBytes { try LongKeyLayout.node(below: $0, digest) }, start: path.count,
        holdsLower: lower.goesOn(behind: path, from: 0), holdsUpper: upper.goesOn(behind: path, from: 0))
    ]
    while let node = nodes.last {
      path.removeSubrange(node.start...)
      var part = KeyRange(
        lower: node.holdsLower ? lower.inNode(node) : .inclusive(node.prefix),
        upper: node.holdsUpper ? upper.inNode(node) : KeyRange.upperBound(ofPrefix: node.prefix))
      if let seen = node.seen {
        if order == .ascending { part.lower = .exclusive(seen) } else { part.upper = .exclusive(seen) }
      }
      var next: [UInt8]?
      var goesOn = true
      try transaction.scan(keyspace, part, order: order, fetch: fetch) { key, value in
        guard key.byteCount < LongKeyLayout.stemBytes else {
          next = [UInt8](copying: key)
          return false
        }
        path.removeSubrange(node.start...)
        key.extracting(droppingFirst: LongKeyLayout.nodeBytes).withUnsafeBytes { path.append(contentsOf: $0) }
        goesOn = try body(path.span.bytes, value)
        return goesOn
      }
      guard goesOn else { return false }
      guard let next else {
        nodes.removeLast()
        continue
      }
      nodes[nodes.count - 1].seen = next
      path.removeSubrange(node.start...)
      path.append(contentsOf: next[LongKeyLayout.nodeBytes...])
      nodes.append(
        OpenNode(
          prefix: try next.withUnsafeBytes { try LongKeyLayout.node(below: $0, digest) }, start: path.count,
          holdsLower: node.holdsLower && lower.goesOn(behind: path, from: node.start),
          holdsUpper: node.holdsUpper && upper.goesOn(behind: path, from: node.start)))
    }
    return true
  }

  /// Returns what is wrong with the entries, in words.
  package func check(in transaction: any ReadTransaction) throws -> [String] {
    let digest = try KeyDigest()
    var faults: [String] = []
    // Nodes that stems lead to, and nodes that have entries.
    var led: Set<[UInt8]> = []
    var filled: Set<[UInt8]> = []
    try transaction.scan(keyspace, .all, order: .ascending) { key, value in
      if key.unsafeLoad(as: UInt8.self) == LongKeyLayout.nodeMark {
        guard key.byteCount >= LongKeyLayout.nodeBytes else {
          faults.append("an entry of a node has only \(key.byteCount) bytes")
          return true
        }
        let node = key.extracting(first: LongKeyLayout.nodeBytes)
        filled.insert([UInt8](copying: node))
      }
      if key.byteCount == LongKeyLayout.stemBytes {
        led.insert(try key.withUnsafeBytes { try LongKeyLayout.node(below: $0, digest) })
        if value.byteCount > 0 { faults.append("a stem has a value of \(value.byteCount) bytes") }
      }
      return true
    }
    let unfilled = led.subtracting(filled).count
    if unfilled > 0 { faults.append("\(unfilled) stems have no entries") }
    let unled = filled.subtracting(led).count
    if unled > 0 { faults.append("\(unled) nodes have no stem") }
    return faults
  }
}

/// A node whose entries are being lent.
private struct OpenNode {
  /// The bytes that its entries begin with.
  let prefix: [UInt8]
  /// The number of bytes of keys before the node.
  let start: Int
  /// Whether the range begins inside of the node. Otherwise the node has no key below the range.
  let holdsLower: Bool
  /// Whether the range ends inside of the node.
  let holdsUpper: Bool
  /// The stem that the scan is at, if any.
  var seen: [UInt8]?
}

/// An end of a range of keys, for nodes.
private struct NodeBound {
  private let bound: KeyRange.Bound
  private let bytes: [UInt8]

  init(_ bound: KeyRange.Bound) {
    self.bound = bound
    switch bound {
    case .unbounded: bytes = []
    case .inclusive(let key), .exclusive(let key): bytes = key
    }
  }

  /// Whether the bound begins with `path`. Its first `start` bytes are known to be the same.
  func goesOn(behind path: [UInt8], from start: Int) -> Bool {
    guard bound != .unbounded, path.count <= bytes.count else { return false }
    return bytes[start..<path.count].elementsEqual(path[start...])
  }

  /// The bound of the entries of a node that it goes on in.
  func inNode(_ node: OpenNode) -> KeyRange.Bound {
    let rest = bytes[node.start...]
    if rest.count >= LongKeyLayout.innerStemBytes {
      return .inclusive(node.prefix + rest.prefix(LongKeyLayout.innerStemBytes))
    }
    if case .exclusive = bound { return .exclusive(node.prefix + rest) }
    return .inclusive(node.prefix + rest)
  }
}
