// Commands of the child process that the tests of replication start, and kill.
//
//   replication run ENGINE ENGINE DIRECTORY SEED   changes the databases "a" and "b" at random and replicates them, until
//                                                  it is killed; prints a line after each round

import Replication
import Storage
import StorageConformance
import TestSupport
import Touchstone

enum ReplicationChild: ChildGroup {
  static let name = "replication"
  static let usage = "run ENGINE ENGINE DIRECTORY SEED"

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 5, arguments[0] == "run", let seed = UInt64(arguments[4]) else {
      throw WrongUsage()
    }
    func open(_ name: String, _ engine: String) throws -> Database {
      let engine = EngineName(rawValue: engine)
      return try Database.open(
        name, in: arguments[3], options: DatabaseOptions(engine: engine, key: try key(of: engine)))
    }
    let databases = [try open("a", arguments[1]), try open("b", arguments[2])]
    var random = SeededGenerator(seed: seed)
    say("open")
    while true {
      for (place, database) in databases.enumerated() {
        try database.inBatch {
          for _ in 0..<(50 + random.below(300)) {
            // Each side changes documents of its own, and some that both change.
            let id = "\(random.once(in: 8) ? "both" : place == 0 ? "a" : "b")\(random.below(2_000))"
            if random.once(in: 10) {
              if try database.document(id) != nil { try database.delete(id) }
            } else {
              var document = try database.document(id)?.toMutable() ?? MutableDocument(id: id)
              document["n"] = .int(Int64(random.below(1 << 30)))
              if random.once(in: 12) {
                document.set(
                  try Blob([UInt8](repeating: UInt8(random.below(200)), count: random.below(9_000))),
                  forKey: "blob")
              }
              try database.save(&document)
            }
          }
        }
      }
      var configuration = ReplicatorConfiguration(databases[0], .database(databases[1]))
      configuration.direction = random.pick([.push, .pull, .pushAndPull, .pushAndPull])
      configuration.checkpointDelay = 0.002
      configuration.skipsTombstonesOfFirstPull = false
      let replicator = Replicator(configuration)
      let stopped = CountingSemaphore()
      let token = replicator.observeStatus { if $0.activity == .stopped { stopped.signal() } }
      replicator.start()
      stopped.wait()
      token.cancel()
      if let error = replicator.status.error { throw error }
      say("round")
    }
  }
}
