/// What the scripts of a database may use.
public struct ScriptLimits: Sendable, Hashable {
  /// The memory of the program that runs scripts, in bytes, besides its own code. At least 16 MiB.
  public var memoryBytes: Int
  /// The time that one call of a function may take, in seconds.
  public var callSeconds: Double

  /// The limits that apply unless others are set: 512 MiB and 5 seconds.
  public init(memoryBytes: Int = 512 << 20, callSeconds: Double = 5) {
    self.memoryBytes = memoryBytes
    self.callSeconds = callSeconds
  }

  /// How long a script that is asked to stop may go on.
  static let graceSeconds = 1.0

  /// How long the program may say nothing while it works.
  var silenceSeconds: Double { callSeconds + Self.graceSeconds + 2 }
}
