import System

#if canImport(Glibc)
  import Glibc
#endif

/// An error that says what of it may be logged. Its description may hold content of documents.
package protocol LoggedError: Error {
  /// The error without content of documents.
  var logText: String { get }
  /// Whether stored data is damaged.
  var isDamage: Bool { get }
}

extension LoggedError {
  package var isDamage: Bool { false }
}

extension StorageError: LoggedError {
  /// The description, which names files and nothing that is stored in them.
  package var logText: String { description }
  package var isDamage: Bool { code == .damaged }
}

/// Texts for log entries.
package enum LogText {
  /// An error for the log. Of an error that doesn't say what may be logged, only its type.
  package static func of(_ error: any Error) -> String {
    (error as? any LoggedError)?.logText ?? (error is CancellationError ? "cancelled" : "\(type(of: error))")
  }

  /// A time in milliseconds.
  package static func milliseconds(_ nanoseconds: UInt64) -> String {
    let tenths = (nanoseconds + 50_000) / 100_000
    return "\(tenths / 10).\(tenths % 10) ms"
  }

  /// The level of an error that nobody else may see: `error` for damage, nothing special for a closed database,
  /// otherwise `warning`.
  package static func level(of error: any Error) -> LogLevel {
    if isDamage(error) { return .error }
    let code = (error as? StorageError)?.code
    return code == .closed || code == .inUse || error is CancellationError ? .verbose : .warning
  }

  /// Whether an error says that stored data is damaged.
  package static func isDamage(_ error: any Error) -> Bool { (error as? any LoggedError)?.isDamage ?? false }
}

/// Nanoseconds of a clock that only goes forward. 0 means that no time was taken.
package enum LogClock {
  /// The time now.
  @inline(__always)
  package static var now: UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
