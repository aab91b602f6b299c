// The processes of simulations.
//
//   simulation ENGINE DIRECTORY write|read   opens the database `test`, says "open", does the operations that it reads,
//                                            a line each, and answers each with a line; "closed" at the end of its input
//   simulation run                           runs the script that it reads
//   simulation search SEED STEPS [ATTEMPTS]    runs simulations of both kinds from that seed on, until one fails; leaves out
//                                              steps so often
//   simulation replicas SEED STEPS [ATTEMPTS]  runs only those of several replicas

import ChildSupport
import Foundation
import Simulation
import TestSupport
import Touchstone

enum SimulationCommands: ChildCommands {
  static let name = "simulation"
  static let usage = "ENGINE DIRECTORY write|read, or: run, or: search|replicas SEED STEPS [ATTEMPTS]"

  static func run(_ arguments: [String]) throws {
    switch (arguments.first, arguments.count) {
    case ("run", 1):
      var script = ""
      while let line = readLine() { script += line + "\n" }
      if ReplicaSimulation.isScript(script) {
        try ReplicaSimulation(script: script).run()
      } else {
        try Simulation(script: script).run()
      }
      say("passed")
    case ("search", 3), ("search", 4), ("replicas", 3), ("replicas", 4):
      guard var seed = UInt64(arguments[1]), let steps = Int(arguments[2]),
        let attempts = Int(arguments.dropFirst(3).first ?? "120")
      else { throw WrongUsage() }
      let engines = everyEngine.map { "\($0)" }
      let shared = everyEngine.filter(isShared).map { "\($0)" }
      while true {
        if arguments[0] == "search" {
          try Simulation(seed: seed, steps: steps, engines: engines).runAndReduce(
            seed: seed, attempts: attempts)
        }
        if !shared.isEmpty {
          try ReplicaSimulation(seed: seed, steps: steps, engines: shared).runAndReduce(
            seed: seed, attempts: attempts)
        }
        say("\(seed)")
        seed += 1
      }
    case (_, 3): try work(arguments[0], arguments[1], isReadOnly: arguments[2] == "read")
    default: throw WrongUsage()
    }
  }

  private static func work(_ engine: String, _ directory: String, isReadOnly: Bool) throws {
    let database = try openTestDatabase(engine, in: directory) {
      $0.isReadOnly = isReadOnly
      $0.creation = .openExisting
    }
    let simulated = SimulatedDatabase(database)
    say("open")
    while let line = readLine() {
      let operation = try JSONDecoder().decode(Operation.self, from: Data(line.utf8))
      say(String(decoding: try JSONEncoder().encode(simulated.answer(operation)), as: UTF8.self))
    }
    simulated.stopServing()
    try database.close()
    say("closed")
  }
}
