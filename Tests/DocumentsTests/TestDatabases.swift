import Foundation
import Testing
import Touchstone

/// A directory of its own for one test, removed afterwards.
final class TemporaryDirectory: Sendable {
  let path: String

  init() {
    path = NSTemporaryDirectory() + "touchstone-" + UUID().uuidString
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// The engines that every test of this module runs on.
let allEngines: [EngineName] = [.sqlite, .lmdb, .sqlcipher, .sqlcipherPlain, .lmdbEncrypted]

func options(_ engine: EngineName) throws -> DatabaseOptions {
  var options = DatabaseOptions(engine: engine, durability: .none)
  if try Engines.type(engine).encrypts { options.key = try .raw([UInt8](repeating: 7, count: 32)) }
  return options
}

/// Runs `body` with an empty database on an engine.
func withDatabase(
  _ engine: EngineName, _ change: (inout DatabaseOptions) -> Void = { _ in },
  _ body: (Database) throws -> Void
) throws {
  let directory = TemporaryDirectory()
  var options = try options(engine)
  change(&options)
  let database = try Database.open("test", in: directory.path, options: options)
  try body(database)
  try database.close()
}

/// A reproducible source of random numbers (SplitMix64).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}

/// Runs `body` with a seed of its own, which a failure prints; TOUCHSTONE_SEED repeats one.
/// `offset` tells the runs of one test apart.
func withSeed(offset: UInt64 = 0, _ body: (inout SeededGenerator) throws -> Void) rethrows {
  var generator = SeededGenerator(seed: testSeed &+ offset)
  // An expectation that fails throws nothing, so the seed is said beforehand.
  _ = seedNotice
  do { try body(&generator) } catch {
    Issue.record("failed with TOUCHSTONE_SEED=\(testSeed): \(error)")
    throw error
  }
}

/// The seed of all random tests of this process.
let testSeed =
  ProcessInfo.processInfo.environment["TOUCHSTONE_SEED"].flatMap(UInt64.init)
  ?? UInt64.random(in: 0..<1_000_000_000)

private let seedNotice: Void = print("random tests run with TOUCHSTONE_SEED=\(testSeed)")

func code(of body: () throws -> Void) -> DocumentError.Code? {
  do {
    try body()
    return nil
  } catch let error as DocumentError { return error.code } catch {
    Issue.record("threw \(error), which is no DocumentError")
    return nil
  }
}
