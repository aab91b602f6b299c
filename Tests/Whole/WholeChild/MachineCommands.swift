// The machine of simulations: system calls that fail, and losses of power.
//
//   machine power ENGINE SEED STATES     looks at so many states that a power cut leaves, of scripts from that seed on
//   machine failing ENGINE SEED CALLS    lets so many calls fail
//   machine search SEED [ATTEMPTS]       both on all engines, until one is wrong; attempts to leave out steps, or 60
//   machine run                          runs the script that it reads
//   machine count ENGINE                 says how many calls of each kind reach the program's own
//   machine work FOLDER ENGINE full|normal    a process of `failing`

import ChildSupport
import Machine
import Simulation
import TestSupport
import Touchstone

enum MachineCommands: ChildCommands {
  static let name = "machine"
  static let usage =
    "power ENGINE SEED STATES | failing ENGINE SEED CALLS | search SEED [ATTEMPTS] | run | count ENGINE"

  static func run(_ arguments: [String]) throws {
    switch (arguments.first, arguments.count) {
    case ("run", 1):
      while let line = readLine() { say("passed \(try MachineScript(text: line).run())") }
    case ("power", 4), ("failing", 4):
      guard let seed = UInt64(arguments[2]), let count = Int(arguments[3]) else { throw WrongUsage() }
      try run(seed, count) { script(arguments[0], arguments[1], $0, count) }
    case ("search", 2), ("search", 3):
      guard let seed = UInt64(arguments[1]), let attempts = Int(arguments.dropFirst(2).first ?? "60") else {
        throw WrongUsage()
      }
      let engines = MachineScript.engines
      try run(seed, .max, attempts) {
        // Other steps find more than other moments of the same steps.
        script($0 % 2 == 0 ? "power" : "failing", engines[Int($0 / 2 % UInt64(engines.count))], $0, 60)
      }
    case ("count", 2):
      let counts = try MachineWork.counts(engine: arguments[1])
      say(
        counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key)=\($0.value)" }.joined(
          separator: " "))
    case ("work", 4):
      try MachineWork.run(
        folder: arguments[1], engine: arguments[2], isFull: arguments[3] == "full", say: say)
    default: throw WrongUsage()
    }
  }

  private static func script(_ kind: String, _ engine: String, _ seed: UInt64, _ count: Int) -> MachineScript
  {
    kind == "power"
      ? MachineScript(PowerLoss(seed: seed, engine: engine, steps: 50, states: min(count, 250)))
      : MachineScript(FailingCalls(seed: seed, engine: engine, steps: min(count, 60)))
  }

  /// Runs scripts from a seed on until they have done enough.
  private static func run(
    _ seed: UInt64, _ count: Int, _ attempts: Int = 60, _ script: (UInt64) -> MachineScript
  ) throws {
    var (seed, done) = (seed, 0)
    while done < count {
      let line = "seed \(seed), \(done) done\n"
      _ = write(2, line, line.utf8.count)
      do { done += try script(seed).runAndReduce(attempts: attempts) } catch {
        throw Mismatch("seed \(seed): \(error)")
      }
      seed += 1
    }
    say("passed \(done)")
  }
}
