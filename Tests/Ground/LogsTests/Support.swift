import Foundation
import Storage
import TestTools

@testable import Logs

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
