/// The metrics of a run, named as in results files (docs/results.md).
package enum Metric: String, CaseIterable, Sendable, Codable {
  /// Wall-clock time of a run, in seconds.
  case seconds
  /// Operations per second.
  case opsPerSecond = "ops_per_second"
  /// Processor time of all threads in a run, user and system, in seconds.
  case cpuSeconds = "cpu_seconds"
  /// Bytes passed to the kernel by `write` and similar calls.
  case bytesWritten = "bytes_written"
  /// Greatest resident memory of the process during the run, in bytes.
  case peakMemoryBytes = "peak_rss_bytes"
  /// Size of the files after the run, in bytes.
  case fileBytes = "file_bytes"
  /// Bytes requested from the kernel by `read` and similar calls.
  case bytesRead = "bytes_read"
  /// Calls of `read`, `write` and similar system calls.
  case systemCalls = "system_calls"
  /// Calls of malloc and similar functions by all threads. They are counted in an extra run in a separate
  /// process.
  case allocations
  /// Resident memory at the end of the run, before anything is closed, in bytes.
  case settledMemoryBytes = "settled_rss_bytes"
  /// The anonymous part of the resident memory. It doesn't contain pages of mapped files, which the system
  /// can take back and other processes can share.
  case anonymousMemoryBytes = "anonymous_bytes"
  /// Processor time of another process that has a part in the run, in seconds.
  case remoteCPUSeconds = "remote_cpu_seconds"
  /// Processor time of the database server's processes, if they are on this machine, in seconds.
  case serverCPUSeconds = "server_cpu_seconds"
  /// The anonymous part of the resident memory of that process.
  case remoteAnonymousBytes = "remote_anonymous_bytes"
  /// Bytes that this process sent over the network.
  case sentBytes = "sent_bytes"
  /// Bytes that this process received over the network.
  case receivedBytes = "received_bytes"
  /// Messages that were sent and received over the network.
  case messages
  /// Bytes that were sent and received over the network divided by the bytes of data that the run had to move.
  case wireAmplification = "wire_amplification"
  /// Bytes written divided by the bytes of data that the run had to write.
  case writeAmplification = "write_amplification"
  /// Size of the files divided by the bytes of data in them.
  case spaceAmplification = "space_amplification"
  /// Bytes that the process gave to the disk, work in the background included, divided by the bytes of data that the
  /// run wrote.
  case diskWriteAmplification = "disk_write_amplification"
  /// The greatest size of the files during the run divided by the bytes of data in them.
  case peakSpaceAmplification = "peak_space_amplification"
  /// The longest time in which nearly no operation ended, in seconds; 0 if there was none.
  case longestStall = "longest_stall"
  /// The time from the last operation until the process used no processor and wrote nothing any more, in seconds.
  case secondsUntilQuiet = "seconds_until_quiet"
  /// Bytes that the kernel read from the disk during the run, including pages of mapped files.
  case diskBytesRead = "disk_bytes_read"
  /// The share of the files' pages that were in the kernel's page cache when the run began.
  case cachedShare = "cached_share"
  /// The share of the files' pages that the kernel kept when it was asked to drop them all, before anything
  /// was opened.
  case keptShare = "kept_share"
  /// The median time of single operations, in seconds.
  case latencyP50 = "latency_p50"
  /// The 95th percentile of the time of single operations, in seconds.
  case latencyP95 = "latency_p95"
  /// The 99th percentile of the time of single operations, in seconds.
  case latencyP99 = "latency_p99"
  /// The 99.9th percentile of the time of single operations, in seconds.
  case latencyP999 = "latency_p999"
  /// The time of the longest operation, in seconds.
  case latencyMax = "latency_max"

  /// Whether every result has this metric. The others are present only where they were measured.
  package var isRequired: Bool {
    switch self {
    case .seconds, .opsPerSecond, .cpuSeconds, .bytesWritten, .peakMemoryBytes, .fileBytes: true
    default: false
    }
  }

  /// Whether a greater value is better.
  package var isBetterWhenGreater: Bool { self == .opsPerSecond }

  /// The unit, for people and dashboards; empty for ratios.
  package var unit: String {
    switch self {
    case .seconds, .cpuSeconds, .remoteCPUSeconds, .serverCPUSeconds, .latencyP50, .latencyP95, .latencyP99,
      .latencyP999,
      .latencyMax, .longestStall, .secondsUntilQuiet:
      "s"
    case .opsPerSecond: "1/s"
    case .bytesWritten, .peakMemoryBytes, .fileBytes, .bytesRead, .settledMemoryBytes,
      .anonymousMemoryBytes, .remoteAnonymousBytes, .diskBytesRead, .sentBytes, .receivedBytes:
      "B"
    case .systemCalls, .allocations: "calls"
    case .messages: "messages"
    case .writeAmplification, .spaceAmplification, .wireAmplification, .diskWriteAmplification,
      .peakSpaceAmplification, .cachedShare, .keptShare:
      ""
    }
  }

  /// The percentiles of single operations, each with its quantile.
  static let latencies: [(metric: Metric, quantile: Double)] = [
    (.latencyP50, 0.5), (.latencyP95, 0.95), (.latencyP99, 0.99), (.latencyP999, 0.999), (.latencyMax, 1),
  ]
}
