import Fleece
import Storage
import TestSupport
import Transport

@testable import Replication

/// What a replay has compared, and where it differs from the recording.
final class ReplayNotes: Sendable {
  struct Difference: Hashable, Sendable {
    let kind: String
    let detail: String
  }
  private struct State {
    var differences: [Difference] = []
    var compared = 0
  }
  private let state = Lock(State())

  /// The number of messages that were compared.
  var compared: Int { state.withLock { $0.compared } }
  var differences: [Difference] { state.withLock { $0.differences } }

  func count() { state.withLock { $0.compared += 1 } }
  func note(_ kind: String, _ detail: String) {
    state.withLock { $0.differences.append(Difference(kind: kind, detail: detail)) }
  }

  /// Compares two values, and notes it if they aren't equal.
  func compare<Value: Equatable>(_ kind: String, _ what: String, _ own: Value?, _ recorded: Value?) {
    guard own != recorded else { return }
    func text(_ value: Value?) -> String { value.map { "\($0)" } ?? "none" }
    note(kind, "\(what): \(text(own)) for \(text(recorded))")
  }

  /// Compares properties without some of them.
  func compare(
    _ kind: String, _ what: String, _ own: [String: String], _ recorded: [String: String],
    without ignored: Set<String>
  ) {
    for name in Set(own.keys).union(recorded.keys).sorted() where !ignored.contains(name) {
      if own[name] != recorded[name] {
        note("\(kind).\(name)", "\(what): \(own[name] ?? "none") for \(recorded[name] ?? "none")")
      }
    }
  }
}

/// Items of an answer without the zeros at the end.
func trimmed(_ items: [JSONValue]) -> [JSONValue] {
  var items = items.map { $0.isNull ? 0 : $0 }
  while items.last == 0 { items.removeLast() }
  return items
}

/// Histories are separated by commas, and some peers write blanks behind them.
func history(_ properties: [String: String]) -> [String] {
  (properties["history"] ?? "").split(separator: ",").map { $0.filter { $0 != " " } }
}

/// How long a session may take in seconds before it counts as hanging.
let replayLimit = environmentVariable("TOUCHSTONE_REPLAY_LIMIT").flatMap { Double($0) } ?? 120

/// Counts the bytes that one end of a pipe sends.
final class CountingTransport: MessageTransport {
  private let inner: PipeTransport
  private let sent = Lock<UInt64>(0)

  init(_ inner: PipeTransport) { self.inner = inner }

  var sentBytes: UInt64 { sent.withLock { $0 } }

  func receive(_ completion: @escaping @Sendable (Result<[[UInt8]], TransportClose>) -> Void) {
    inner.receive(completion)
  }
  func send(_ messages: [[UInt8]], _ completion: @escaping @Sendable (TransportClose?) -> Void) {
    sent.withLock { $0 += UInt64(messages.reduce(0) { $0 + $1.count }) }
    inner.send(messages, completion)
  }
  func close(_ close: TransportClose) { inner.close(close) }
}

/// A time that tests move. Checkpoints are saved at once.
final class ReplayTimer: CallTimer {
  /// The delay that isn't waited for, in seconds.
  static let atOnce = 0.001

  private let manual = ManualTimer()
  private let workers = Workers()

  var now: Double { manual.now }

  func advance(by seconds: Double) { manual.advance(by: seconds) }

  func schedule(after seconds: Double, _ body: @escaping @Sendable () -> Void) -> TimerToken {
    guard seconds <= Self.atOnce else { return manual.schedule(after: seconds, body) }
    let isCancelled = Lock(false)
    workers.enqueue { if !isCancelled.withLock({ $0 }) { body() } }
    return TimerToken { isCancelled.withLock { $0 = true } }
  }
}

extension Workers {
  /// Runs `body` after everything that was enqueued, and waits for it.
  func sync<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
    let result = Lock<Result?>(nil)
    let done = CountingSemaphore()
    enqueue {
      let value = body()
      result.withLock { $0 = value }
      done.signal()
    }
    done.wait()
    guard let value = result.withLock({ $0 }) else { preconditionFailure("the work has run") }
    return value
  }
}
