import Storage

/// The seed of all random tests in this process. It is printed at its first use. TOUCHSTONE_SEED sets it.
package let testSeed: UInt64 = {
  let seed =
    EnvironmentVariable.value("TOUCHSTONE_SEED").flatMap(UInt64.init) ?? UInt64.random(in: 0..<1_000_000_000)
  print("random tests run with TOUCHSTONE_SEED=\(seed)")
  return seed
}()
