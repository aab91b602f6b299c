import TestTools

@testable import StorageEncrypted

/// The cache of decrypted nodes.
struct NodeCacheTests {
  private static let nodeBytes = 100

  private func node(_ number: UInt64, version: UInt64 = 0) -> Node {
    let seal = Seal(session: 1, middle: 2, nonce: version)
    return Node(capacity: Self.nodeBytes, reference: Reference(number: number, seal: seal), level: 0)
  }

  @Test("few nodes all stay, also while the cache grows") func growth() throws {
    let cache = NodeCache(byteCount: 1 << 20, nodeBytes: Self.nodeBytes)
    // The nodes aren't spread evenly over the parts of the cache.
    let nodes = (0..<UInt64(cache.capacity / 2)).map { node($0) }
    for (count, added) in nodes.enumerated() {
      expect(cache.find(added.reference) == nil)
      cache.insert(added)
      for known in stride(from: 0, through: count, by: 97) {
        expect(cache.find(nodes[known].reference) === nodes[known])
      }
    }
    cache.removeAll()
    expect(nodes.allSatisfy { cache.find($0.reference) == nil })
  }

  @Test("a full cache keeps as many nodes as it may, and those that are read again") func limit() throws {
    let cache = NodeCache(byteCount: 100_000, nodeBytes: Self.nodeBytes)
    let wanted = (0..<20).map { node($0) }
    for node in wanted { cache.insert(node) }
    let others = (100..<UInt64(100 + 10 * cache.capacity)).map { node($0) }
    for node in others {
      cache.insert(node)
      for node in wanted { expect(cache.find(node.reference) === node) }
    }
    expect((wanted + others).filter { cache.find($0.reference) != nil }.count, equals: cache.capacity)
    try expect(cache.find(try #require(others.last).reference) != nil)
  }

  @Test("random inserts and removals never find a node that was removed, or another one") func random() {
    var generator = SeededGenerator(seed: testSeed)
    let cache = NodeCache(byteCount: 20_000, nodeBytes: Self.nodeBytes)
    var inserted: [UInt64: Node] = [:]
    for round in 0..<20_000 {
      let number = UInt64(generator.below(3 * cache.capacity))
      switch generator.below(4) {
      case 0:
        if let removed = inserted.removeValue(forKey: number) { cache.remove(removed.reference) }
      case 1, 2:
        // A node that is written again has another reference.
        if let replaced = inserted[number] { cache.remove(replaced.reference) }
        let added = node(number, version: UInt64(round))
        cache.insert(added)
        inserted[number] = added
        expect(cache.find(added.reference) === added, "seed \(testSeed)")
      default:
        let known = inserted[number]
        let found = cache.find((known ?? node(number)).reference)
        expect(found == nil || found === known, "seed \(testSeed)")
      }
    }
    expect(inserted.values.filter { cache.find($0.reference) != nil }.count <= cache.capacity)
  }
}
