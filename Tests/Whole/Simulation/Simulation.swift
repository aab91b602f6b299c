import Foundation
import StorageConformance
import TestSupport

/// A run of steps from a seed, and what to do when it fails.
package struct Simulation: Codable, Sendable {
  /// A failing simulation, as short as it could be made.
  package struct Failure: Error, CustomStringConvertible {
    package let simulation: Simulation
    package let seed: UInt64
    package let message: String

    /// The message, and lines that `whole-child simulation` runs again.
    package var description: String {
      let lines = (try? simulation.script()) ?? "?"
      return "seed \(seed): \(message)\nrun again with whole-child simulation run:\n\(lines)"
    }
  }

  package var settings: World.Settings
  package var steps: [Step]

  /// Draws one from a seed. Half of them have several processes.
  package init(seed: UInt64, steps count: Int, engines: [String]) {
    var random = SeededGenerator(seed: seed)
    settings = World.Settings(
      engine: random.pick(engines), workers: random.once(in: 2) ? 1 : 2 + random.below(2),
      lastOnlyReads: random.once(in: 4))
    var generator = StepGenerator(seed: random.next(), settings, engines: engines)
    steps = (0..<count).map { _ in generator.next() }
  }

  /// Reads what `script` wrote.
  package init(script: String) throws {
    let lines = script.split(separator: "\n").map { Data($0.utf8) }
    let decoder = JSONDecoder()
    guard let first = lines.first else { throw Mismatch("an empty script") }
    settings = try decoder.decode(World.Settings.self, from: first)
    steps = try lines.dropFirst().map { try decoder.decode(Step.self, from: $0) }
  }

  /// One line of JSON for the settings, and one for each step.
  package func script() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let lines = [try encoder.encode(settings)] + (try steps.map { try encoder.encode($0) })
    return lines.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "\n")
  }

  /// The number of steps on each engine.
  package var stepsByEngine: [String: Int] {
    var (engine, counts) = (settings.engine, [String: Int]())
    for step in steps {
      counts[engine, default: 0] += 1
      if case .convert(let new) = step { engine = new }
    }
    return counts
  }

  /// Runs it in an empty directory. Throws what went wrong first.
  package func run() throws {
    try withTemporaryDirectory { directory in
      let world = try World(settings, in: directory)
      for (number, step) in steps.enumerated() {
        do { try world.run(step) } catch {
          throw Mismatch("step \(number), \(step):\n  \(error)")
        }
      }
      do { try world.checkAll() } catch { throw Mismatch("at the end:\n  \(error)") }
    }
  }

  /// Runs it; if it fails, leaves out steps for as long as it still does, at most `attempts` times, and throws a
  /// `Failure`.
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
