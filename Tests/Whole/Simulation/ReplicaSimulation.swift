import Foundation
import StorageConformance
import TestSupport

/// A run of steps of several replicas from a seed, and what to do when it fails: as `Simulation`.
package struct ReplicaSimulation: Sendable {
  package struct Failure: Error, CustomStringConvertible {
    package let simulation: ReplicaSimulation
    package let seed: UInt64
    package let message: String

    /// The message, and lines that `whole-child simulation run` runs again.
    package var description: String {
      let lines = (try? simulation.script()) ?? "?"
      return "seed \(seed): \(message)\nrun again with whole-child simulation run:\n\(lines)"
    }
  }

  package var settings: ReplicaWorld.Settings
  package var steps: [ReplicaStep]

  /// Draws one from a seed. A few replicas have two processes.
  package init(seed: UInt64, steps count: Int, engines: [String]) {
    var random = SeededGenerator(seed: seed)
    let replicas = (0..<(2 + random.below(2))).map { _ in
      World.Settings(
        engine: random.pick(engines), workers: random.once(in: 5) ? 2 : 1,
        lastOnlyReads: random.once(in: 4))
    }
    settings = ReplicaWorld.Settings(replicas: replicas)
    var generator = ReplicaGenerator(seed: random.next(), settings, engines: engines)
    steps = (0..<count).map { _ in generator.next() }
  }

  /// Reads what `script` wrote.
  package init(script: String) throws {
    let lines = script.split(separator: "\n").map { Data($0.utf8) }
    let decoder = JSONDecoder()
    guard let first = lines.first else { throw Mismatch("an empty script") }
    settings = try decoder.decode(ReplicaWorld.Settings.self, from: first)
    steps = try lines.dropFirst().map { try decoder.decode(ReplicaStep.self, from: $0) }
  }

  /// Whether a script is one of replicas.
  package static func isScript(_ script: String) -> Bool {
    (try? ReplicaSimulation(script: String(script.prefix { $0 != "\n" }))) != nil
  }

  /// One line of JSON for the settings, and one for each step.
  package func script() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let lines = [try encoder.encode(settings)] + (try steps.map { try encoder.encode($0) })
    return lines.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
  }

  /// The number of steps in which each engine has a part. A replication is one of both engines.
  package var stepsByEngine: [String: Int] {
    var (engines, counts) = (settings.replicas.map(\.engine), [String: Int]())
    for step in steps {
      let replicas: Set<Int>
      switch step {
      case .one(let replica, _), .remake(let replica, _, _): replicas = [replica]
      case .replicate(let run): replicas = [run.source, run.target]
      }
      for engine in Set(replicas.map { engines[$0] }) { counts[engine, default: 0] += 1 }
      if case .one(let replica, .convert(let new)) = step { engines[replica] = new }
    }
    return counts
  }

  /// Runs it in an empty directory. Throws what went wrong first. `trace` gets what all replicas have after each step.
  package func run(trace: ((String) -> Void)? = nil) throws {
    try withTemporaryDirectory { directory in
      let world = try ReplicaWorld(settings, in: directory)
      for (number, step) in steps.enumerated() {
        do { try world.run(step) } catch {
          trace?("step \(number), \(step)\n\(try world.trees())")
          throw Mismatch("step \(number), \(step):\n  \(error)")
        }
        trace?("step \(number), \(step)\n\(try world.trees())")
      }
      do { try world.checkAll() } catch { throw Mismatch("at the end:\n  \(error)") }
    }
  }

  /// Runs it; if it fails, leaves out steps for as long as it still does, and throws a `Failure`.
  package func runAndReduce(seed: UInt64, attempts: Int = 120) throws {
    let reduced = reduce(steps, attempts: attempts) { steps in
      var candidate = self
      candidate.steps = steps
      do { try candidate.run() } catch { return "\(error)" }
      return nil
    }
    guard let (steps, message) = reduced else { return }
    var smallest = self
    smallest.steps = steps
    throw Failure(simulation: smallest, seed: seed, message: message)
  }
}
