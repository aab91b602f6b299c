import Storage
import Synchronization

/// Counts what a service does, for `_metrics`.
final class ServiceMetrics: Sendable {
  /// What was counted.
  struct Counts: Sendable {
    /// Requests by method and status.
    var requests: [Key: UInt64] = [:]
    /// The seconds from a request to its answer's head, summed, and how many took up to each bound.
    var seconds = 0.0
    var buckets = [UInt64](repeating: 0, count: ServiceMetrics.bounds.count)
    var answered: UInt64 = 0
    /// Continuous feeds, long polls and event streams that are open.
    var openFeeds = 0
  }

  struct Key: Hashable, Comparable {
    var method: String
    var status: Int
    static func < (a: Key, b: Key) -> Bool { (a.method, a.status) < (b.method, b.status) }
  }

  /// The bounds of the histogram of latencies, in seconds.
  static let bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  private static let methods: Set<String> = ["GET", "HEAD", "PUT", "POST", "DELETE", "COPY", "OPTIONS"]

  private let counts = Lock(Counts())

  /// Counts a request that was answered after `seconds`.
  func count(_ method: String, _ status: Int, seconds: Double) {
    let method = Self.methods.contains(method) ? method : "other"
    counts.withLock { counts in
      counts.requests[Key(method: method, status: status), default: 0] += 1
      counts.seconds += seconds
      counts.answered += 1
      if let bucket = Self.bounds.firstIndex(where: { seconds <= $0 }) { counts.buckets[bucket] += 1 }
    }
  }

  /// Counts feeds that are open.
  func changeOpenFeeds(by difference: Int) { counts.withLock { $0.openFeeds += difference } }

  /// What has been counted so far.
  var current: Counts { counts.withLock { $0 } }

  /// The text for Prometheus (text format 0.0.4).
  func text(databases: Int, tasks: Int) -> String {
    let counts = current
    var text = """
      # HELP touchstone_http_requests_total Requests that were answered, by method and status.
      # TYPE touchstone_http_requests_total counter

      """
    for (key, count) in counts.requests.sorted(by: { $0.key < $1.key }) {
      text += "touchstone_http_requests_total{method=\"\(key.method)\",status=\"\(key.status)\"} \(count)\n"
    }
    text += """
      # HELP touchstone_http_request_seconds Time from a request to the head of its answer.
      # TYPE touchstone_http_request_seconds histogram

      """
    var sum: UInt64 = 0
    for (bound, count) in zip(Self.bounds, counts.buckets) {
      sum += count
      text += "touchstone_http_request_seconds_bucket{le=\"\(bound)\"} \(sum)\n"
    }
    text += """
      touchstone_http_request_seconds_bucket{le="+Inf"} \(counts.answered)
      touchstone_http_request_seconds_sum \(counts.seconds)
      touchstone_http_request_seconds_count \(counts.answered)
      # HELP touchstone_http_open_feeds Feeds of changes that are open.
      # TYPE touchstone_http_open_feeds gauge
      touchstone_http_open_feeds \(counts.openFeeds)
      # HELP touchstone_databases Databases that are served.
      # TYPE touchstone_databases gauge
      touchstone_databases \(databases)
      # HELP touchstone_active_tasks Tasks that run, as in _active_tasks.
      # TYPE touchstone_active_tasks gauge
      touchstone_active_tasks \(tasks)

      """
    return text
  }
}
