import CLMDB
import Foundation
import Glibc
import Storage
import TestSupport
import Testing

@testable import StorageLMDB

extension TemporaryDirectory {
  /// The path of an engine's file in it.
  func file() -> String { file("main.mdb") }
}

func open(
  _ path: String, _ creation: EngineOptions.Creation = .openOrCreate, mapBytes: Int = MapSize.wanted()
) throws -> LMDBEngine {
  try LMDBEngine(
    path: path, options: EngineOptions(creation: creation, durability: .none), mapBytes: mapBytes)
}

/// The code of the `StorageError` that `body` throws, or nil when it throws none.
func code(_ body: () throws -> Void) throws -> StorageError.Code? {
  do {
    try body()
    return nil
  } catch let error as StorageError {
    return error.code
  }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension WriteTransaction {
  func delete(_ key: [UInt8], in keyspace: Keyspace) throws -> Bool {
    try key.withUnsafeBytes { try delete($0, in: keyspace) }
  }
}

/// A process of `lmdb-child`, which is built beside the bundle of the tests.
final class Child {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  init(_ command: String, _ path: String, _ number: Int = 0, mapBytes: Int? = nil) throws {
    process.executableURL = URL(fileURLWithPath: try #require(childExecutable("lmdb-child")))
    process.arguments = [command, path, "\(number)"]
    if let mapBytes {
      process.environment = ProcessInfo.processInfo.environment.merging([MapSize.variable: "\(mapBytes)"]) {
        $1
      }
    }
    process.standardInput = input
    process.standardOutput = output
    try process.run()
  }

  /// Waits for what it says.
  func waitUntilReady() { _ = output.fileHandleForReading.availableData }

  /// Lets it end, and gives its exit status.
  func end() throws -> Int32 {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
  }

  static func run(_ command: String, _ path: String, _ number: Int = 0, mapBytes: Int? = nil) throws -> Int32
  {
    try Child(command, path, number, mapBytes: mapBytes).end()
  }
}
