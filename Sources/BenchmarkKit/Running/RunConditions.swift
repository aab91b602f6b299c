#if canImport(Glibc)
  import Glibc
#endif

/// How the machine was while a run lasted: whether somebody else used it, and whether it kept its speed.
public struct RunConditions: Codable, Equatable, Sendable {
  /// The seed of the order of engines, and of what workloads draw.
  public var seed: UInt64
  /// Seconds that the calibration loop took before the first workload and after the last: each the least of
  /// `Calibration.repetitions`.
  public var calibration: Ends
  /// Processes that wanted to run, the mean of the minute before (`/proc/loadavg`), at the start and at the end.
  public var load: Ends
  /// The share of processor time that the host of a virtual machine gave to others (`/proc/stat`), 0 to 1.
  public var stealShare: Double

  /// A number at the start of a run and at its end.
  public struct Ends: Codable, Equatable, Sendable {
    /// Before the first workload.
    public var start: Double
    /// After the last.
    public var end: Double

    /// Both numbers.
    public init(start: Double, end: Double) {
      self.start = start
      self.end = end
    }
  }

  private enum CodingKeys: String, CodingKey {
    case seed
    case calibration = "calibration_seconds"
    case load
    case stealShare = "steal_share"
  }

  /// Conditions; see the properties.
  public init(seed: UInt64, calibration: Ends, load: Ends, stealShare: Double) {
    self.seed = seed
    self.calibration = calibration
    self.load = load
    self.stealShare = stealShare
  }

  /// How much slower the machine was at the end than at the start: 0.05 is 5%.
  public var drift: Double { calibration.start > 0 ? calibration.end / calibration.start - 1 : 0 }

  /// A drift beyond this, either way, is worth a note: absolute times of the run's parts don't compare.
  public static let tolerableDrift = 0.05
  /// A share of stolen time beyond this is.
  public static let tolerableSteal = 0.02

  /// What a reader of the results should know, a sentence each; empty when all was quiet.
  ///
  /// `cores`: processors of the machine. A run keeps one busy, and the load before it began is that of others.
  public func notes(cores: Int) -> [String] {
    var notes: [String] = []
    if drift.magnitude > RunConditions.tolerableDrift {
      notes.append(
        "The machine was \(Format.decimals(drift.magnitude * 100, 0))% \(drift > 0 ? "slower" : "faster") at the end "
          + "than at the start: trust ratios of the same rounds, not absolute times.")
    }
    if stealShare > RunConditions.tolerableSteal {
      notes.append(
        "The host gave \(Format.decimals(stealShare * 100, 1))% of the processors' time to other machines meanwhile."
      )
    }
    if load.start > Double(cores) / 2 {
      notes.append(
        "The machine was busy before the run began: a load of \(Format.decimals(load.start, 1)) on \(cores) cores."
      )
    }
    return notes
  }
}

/// Watches the machine from its making to `conditions()`.
public struct MachineWatch {
  private let seed: UInt64
  private let calibration: Double
  private let load: Double
  private let time: ProcessorTime

  /// Begins: takes the time of the calibration loop, about 0.2 s.
  public init(seed: UInt64) {
    self.seed = seed
    load = MachineWatch.load()
    time = ProcessorTime.current()
    calibration = Calibration.run()
  }

  /// What happened since. Runs the calibration loop again.
  public func conditions() -> RunConditions {
    let now = ProcessorTime.current()
    let total = now.total - time.total
    return RunConditions(
      seed: seed, calibration: .init(start: calibration, end: Calibration.run()),
      load: .init(start: load, end: MachineWatch.load()),
      stealShare: total > 0 ? (now.stolen - time.stolen) / total : 0)
  }

  /// The first number of `/proc/loadavg`; 0 where there is none.
  private static func load() -> Double {
    TextFile.read("/proc/loadavg")?.split(separator: " ").first.flatMap { Double($0) } ?? 0
  }

  /// Ticks of all processors since the machine began: the first line of `/proc/stat`, whose eighth number is the
  /// time that the host took away.
  private struct ProcessorTime {
    var total: Double = 0
    var stolen: Double = 0

    static func current() -> ProcessorTime {
      guard let line = TextFile.read("/proc/stat")?.split(separator: "\n").first else {
        return ProcessorTime()
      }
      let ticks = line.split(separator: " ").dropFirst().prefix(8).compactMap { Double($0) }
      return ProcessorTime(total: ticks.reduce(0, +), stolen: ticks.count == 8 ? ticks[7] : 0)
    }
  }
}

/// A loop whose time says how fast the machine is at the moment.
public enum Calibration {
  /// How often the loop runs; the least time counts, so that a short disturbance doesn't.
  public static let repetitions = 5

  /// Seconds of the fastest of `repetitions` loops of some 15 ms: arithmetic, and reads in random order from 1 MiB.
  ///
  /// Not from more: whether the system gives a larger table huge pages, and how much of the last cache others leave,
  /// changes by more than what is to be seen.
  public static func run() -> Double {
    var table = [UInt32](repeating: 0, count: 256 << 10)
    for index in table.indices { table[index] = UInt32(truncatingIfNeeded: index &* 2_654_435_761) }
    var best = Double.infinity
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    for _ in 0..<repetitions {
      let start = Clock.nanoseconds()
      table.withUnsafeBufferPointer { table in
        for _ in 0..<4_000_000 {
          state ^= state << 13
          state ^= state >> 7
          state ^= state << 17
        }
        for _ in 0..<1_000_000 {
          state = state &* 6_364_136_223_846_793_005 &+ UInt64(table[Int(state >> 46)])
        }
      }
      best = min(best, Double(Clock.nanoseconds() - start) / 1e9)
    }
    // What the loops computed is used, so that they can't be left out.
    return state == 0 ? best.nextUp : best
  }
}
