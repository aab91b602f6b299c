import Foundation
import TestSupport
import Testing

/// Scripts that once failed, as a simulation printed them: Tests/Whole/FoundScripts/WHAT-WAS-WRONG.jsonl. One that
/// needs RocksDB or WiredTiger ends with -rocksdb.jsonl or -wiredtiger.jsonl.
@Suite("Scripts that simulations have found", .enabled(if: !isSanitized))
struct FoundScriptTests {
  private static let folder = URL(filePath: #filePath).appending(path: "../../FoundScripts")
    .standardizedFileURL
  static let names = try? FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    .filter { name in
      ["rocksdb", "wiredtiger"].allSatisfy {
        !name.hasSuffix("-\($0).jsonl") || optionalEngines.map(\.rawValue).contains($0)
      }
    }

  @Test("there are some")
  func some() { expect(Self.names?.isEmpty == false) }

  @Test("a script that once failed passes", arguments: names ?? [])
  func run(_ name: String) throws {
    let script = try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
    let isOfMachine = script.hasPrefix("{\"power\"") || script.hasPrefix("{\"failing\"")
    let child = try startChild(.whole, [isOfMachine ? "machine" : "simulation", "run"], hasInput: true)
    try child.write(Array(script.utf8))
    child.endInput()
    let ending = try child.wait(seconds: nil)
    expect(ending, equals: .exited(0), "\(child.outputText) \(child.errorText.suffix(2_000))")
  }
}
