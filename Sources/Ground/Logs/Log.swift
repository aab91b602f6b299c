import System

/// The log of all databases of the process: where entries go, and which are written.
///
/// At the start, warnings and errors go to standard error, as in Couchbase Lite. The environment variable
/// `TOUCHSTONE_LOG` sets other levels for it (`LogLevels.init(_:)`).
///
/// ```swift
/// Log.setLevel(.none)                                    // nothing more on standard error
/// Log.add(try LogFiles(directory: "logs"), levels: LogLevels(.info))
/// ```
///
/// An entry that no sink wants costs one check, and isn't formatted. Keys are never logged, at no level.
/// Property values, also those in parameters of queries, appear at `debug` only.
public enum Log {
  /// The environment variable with the levels of standard error.
  static let variable = "TOUCHSTONE_LOG"

  /// The sink for standard error, which is registered at the start.
  public static let standardError = StandardErrorSink()

  @usableFromInline
  package static let router = {
    let router = LogRouter()
    router.add(standardError, levelsAtStart)
    return router
  }()

  private static var levelsAtStart: LogLevels {
    guard let text = EnvironmentVariable.value(variable) else { return LogLevels(.warning) }
    do { return try LogLevels(text) } catch {
      let entry = LogEntry(
        level: .warning, domain: .database, database: nil, message: "the variable \(variable): \(error)")
      standardError.write(entry)
      return LogLevels(.warning)
    }
  }

  // MARK: Sinks

  /// Registers a sink, from now on. If it is registered already, only its levels change.
  public static func add(_ sink: any LogSink, levels: LogLevels = LogLevels(.info)) {
    router.add(sink, levels)
  }

  /// Removes a sink, after it has received the entries so far, and flushes it. Does nothing if it isn't
  /// registered.
  public static func remove(_ sink: any LogSink) { router.remove(sink) }

  /// Sets the level of a sink for some domains. Does nothing if the sink isn't registered.
  public static func setLevel(
    _ level: LogLevel, for domains: Set<LogDomain> = .all, of sink: any LogSink = Log.standardError
  ) {
    router.setLevel(level, for: domains, of: sink)
  }

  /// The levels of a sink; nil if it isn't registered.
  public static func levels(of sink: any LogSink = Log.standardError) -> LogLevels? {
    router.levels(of: sink)
  }

  /// Waits until every sink has received the entries so far, and flushes them. Inside a call of a sink it does
  /// nothing.
  public static func flush() { router.flush() }

  // MARK: Entries

  /// Whether any sink wants entries of this level and domain.
  @inlinable @inline(__always)
  package static func isWritten(_ level: LogLevel, _ domain: LogDomain) -> Bool {
    router.isWritten(level, domain)
  }

  /// Writes an entry about the database at `path`. The message is made only if a sink wants it.
  @inlinable @inline(__always)
  package static func write(
    _ level: LogLevel, _ domain: LogDomain, _ path: String?, _ message: @autoclosure () -> String,
    details: @autoclosure () -> [String] = []
  ) {
    router.write(level, domain, path, message, details: details)
  }
}
