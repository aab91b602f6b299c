import TestSupport

/// Runs `body` with a seed of its own, which a failure prints; TOUCHSTONE_SEED repeats one.
/// `offset` tells the runs of one test apart.
func withSeed(offset: UInt64 = 0, _ body: (inout SeededGenerator) throws -> Void) rethrows {
  var generator = SeededGenerator(seed: testSeed &+ offset)
  do { try body(&generator) } catch {
    Issue.record("failed with TOUCHSTONE_SEED=\(testSeed): \(error)")
    throw error
  }
}

extension ReadTransaction {
  /// The stored record of a document, or of its tombstone.
  func record(of id: String) throws -> [UInt8]? {
    for keyspace in try ["docs", "deleted"].compactMap({ try keyspace(named: $0) }) {
      if let record = try bytes(Array(id.utf8), in: keyspace) { return record }
    }
    return nil
  }
}
