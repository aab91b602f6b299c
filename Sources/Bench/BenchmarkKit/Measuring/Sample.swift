/// The metrics of one run.
struct Sample {
  private(set) var values: [Metric: Double] = [:]
  /// What the run did interval by interval, if it recorded that.
  private(set) var series: TimeSeries?
  /// How the engine found what the run asked for, if there is a plan.
  private(set) var plan: [String]?

  /// Runs a trial once, and reads the counters before and after. The time doesn't include reading the
  /// counters.
  ///
  /// `delay` receives the seconds that the run took. It works for some time and returns the seconds that this
  /// took.
  static func take(_ trial: Trial, operations: Int, delay: ((Double) -> Double)? = nil) throws -> Sample {
    ProcessUsage.resetPeakMemory()
    let before = ProcessUsage.Transfers.current()
    let allocationsBefore = AllocationCounter.current()
    let cpuBefore = Clock.cpuNanoseconds()
    let (duration, seconds) = try MeasuredRegion.run {
      let start = Clock.nanoseconds()
      let duration = try trial.run()
      let whole = Double(Clock.nanoseconds() - start) / 1e9
      let seconds =
        switch duration {
        case .whole: whole
        case .seconds(let measured): measured
        case .latencies(_, let measured): measured ?? whole
        }
      return (duration, seconds + (delay?(seconds) ?? 0))
    }
    let cpuAfter = Clock.cpuNanoseconds()
    let allocationsAfter = AllocationCounter.current()
    let after = ProcessUsage.Transfers.current()
    var sample = Sample()
    if let allocationsBefore, let allocationsAfter {
      sample.values[.allocations] = Double(allocationsAfter - allocationsBefore)
    }
    sample.values[.peakMemoryBytes] = Double(ProcessUsage.peakMemory() ?? 0)
    sample.values[.settledMemoryBytes] = ProcessUsage.residentMemory().map(Double.init)
    sample.values[.anonymousMemoryBytes] = ProcessUsage.anonymousMemory().map(Double.init)
    if case .latencies(let histogram, _) = duration {
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
      if let first = before.diskBytesRead, let last = after.diskBytesRead {
        sample.values[.diskBytesRead] = Double(last - first)
      }
    }
    let fileBytes = Double(try trial.fileBytes())
    sample.values[.fileBytes] = fileBytes
    if let logical = trial.logicalBytes, logical.written > 0 {
      sample.values[.writeAmplification] = written / Double(logical.written)
    }
    if let logical = trial.logicalBytes, logical.stored > 0, fileBytes > 0 {
      sample.values[.spaceAmplification] = fileBytes / Double(logical.stored)
    }
    for (metric, value) in try trial.metrics() { sample.values[metric] = value }
    sample.series = trial.series()
    sample.plan = trial.plan()
    return sample
  }
}

/// The samples of one engine, in the order of the rounds.
struct SampleSeries {
  private(set) var samples: [Sample] = []

  mutating func append(_ sample: Sample) { samples.append(sample) }

  mutating func removeFirst() { samples.removeFirst() }

  /// The series of the samples that have one; nil if none has.
  var series: TimeSeriesList? {
    let all = samples.compactMap(\.series)
    return all.isEmpty ? nil : TimeSeriesList(all)
  }

  /// The plan of the last sample; nil if it has none.
  var plan: [String]? { samples.last?.plan }

  /// One value per sample; nil if a sample doesn't have the metric.
  func values(of metric: Metric) -> [Double]? {
    let values = samples.compactMap { $0.values[metric] }
    return values.count == samples.count && !values.isEmpty ? values : nil
  }
}
