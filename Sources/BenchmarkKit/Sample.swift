/// What one run took.
struct Sample {
  var seconds: Double
  var cpuSeconds: Double
  var bytesWritten: Double
  var peakMemoryBytes: Double
  var fileBytes: Double

  /// Runs a trial once between two looks at the counters, with cold caches. Reading the counters is outside of the
  /// time.
  static func take(_ trial: Trial) throws -> Sample {
    CacheEviction.run()
    ProcessUsage.resetPeakMemory()
    let writtenBefore = ProcessUsage.bytesWritten() ?? 0
    let cpuBefore = Clock.cpuNanoseconds()
    let start = Clock.nanoseconds()
    let duration = try trial.run()
    let end = Clock.nanoseconds()
    let cpuAfter = Clock.cpuNanoseconds()
    let writtenAfter = ProcessUsage.bytesWritten() ?? 0
    let peak = ProcessUsage.peakMemory() ?? 0
    let seconds =
      switch duration {
      case .whole: Double(end - start) / 1e9
      case .seconds(let seconds): seconds
      }
    return Sample(
      seconds: seconds, cpuSeconds: Double(cpuAfter - cpuBefore) / 1e9,
      bytesWritten: Double(writtenAfter - writtenBefore), peakMemoryBytes: Double(peak),
      fileBytes: Double(try trial.fileBytes()))
  }
}

/// The samples of one engine, metric by metric, in the order of the rounds.
struct SampleSeries {
  private(set) var seconds: [Double] = []
  private(set) var cpuSeconds: [Double] = []
  private(set) var bytesWritten: [Double] = []
  private(set) var peakMemoryBytes: [Double] = []
  private(set) var fileBytes: [Double] = []

  mutating func append(_ sample: Sample) {
    seconds.append(sample.seconds)
    cpuSeconds.append(sample.cpuSeconds)
    bytesWritten.append(sample.bytesWritten)
    peakMemoryBytes.append(sample.peakMemoryBytes)
    fileBytes.append(sample.fileBytes)
  }
}
