import TestSupport
import Testing

/// The machine of simulations, in processes of their own: the system's calls fail, and the power is cut
/// (Tests/Whole/Machine).
@Suite("A machine whose calls fail and whose power is cut", .enabled(if: !isSanitized))
struct MachineTests {
  static let engines =
    (onlyEngines ?? [.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted] + optionalEngines).map(\.rawValue)
  /// A short run can't tell much: it repeats known seeds.
  static let seed = isLong ? testSeed : 1

  private func run(_ arguments: String...) throws -> String {
    let child = try startChild(.whole, ["machine"] + arguments)
    let ending = try child.wait(seconds: nil)
    expect(ending, equals: .exited(0), "\(child.outputText) \(child.errorText.suffix(2_000))")
    return child.outputText
  }

  @Test("calls of every kind can fail that an engine's library makes", arguments: engines)
  func counts(_ engine: String) throws {
    let counts = try run("count", engine).split { " \n".contains($0) }
    expect(counts.count, equals: 9)
    // RocksDB and WiredTiger map no file.
    let mapsNone = optionalEngines.contains { $0.rawValue == engine }
    expect(counts.allSatisfy { !$0.hasSuffix("=0") || mapsNone && $0 == "map=0" }, "\(counts)")
  }

  @Test(
    "a system call that fails loses nothing acknowledged and leaves nothing half done", arguments: engines)
  func failingCalls(_ engine: String) throws {
    try expect(run("failing", engine, "\(Self.seed)", isLong ? "2000" : "4").hasPrefix("passed"))
  }

  @Test("what a power cut leaves is what durability promises", arguments: engines)
  func powerCuts(_ engine: String) throws {
    try expect(run("power", engine, "\(Self.seed)", isLong ? "10000" : "40").hasPrefix("passed"))
  }
}
