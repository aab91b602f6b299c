import Simulation
import TestSupport
import Testing

@Suite("One simulation of everything")
struct SimulationTests {
  /// Simulations, and steps of each; ten times as many hours in the long run.
  static let count = times(4, sanitized: 10, long: 1_500)
  static let steps = isLong ? 200 : 60

  @Test("several processes on one database answer as a model does", arguments: 0..<UInt64(count))
  func simulate(_ number: UInt64) throws {
    // A short run can't tell much: it repeats known seeds.
    let seed = isLong ? testSeed &+ number : 1 + number
    try Simulation(seed: seed, steps: Self.steps, engines: allEngines.map { "\($0)" })
      .runAndReduce(seed: seed)
  }

  /// The same of replicas. A replication takes longer than another step.
  static let replicaCount = times(3, sanitized: 6, long: 500)

  /// Two processes at a time have a replica open.
  static let replicaEngines = allEngines.filter(isShared).map { "\($0)" }

  @Test(
    "replicas come together as a model says", .enabled(if: !replicaEngines.isEmpty),
    arguments: 0..<UInt64(replicaCount))
  func simulateReplicas(_ number: UInt64) throws {
    let seed = isLong ? testSeed &+ number : 1 + number
    try ReplicaSimulation(seed: seed, steps: Self.steps, engines: Self.replicaEngines)
      .runAndReduce(seed: seed)
  }

  @Test(
    "databases on a server answer as a model does, alone and as replicas",
    .enabled(if: SimulatedPlace.serverEngine != nil))
  func simulateServer() throws {
    let seed = isLong ? testSeed : 1
    let child = try startChild(
      .whole,
      [
        "simulation", "seeds", "\(seed)", "\(times(2, sanitized: 3, long: 200))", "\(Self.steps)", "postgres",
        "sqlite",
      ])
    let ending = try child.wait(seconds: nil)
    expect(ending, equals: .exited(0), "\(child.outputText) \(child.errorText.suffix(2_000))")
    expect(child.outputText.contains("postgres="), "\(child.outputText)")
  }

  @Test("a script of replicas is what it was after it was written and read")
  func replicaScript() throws {
    let simulation = ReplicaSimulation(seed: 7, steps: 400, engines: ["sqlite", "lmdb"])
    let script = try simulation.script()
    let again = try ReplicaSimulation(script: script)
    expect(again.settings, equals: simulation.settings)
    expect(again.steps, equals: simulation.steps)
    expect(ReplicaSimulation.isScript(script))
    try expect(!ReplicaSimulation.isScript(Simulation(seed: 7, steps: 3, engines: ["sqlite"]).script()))
  }

  @Test("a script is what it was after it was written and read")
  func script() throws {
    let simulation = Simulation(seed: 7, steps: 400, engines: ["sqlite", "lmdb"])
    let again = try Simulation(script: try simulation.script())
    expect(again.settings, equals: simulation.settings)
    expect(again.steps, equals: simulation.steps)
  }
}
