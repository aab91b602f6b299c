#if canImport(Glibc)
  import Glibc
#endif

/// The state of the machine during a run: whether others used it, and whether its speed changed.
public struct RunConditions: Codable, Equatable, Sendable {
  /// The seed for the order of engines and for the random data of workloads.
  public var seed: UInt64
  /// The seconds of the calibration loop before the first workload and after the last, each the minimum of
  /// `Calibration.repetitions`.
  public var calibration: Ends
  /// The load average of the last minute (`/proc/loadavg`) at the start and at the end.
  public var load: Ends
  /// The share of processor time that the host of a virtual machine gave to others (`/proc/stat`), from 0 to
  /// 1.
  public var stealShare: Double

  /// A value at the start and at the end of a run.
  public struct Ends: Codable, Equatable, Sendable {
    /// The value before the first workload.
    public var start: Double
    /// The value after the last workload.
    public var end: Double

    /// Makes a pair of values.
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

  /// Makes conditions. See the properties.
  public init(seed: UInt64, calibration: Ends, load: Ends, stealShare: Double) {
    self.seed = seed
    self.calibration = calibration
    self.load = load
    self.stealShare = stealShare
  }

  /// How much slower the machine was at the end than at the start: 0.05 is 5%.
  public var drift: Double { calibration.start > 0 ? calibration.end / calibration.start - 1 : 0 }

  /// A drift above this, in either direction, causes a note: absolute times within the run aren't comparable.
  public static let tolerableDrift = 0.05
  /// A share of stolen time above this causes a note.
  public static let tolerableSteal = 0.02

  /// Returns what a reader of the results should know, one sentence each; empty if the machine was quiet.
  ///
  /// `cores` is the number of processors. A run keeps one busy. The load before the run is that of other
  /// processes.
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

/// Observes the machine from its creation until `conditions()`.
package struct MachineWatch {
  private let seed: UInt64
  private let calibration: Double
  private let load: Double
  private let time: ProcessorTime

  /// Starts. Runs the calibration loop, which takes about 0.2 s.
  package init(seed: UInt64) {
    self.seed = seed
    load = MachineWatch.load()
    time = ProcessorTime.current()
    calibration = Calibration.run()
  }

  /// Returns the conditions since the start. Runs the calibration loop again.
  package func conditions() -> RunConditions {
    let now = ProcessorTime.current()
    let total = now.total - time.total
    return RunConditions(
      seed: seed, calibration: .init(start: calibration, end: Calibration.run()),
      load: .init(start: load, end: MachineWatch.load()),
      stealShare: total > 0 ? (now.stolen - time.stolen) / total : 0)
  }

  /// The first number of `/proc/loadavg`; 0 if it can't be read.
  private static func load() -> Double {
    TextFile.read("/proc/loadavg")?.split(separator: " ").first.flatMap { Double($0) } ?? 0
  }

  /// The ticks of all processors since boot, from the first line of `/proc/stat`. Its eighth number is the
  /// stolen time.
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

/// A loop whose time shows the current speed of the machine.
package enum Calibration {
  /// The number of loops. The minimum time counts, so short disturbances don't matter.
  package static let repetitions = 5

  /// Returns the seconds of the fastest of `repetitions` loops of about 15 ms. A loop does arithmetic, and
  /// reads in random order from 1 MiB.
  ///
  /// A larger table would vary more than the effects to detect: the system may or may not give it huge pages,
  /// and other processes use a varying part of the last-level cache.
  package static func run() -> Double {
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
    // Uses the result of the loops, so that the compiler can't remove them.
    return state == 0 ? best.nextUp : best
  }
}
