import Foundation
import TestSupport
import Testing
import Touchstone

/// Runs `body` with a seed of its own, which a failure prints; TOUCHSTONE_SEED repeats one.
/// `offset` tells the runs of one test apart.
func withSeed(offset: UInt64 = 0, _ body: (inout SeededGenerator) throws -> Void) rethrows {
  var generator = SeededGenerator(seed: testSeed &+ offset)
  do { try body(&generator) } catch {
    Issue.record("failed with TOUCHSTONE_SEED=\(testSeed): \(error)")
    throw error
  }
}
