import System

/// How important a log entry is.
public enum LogLevel: Int, Sendable, Hashable, CaseIterable, Comparable {
  /// Everything, also values that may come from documents, such as the parameters of queries.
  case debug
  /// Each query and each piece of background work. It holds IDs and the texts of queries, and no other content
  /// of documents.
  case verbose
  /// What happens seldom: opening, closing, indexes, conversions, slow queries.
  case info
  /// What is wrong and may be unnoticed: a failed commit, a long wait, failed background work.
  case warning
  /// Damage.
  case error
  /// Nothing is written. No entry has this level.
  case none

  /// Whether `left` is less important than `right`.
  @inlinable
  public static func < (left: LogLevel, right: LogLevel) -> Bool { left.severity < right.severity }

  /// 0 for `debug`, 5 for `none`. A switch, so that the check before each entry is inlined everywhere.
  @inlinable
  package var severity: UInt64 {
    switch self {
    case .debug: 0
    case .verbose: 1
    case .info: 2
    case .warning: 3
    case .error: 4
    case .none: 5
    }
  }
}

/// What a log entry is about.
public enum LogDomain: Int, Sendable, Hashable, CaseIterable {
  /// Databases: opening, transactions, background work, files.
  case database
  /// Queries and live queries.
  case query
  /// Making and rebuilding indexes.
  case index
  /// Replication.
  case sync
  /// Connections.
  case network
  /// Upgrade of Couchbase Lite 1.x, and exchange with 2.x and 3.x.
  case upgrade

  /// The place of the domain's threshold in `Log.thresholds`.
  @inlinable
  package var shift: UInt64 {
    switch self {
    case .database: 0
    case .query: 8
    case .index: 16
    case .sync: 24
    case .network: 32
    case .upgrade: 40
    }
  }
}

extension Set where Element == LogDomain {
  /// All domains.
  public static var all: Set<LogDomain> { Set(LogDomain.allCases) }
}

// Levels as text, for the environment and the command line:
//
//   levels := part (" "+ part)*
//   part   := level [":" domain ("," domain)*]
//   level  := "debug" | "verbose" | "info" | "warning" | "error" | "none"
//   domain := "database" | "query" | "index" | "sync" | "network" | "upgrade" | "all"
//
// A part without domains is about all of them. A later part replaces what an earlier one says.

/// The least level that is written, for each domain.
///
/// ```swift
/// var levels = LogLevels(.warning)
/// levels[.query] = .verbose
/// ```
public struct LogLevels: Sendable, Hashable, CustomStringConvertible {
  private var levels: [LogLevel]

  /// Makes the same level for all domains.
  public init(_ level: LogLevel = .none) {
    levels = [LogLevel](repeating: level, count: LogDomain.allCases.count)
  }

  /// Reads levels from text: `warning`, `verbose:query,index`, or several of these with spaces between them, of
  /// which later ones replace earlier ones. Throws `invalidArgument` for anything else.
  public init(_ text: String) throws {
    self.init()
    let parts = text.split(separator: " ")
    guard !parts.isEmpty else { throw Self.invalid(text, "it is empty") }
    for part in parts {
      let halves = part.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard let level = LogLevel.allCases.first(where: { "\($0)" == halves[0] }) else {
        throw Self.invalid(text, "there is no level '\(halves[0])'")
      }
      var domains = Set<LogDomain>.all
      if halves.count == 2 {
        domains = []
        for name in halves[1].split(separator: ",", omittingEmptySubsequences: false) {
          if name == "all" {
            domains = .all
          } else if let domain = LogDomain.allCases.first(where: { "\($0)" == name }) {
            domains.insert(domain)
          } else {
            throw Self.invalid(text, "there is no domain '\(name)'")
          }
        }
      }
      set(level, for: domains)
    }
  }

  private static func invalid(_ text: String, _ reason: String) -> StorageError {
    StorageError(
      .invalidArgument,
      "'\(text)' isn't a list of log levels, because \(reason); an example is 'warning verbose:query,index'")
  }

  /// The level of a domain.
  public subscript(domain: LogDomain) -> LogLevel {
    get { levels[domain.rawValue] }
    set { levels[domain.rawValue] = newValue }
  }

  /// Sets the level of some domains.
  public mutating func set(_ level: LogLevel, for domains: Set<LogDomain>) {
    for domain in domains { self[domain] = level }
  }

  /// The levels in the form that `init(_:)` reads.
  public var description: String {
    guard Set(levels).count > 1 else { return "\(levels[0])" }
    return LogDomain.allCases.map { "\(self[$0]):\($0)" }.joined(separator: " ")
  }
}
