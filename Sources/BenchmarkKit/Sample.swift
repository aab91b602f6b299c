/// What one run took.
struct Sample {
  private(set) var values: [Metric: Double] = [:]

  /// Runs a trial once between two looks at the counters. Reading the counters is outside of the
  /// time.
  static func take(_ trial: Trial, operations: Int) throws -> Sample {
    ProcessUsage.resetPeakMemory()
    let before = ProcessUsage.Transfers.current()
    let cpuBefore = Clock.cpuNanoseconds()
    let start = Clock.nanoseconds()
    let duration = try trial.run()
    let end = Clock.nanoseconds()
    let cpuAfter = Clock.cpuNanoseconds()
    let after = ProcessUsage.Transfers.current()
    var sample = Sample()
    sample.values[.peakMemoryBytes] = Double(ProcessUsage.peakMemory() ?? 0)
    sample.values[.settledMemoryBytes] = ProcessUsage.residentMemory().map(Double.init)
    var seconds = Double(end - start) / 1e9
    switch duration {
    case .whole: break
    case .seconds(let measured): seconds = measured
    case .latencies(let histogram, let measured):
      if let measured { seconds = measured }
      for (metric, quantile) in Metric.latencies {
        sample.values[metric] = Double(histogram.value(at: quantile)) / 1e9
      }
    }
    sample.values[.seconds] = seconds
    sample.values[.opsPerSecond] = seconds > 0 ? Double(operations) / seconds : 0
    sample.values[.cpuSeconds] = Double(cpuAfter - cpuBefore) / 1e9
    let written = Double((after?.bytesWritten ?? 0) - (before?.bytesWritten ?? 0))
    sample.values[.bytesWritten] = written
    if let before, let after {
      sample.values[.bytesRead] = Double(after.bytesRead - before.bytesRead)
      sample.values[.systemCalls] = Double(after.calls - before.calls)
    }
    let fileBytes = Double(try trial.fileBytes())
    sample.values[.fileBytes] = fileBytes
    if let logical = trial.logicalBytes, logical.written > 0 {
      sample.values[.writeAmplification] = written / Double(logical.written)
    }
    if let logical = trial.logicalBytes, logical.stored > 0, fileBytes > 0 {
      sample.values[.spaceAmplification] = fileBytes / Double(logical.stored)
    }
    return sample
  }
}

/// The samples of one engine, metric by metric, in the order of the rounds.
struct SampleSeries {
  private(set) var samples: [Sample] = []

  mutating func append(_ sample: Sample) { samples.append(sample) }

  mutating func removeFirst() { samples.removeFirst() }

  /// One value a sample, or nil when not every sample has it.
  func values(of metric: Metric) -> [Double]? {
    let values = samples.compactMap { $0.values[metric] }
    return values.count == samples.count && !values.isEmpty ? values : nil
  }
}
