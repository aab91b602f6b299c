/// An artificial slowdown, to test whether a gate finds it.
package struct PlantedDelay: Sendable {
  /// The share of a run's time or instructions that is added: 0.15 is 15%.
  package let share: Double
  /// The instructions of each run by its identity, if instructions are counted. If nil, time is added.
  package let instructions: [String: Int]?

  /// Makes a delay. See the properties.
  package init(share: Double, instructions: [String: Int]? = nil) {
    self.share = share
    self.instructions = instructions
  }

  /// Works for a share of `seconds`, or for that share of the run's known instructions. Returns the seconds
  /// that it took.
  package func run(_ identity: String, seconds: Double) -> Double {
    let start = Clock.nanoseconds()
    if let instructions {
      PlantedDelay.spin(Int(Double(instructions[identity] ?? 0) * share) / PlantedDelay.instructionsPerStep)
    } else {
      while Double(Clock.nanoseconds() - start) / 1e9 < seconds * share { PlantedDelay.spin(20) }
    }
    return Double(Clock.nanoseconds() - start) / 1e9
  }

  /// The instructions of one step of `spin` on x86-64, counted by callgrind.
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

  // The loop writes this value, so that the compiler can't remove the loop. It is never read.
  private nonisolated(unsafe) static var sink: UInt64 = 0
}
