import CSQLite
import Foundation
import SQLiteLibrary
import Testing
import Touchstone

@testable import StorageConformance

/// A directory of its own for one test, removed afterwards.
final class TemporaryDirectory: Sendable {
  let path: String

  init() {
    path = NSTemporaryDirectory() + "upgrade-" + UUID().uuidString
    try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func names(_ inner: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path + "/" + inner).sorted()
  }
}

let allEngines: [EngineName] = [.sqlite, .lmdb, .sqlcipher, .sqlcipherPlain]
let isLong = ProcessInfo.processInfo.environment["TOUCHSTONE_LONG"] != nil

func key(of engine: EngineName) throws -> UserKey? {
  try Engines.type(engine).encrypts ? UserKey.raw([UInt8](repeating: 7, count: 32)) : nil
}

/// The 1.x databases of others, where they are.
let realDatabases: String? = ProcessInfo.processInfo.environment["TOUCHSTONE_DATA"]
  .map { $0 + "/cblite-1x" }.flatMap {
    FileManager.default.fileExists(atPath: $0 + "/expected.json") ? $0 : nil
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

/// Every file below a directory with its bytes and when it was written: for what must not change.
struct Files: Equatable {
  var contents: [String: [UInt8]] = [:]
  var dates: [String: Date] = [:]

  init(_ directory: String) throws {
    let manager = FileManager.default
    for name in try manager.subpathsOfDirectory(atPath: directory) {
      let path = directory + "/" + name
      dates[name] = try manager.attributesOfItem(atPath: path)[.modificationDate] as? Date
      var isDirectory: ObjCBool = false
      _ = manager.fileExists(atPath: path, isDirectory: &isDirectory)
      if !isDirectory.boolValue { contents[name] = Array(try Data(contentsOf: URL(fileURLWithPath: path))) }
    }
  }
}

func upgradeCode(of body: () throws -> Void) -> UpgradeError.Code? {
  do {
    try body()
    return nil
  } catch let error as UpgradeError { return error.code } catch {
    Issue.record("threw \(error), which is no UpgradeError")
    return nil
  }
}

/// The executable `upgrade-child`, which is built beside the bundle of the tests.
let childPath: String? = {
  let candidates = Bundle.allBundles.map(\.bundlePath) + CommandLine.arguments
  return candidates.lazy
    .map { ($0 as NSString).deletingLastPathComponent + "/upgrade-child" }
    .first { FileManager.default.isExecutableFile(atPath: $0) }
}()

/// Runs SQL on a file that is in the making.
func change(_ path: String, _ sql: String) throws {
  let connection = try Connection(
    path, library: try Library.load(Library.sqlitePath), flags: SQLITE_OPEN_READWRITE)
  defer { connection.close() }
  try connection.createCollation("REVID") { left, right in
    left.lexicographicallyPrecedes(right) ? -1 : left.elementsEqual(right) ? 0 : 1
  }
  try connection.execute(sql)
  if try connection.string("PRAGMA journal_mode") == "wal" {
    try connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
  }
}

func sha1Text(_ blob: Blob) -> String { blob.digest.text }
