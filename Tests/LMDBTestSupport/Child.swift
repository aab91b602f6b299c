import Foundation
import StorageLMDB
import TestSupport
import Testing

/// A process of `lmdb-child`, which is built beside the bundle of the tests.
package final class Child {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  package init(_ command: String, _ path: String, _ number: Int = 0, mapBytes: Int? = nil) throws {
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
  package func waitUntilReady() { _ = output.fileHandleForReading.availableData }

  /// Lets it end, and gives its exit status.
  package func end() throws -> Int32 {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
  }

  /// Starts it, and waits until it ends. Gives its exit status.
  package static func run(
    _ command: String, _ path: String, _ number: Int = 0, mapBytes: Int? = nil
  ) throws -> Int32 {
    try Child(command, path, number, mapBytes: mapBytes).end()
  }
}
