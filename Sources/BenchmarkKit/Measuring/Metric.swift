/// What is measured of every run, by the names that results files use (docs/results.md says how).
public enum Metric: String, CaseIterable, Sendable, Codable {
  /// Wall clock, in seconds a run.
  case seconds
  /// Operations over seconds.
  case opsPerSecond = "ops_per_second"
  /// Processor time of all threads, user and system, in seconds a run.
  case cpuSeconds = "cpu_seconds"
  /// Bytes handed to the kernel to write.
  case bytesWritten = "bytes_written"
  /// Greatest resident memory of the process during the run, in bytes.
  case peakMemoryBytes = "peak_rss_bytes"
  /// Size of the files after the run, in bytes.
  case fileBytes = "file_bytes"
  /// Bytes asked of the kernel by `read` and its kin.
  case bytesRead = "bytes_read"
  /// Calls of `read` and `write` and their kin.
  case systemCalls = "system_calls"
  /// Calls of malloc and its kin by all threads, of one more run in a process of its own.
  case allocations
  /// Resident memory at the end of the run, before anything is closed, in bytes.
  case settledMemoryBytes = "settled_rss_bytes"
  /// Of that, what is the process's own: pages of mapped files are left out, which the system can take back and others
  /// share.
  case anonymousMemoryBytes = "anonymous_bytes"
  /// Bytes written over the bytes of the data that the run had to write.
  case writeAmplification = "write_amplification"
  /// Size of the files over the bytes of the data that they hold.
  case spaceAmplification = "space_amplification"
  /// Bytes that the kernel fetched from the disk meanwhile, also for pages of mapped files.
  case diskBytesRead = "disk_bytes_read"
  /// Which share of the files' pages lay in the kernel's page cache when the run began.
  case cachedShare = "cached_share"
  /// Which share of them it kept when it was asked to drop them all, before anything was opened.
  case keptShare = "kept_share"
  /// The median time of single operations, in seconds.
  case latencyP50 = "latency_p50"
  /// 95% of single operations took at most this, in seconds.
  case latencyP95 = "latency_p95"
  /// 99% of single operations took at most this, in seconds.
  case latencyP99 = "latency_p99"
  /// 99.9% of single operations took at most this, in seconds.
  case latencyP999 = "latency_p999"
  /// The longest operation, in seconds.
  case latencyMax = "latency_max"

  /// Whether every result has it: the others stand where they were measured.
  public var isRequired: Bool {
    switch self {
    case .seconds, .opsPerSecond, .cpuSeconds, .bytesWritten, .peakMemoryBytes, .fileBytes: true
    default: false
    }
  }

  /// Whether more of it is better.
  public var isBetterWhenGreater: Bool { self == .opsPerSecond }

  /// Its unit for people and dashboards; empty for ratios.
  public var unit: String {
    switch self {
    case .seconds, .cpuSeconds, .latencyP50, .latencyP95, .latencyP99, .latencyP999, .latencyMax: "s"
    case .opsPerSecond: "1/s"
    case .bytesWritten, .peakMemoryBytes, .fileBytes, .bytesRead, .settledMemoryBytes,
      .anonymousMemoryBytes, .diskBytesRead:
      "B"
    case .systemCalls, .allocations: "calls"
    case .writeAmplification, .spaceAmplification, .cachedShare, .keptShare: ""
    }
  }

  /// The percentiles of single operations, each with its share of them.
  static let latencies: [(metric: Metric, quantile: Double)] = [
    (.latencyP50, 0.5), (.latencyP95, 0.95), (.latencyP99, 0.99), (.latencyP999, 0.999), (.latencyMax, 1),
  ]
}
