import Bytes
import Fleece
import Logs
import Storage

extension QueryError: LoggedError {
  /// The code alone: messages may quote values.
  package var logText: String { "\(code)" }
}

/// What the queries of a database log: each run at `verbose`, and each text of a slow query once at `info`, with
/// its plan.
package final class QueryLog: Sendable {
  /// The number of slow queries that are remembered. Then all are forgotten, and logged again.
  static let remembered = 4_096

  private let path: String
  /// The hashes of their texts, which may be long.
  private let slow = Lock<Set<Int>>([])

  /// Makes a log for the database at `path`.
  package init(_ path: String) { self.path = path }

  /// Begins to time a run. Returns 0 if nobody wants to know.
  @inline(__always)
  func begin(_ threshold: UInt64?) -> UInt64 {
    Log.isWritten(.info, .query) && (threshold != nil || Log.isWritten(.verbose, .query)) ? LogClock.now : 0
  }

  /// Ends a run that `begin` timed. `rows` is the number of rows; nil if the caller's code received them.
  @inline(never)
  func end(
    _ begin: UInt64, _ threshold: UInt64?, _ query: Query, _ compiled: CompiledQuery, rows: Int?,
    _ parameters: [String: JSONValue]
  ) {
    let time = LogClock.now - begin
    Log.write(
      .verbose, .query, path, "ran in \(Self.words(time, rows)): \(query.logText)")
    if !parameters.isEmpty {
      Log.write(
        .debug, .query, path, "its parameters",
        details: parameters.sorted { $0.key < $1.key }.map {
          "$\($0.key) = \((try? $0.value.canonicalJSON()) ?? "?")"
        })
    }
    guard let threshold, time >= threshold else { return }
    let text = query.logText
    let isNew = slow.withLock { slow in
      if slow.count >= QueryLog.remembered { slow = [] }
      return slow.insert(ByteString(text).hashValue).inserted
    }
    guard isNew else { return }
    Log.write(
      .info, .query, path, "slow query, \(Self.words(time, rows)): \(text)",
      details: QueryExplanation(compiled, nil).lines)
  }

  private static func words(_ time: UInt64, _ rows: Int?) -> String {
    LogText.milliseconds(time)
      + (rows.map { ", \($0) rows" } ?? ", with the code that received the rows")
  }

  /// A query was planned.
  func planned(_ query: Query, _ compiled: CompiledQuery) {
    Log.write(.verbose, .query, path, "planned: \(query.logText)")
    Log.write(.debug, .query, path, "its plan", details: QueryExplanation(compiled, nil).lines)
  }

  /// A run failed. The caller gets the error.
  @inline(never)
  func hasFailed(_ query: Query, _ error: any Error) {
    Log.write(.verbose, .query, path, "failed (\(LogText.of(error))): \(query.logText)")
  }
}

extension Query {
  /// The query's text as it was given, or as it prints.
  var logText: String { text ?? "\(statement)" }
}
