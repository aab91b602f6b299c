// The processes of simulations.
//
//   simulation ENGINE DIRECTORY write|read   opens the database `test`, says "open", does the operations that it reads,
//                                            a line each, and answers each with a line; "closed" at the end of its input
//   simulation run                           runs the script that it reads
//   simulation trace                         the same, and says what all replicas have after each step
//   simulation search SEED STEPS [ATTEMPTS]    runs simulations of both kinds from that seed on, until one fails; leaves out
//                                              steps so often; says how many steps each engine had a part in
//   simulation replicas SEED STEPS [ATTEMPTS]  runs only those of several replicas
//   simulation seeds SEED COUNT STEPS ENGINE…  runs so many of both kinds on these engines

import ChildSupport
import Foundation
import Simulation
import TestSupport
import Touchstone

enum SimulationCommands: ChildCommands {
  static let name = "simulation"
  static let usage =
    "ENGINE DIRECTORY write|read | run|trace | search|replicas SEED STEPS [ATTEMPTS] | seeds SEED COUNT STEPS ENGINE…"

  static func run(_ arguments: [String]) throws {
    switch (arguments.first, arguments.count) {
    case ("run", 1), ("trace", 1):
      var script = ""
      while let line = readLine() { script += line + "\n" }
      if ReplicaSimulation.isScript(script) {
        try ReplicaSimulation(script: script).run(trace: arguments[0] == "trace" ? { say($0) } : nil)
      } else {
        try Simulation(script: script).run()
      }
      say("passed")
    case ("search", 3), ("search", 4), ("replicas", 3), ("replicas", 4):
      guard let seed = UInt64(arguments[1]), let steps = Int(arguments[2]),
        let attempts = Int(arguments.dropFirst(3).first ?? "120")
      else { throw WrongUsage() }
      let server = onlyEngines == nil ? [SimulatedPlace.serverEngine].compactMap { $0 } : []
      try search(
        from: seed, count: .max, steps, attempts, everyEngine + server, onlyReplicas: arguments[0] != "search"
      )
    case ("seeds", 5...):
      guard let seed = UInt64(arguments[1]), let count = Int(arguments[2]), let steps = Int(arguments[3])
      else { throw WrongUsage() }
      let engines = arguments[4...].map { EngineName(rawValue: $0) }
      try search(from: seed, count: count, steps, 120, engines, onlyReplicas: false)
      say("passed")
    case (_, 3): try work(arguments[0], arguments[1], isReadOnly: arguments[2] == "read")
    default: throw WrongUsage()
    }
  }

  private static func search(
    from first: UInt64, count: Int, _ steps: Int, _ attempts: Int, _ engines: [EngineName], onlyReplicas: Bool
  ) throws {
    let shared = engines.filter(isShared).map { "\($0)" }
    let all = engines.map { "\($0)" }
    for number in 0..<count {
      let seed = first + UInt64(number)
      var counts: [String: Int] = [:]
      if !onlyReplicas {
        let simulation = Simulation(seed: seed, steps: steps, engines: all)
        try simulation.runAndReduce(seed: seed, attempts: attempts)
        counts.merge(simulation.stepsByEngine, uniquingKeysWith: +)
      }
      if !shared.isEmpty {
        let simulation = ReplicaSimulation(seed: seed, steps: steps, engines: shared)
        try simulation.runAndReduce(seed: seed, attempts: attempts)
        counts.merge(simulation.stepsByEngine, uniquingKeysWith: +)
      }
      let said = counts.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      say("\(seed) \(said.joined(separator: " "))")
    }
  }

  private static func work(_ engine: String, _ directory: String, isReadOnly: Bool) throws {
    let database = try SimulatedPlace(directory).open(EngineName(rawValue: engine), isReadOnly: isReadOnly)
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
