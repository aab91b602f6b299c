import HTTP
import System

/// The threads of a server that run its handlers, and what happens while they run.
struct HandlerThreads: Sendable {
  private let reading: Workers
  private let writing: Workers
  private let long: Workers
  private let computing: Workers
  private let indexing: Workers
  /// Run what waits for a client: it has taken a part of an answer, or has sent one of a request.
  let events: Workers
  /// Tell handlers that nobody waits for them any more. No handler runs here, so this needs none of their threads.
  let cancellations: Workers

  /// Makes threads, of which `maximum` run requests that take long, and up to `spare` more wait for their clients. There are less of the
  /// others.
  init(maximum: Int, spare: Int) {
    let (maximum, spare) = (max(1, maximum), max(0, spare))
    long = Workers(maximum: maximum, spare: spare)
    computing = Workers(maximum: max(1, maximum / 2), spare: spare / 4)
    indexing = Workers(maximum: max(1, maximum / 2), spare: spare / 4)
    reading = Workers(maximum: max(1, maximum / 4), spare: spare / 4)
    writing = Workers(maximum: max(1, maximum / 4), spare: spare / 4)
    events = Workers(maximum: 4)
    cancellations = Workers(maximum: 2)
  }

  subscript(workload: HTTPWorkload) -> Workers {
    switch workload {
    case .reading: reading
    case .writing: writing
    case .long: long
    case .computing: computing
    case .indexing: indexing
    }
  }

  private var all: [Workers] { HTTPWorkload.allCases.map { self[$0] } + [events, cancellations] }

  /// Waits until no handler runs, at most until `deadline` on the monotonic clock. Returns whether that is so. A handler that calls this
  /// doesn't wait for itself.
  func waitUntilQuiet(until deadline: Double) -> Bool {
    // What ends on one kind of threads may go on with a job on another kind.
    while !all.allSatisfy({ $0.waitUntilQuiet(seconds: 0) }) {
      for workers in all {
        guard workers.waitUntilQuiet(seconds: deadline - MonotonicClock.now) else { return false }
      }
    }
    return true
  }

  /// Whether requests wait because all threads of their kind wait for clients.
  var areStarved: Bool { HTTPWorkload.allCases.contains { self[$0].isStarved } }
}
