/// Receives log entries. Register it with `Log.add(_:levels:)`.
///
/// An app's own sink is called on a thread of the log, one call at a time, in the order of the entries. The
/// database never waits for it, so it may block and may use databases. What it logs itself, on that thread, goes
/// only to standard error and log files. If it is too slow, entries above about 4 MiB are dropped, and an entry
/// says how many.
///
/// `StandardErrorSink` and `LogFiles` write before the call that logs returns, so that a crash loses nothing.
public protocol LogSink: AnyObject, Sendable {
  /// Takes an entry.
  func write(_ entry: LogEntry)
  /// Brings what was written to its final place, for example to the disk.
  func flush()
}

extension LogSink {
  /// Does nothing.
  public func flush() {}
}

/// A sink that writes an entry at once, on the thread that logs. It calls nothing that could log or that could
/// wait for a database.
protocol ImmediateSink: LogSink {
  /// Writes the lines of an entry. Returns a text for the other sinks when it begins to lose lines.
  func write(lines: [UInt8], of entry: LogEntry) -> String?
}

extension ImmediateSink {
  /// Writes the entry.
  public func write(_ entry: LogEntry) { _ = write(lines: entry.lines, of: entry) }
}

/// A sink that passes entries to a function.
///
/// ```swift
/// Log.add(FunctionSink { entry in print(entry.text) }, levels: LogLevels(.info))
/// ```
public final class FunctionSink: LogSink {
  private let function: @Sendable (LogEntry) -> Void

  /// Makes a sink. `function` is called as `LogSink` describes.
  public init(_ function: @escaping @Sendable (LogEntry) -> Void) { self.function = function }

  /// Calls the function.
  public func write(_ entry: LogEntry) { function(entry) }
}

/// Writes entries to standard error, each with one call of the system.
public final class StandardErrorSink: ImmediateSink {
  /// Makes a sink. `Log.standardError` is the one that is registered at the start.
  public init() {}

  func write(lines: [UInt8], of entry: LogEntry) -> String? {
    // A standard error that is closed or full can't be reported anywhere.
    _ = WholeWrite.write(lines, to: 2)
    return nil
  }
}
