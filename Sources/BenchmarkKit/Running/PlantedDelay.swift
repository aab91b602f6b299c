/// A slowdown that is planted, to see whether a gate finds it.
public struct PlantedDelay: Sendable {
  /// The share of a run's time, or of its instructions, that is added: 0.15 is 15%.
  public let share: Double
  /// Instructions of runs by their identity, where instructions are counted; else time is added.
  public let instructions: [String: Int]?

  /// A delay; see the properties.
  public init(share: Double, instructions: [String: Int]? = nil) {
    self.share = share
    self.instructions = instructions
  }

  /// Works on: for a share of `seconds`, or of the instructions that are known of the run. Returns the seconds that it
  /// took.
  public func run(_ identity: String, seconds: Double) -> Double {
    let start = Clock.nanoseconds()
    if let instructions {
      PlantedDelay.spin(Int(Double(instructions[identity] ?? 0) * share) / PlantedDelay.instructionsPerStep)
    } else {
      while Double(Clock.nanoseconds() - start) / 1e9 < seconds * share { PlantedDelay.spin(20) }
    }
    return Double(Clock.nanoseconds() - start) / 1e9
  }

  /// What a step of `spin` takes, as callgrind counts it on x86-64.
  private static let instructionsPerStep = 10

  @inline(never)
  private static func spin(_ steps: Int) {
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    var step = 0
    while step < steps {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      step += 1
    }
    sink = state
  }

  // Written, so that the loop can't be left out; nobody reads it.
  private nonisolated(unsafe) static var sink: UInt64 = 0
}
