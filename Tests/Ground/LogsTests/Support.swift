import Foundation
import Storage
import TestSupport
import Touchstone

@testable import Logs

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

/// The lines of a file. Throws if the last one isn't whole.
func wholeLines(_ path: String) throws -> [String] {
  let text = try String(contentsOfFile: path, encoding: .utf8)
  if text.isEmpty { return [] }
  guard text.last == "\n" else {
    throw StorageError(.damaged, "the last line isn't whole: \(text.suffix(100))")
  }
  return text.dropLast().split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
}

func entry(_ message: String, _ level: LogLevel = .info, details: [String] = [], database: String? = nil)
  -> LogEntry
{
  LogEntry(level: level, domain: .database, database: database, message: message, details: details)
}
