import Foundation
import Logs
import Storage
import TestSupport

/// Collects the entries about the databases in one directory. Other tests log at the same time.
final class Collected: Sendable {
  private let entries = Lock<[LogEntry]>([])
  private let directory: String

  init(_ directory: String) { self.directory = directory }

  /// A sink that collects.
  func sink() -> FunctionSink {
    FunctionSink { [self] entry in
      guard entry.database?.hasPrefix(directory) ?? false else { return }
      entries.withLock { $0.append(entry) }
    }
  }

  var all: [LogEntry] { entries.withLock { $0 } }
  var messages: [String] { all.map(\.message) }
}

/// Runs `body` with a directory and the entries about its databases, at a level.
func withLog(_ level: LogLevel, _ body: (String, Collected) throws -> Void) throws {
  try withTemporaryDirectory { directory in
    let collected = Collected(directory)
    let sink = collected.sink()
    Log.add(sink, levels: LogLevels(level))
    defer { Log.remove(sink) }
    try body(directory, collected)
  }
}
