import System
import Synchronization

/// The registered sinks, and what each wants. `Log` has the one of the process.
@usableFromInline
package final class LogRouter: Sendable {
  /// The least level that any sink wants: eight bits for each domain. Read before each entry is made.
  @usableFromInline let thresholds: Atomic<UInt64>

  /// A sink, and what it wants.
  private struct Registered {
    let sink: any LogSink
    var levels: LogLevels
    /// The thread that calls an app's sink; nil for a sink that writes at once.
    let delivery: LogDelivery?

    init(_ sink: any LogSink, _ levels: LogLevels) {
      self.sink = sink
      self.levels = levels
      delivery = sink is any ImmediateSink ? nil : LogDelivery(sink)
    }

    func flush() { if let delivery { delivery.flush() } else { sink.flush() } }
  }

  private let sinks = Lock<[Registered]>([])

  init() { thresholds = Atomic(Self.thresholds([])) }

  private static func thresholds(_ sinks: [Registered]) -> UInt64 {
    LogDomain.allCases.reduce(0) { thresholds, domain in
      let level = sinks.map { $0.levels[domain] }.min() ?? .none
      return thresholds | level.severity << domain.shift
    }
  }

  // MARK: Sinks

  func add(_ sink: any LogSink, _ levels: LogLevels) {
    change { sinks in
      if let index = sinks.firstIndex(where: { $0.sink === sink }) {
        sinks[index].levels = levels
      } else {
        sinks.append(Registered(sink, levels))
      }
    }
  }

  func remove(_ sink: any LogSink) {
    let removed = change { sinks -> Registered? in
      sinks.firstIndex { $0.sink === sink }.map { sinks.remove(at: $0) }
    }
    if let removed, !isInSink, !(removed.delivery?.isCalling ?? false) { removed.flush() }
  }

  func setLevel(_ level: LogLevel, for domains: Set<LogDomain>, of sink: any LogSink) {
    change { sinks in
      guard let index = sinks.firstIndex(where: { $0.sink === sink }) else { return }
      sinks[index].levels.set(level, for: domains)
    }
  }

  func levels(of sink: any LogSink) -> LogLevels? {
    sinks.withLock { sinks in sinks.first { $0.sink === sink }?.levels }
  }

  func flush() {
    if isInSink { return }
    for registered in sinks.withLock({ $0 }) { registered.flush() }
  }

  private func change<Result>(_ body: (inout [Registered]) -> Result) -> Result {
    sinks.withLock { sinks in
      defer { thresholds.store(Self.thresholds(sinks), ordering: .relaxed) }
      return body(&sinks)
    }
  }

  private var isInSink: Bool { sinks.withLock { $0 }.contains { $0.delivery?.isCalling ?? false } }

  // MARK: Entries

  @inlinable @inline(__always)
  func isWritten(_ level: LogLevel, _ domain: LogDomain) -> Bool {
    level.severity >= (thresholds.load(ordering: .relaxed) >> domain.shift) & 0xFF
  }

  @inlinable @inline(__always)
  func write(
    _ level: LogLevel, _ domain: LogDomain, _ path: String?, _ message: () -> String,
    details: () -> [String] = { [] }
  ) {
    if isWritten(level, domain) { send(level, domain, path, message(), details()) }
  }

  @usableFromInline @inline(never)
  func send(
    _ level: LogLevel, _ domain: LogDomain, _ path: String?, _ message: String, _ details: [String]
  ) {
    let entry = LogEntry(level: level, domain: domain, database: path, message: message, details: details)
    let sinks = sinks.withLock { $0 }
    // What a sink logs goes to no sink that is called: it could go round for ever.
    let isInSink = sinks.contains { $0.delivery?.isCalling ?? false }
    var problems: [(sink: any LogSink, text: String)] = []
    func send(_ entry: LogEntry, but left: (any LogSink)? = nil) {
      var lines: [UInt8]?
      for registered in sinks
      where registered.sink !== left && entry.level >= registered.levels[entry.domain] {
        if let sink = registered.sink as? any ImmediateSink {
          let text = lines ?? entry.lines
          lines = text
          if let problem = sink.write(lines: text, of: entry) { problems.append((sink, problem)) }
        } else if !isInSink {
          registered.delivery?.enqueue(entry)
        }
      }
    }
    send(entry)
    // A sink says only once that it loses lines, so this ends.
    while let problem = problems.popLast() {
      send(
        LogEntry(level: .warning, domain: .database, database: nil, message: problem.text), but: problem.sink)
    }
  }
}
