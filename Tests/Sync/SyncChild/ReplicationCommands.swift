// Commands of the child process that the tests of replication start, and kill.
//
//   replication run ENGINE ENGINE DIRECTORY SEED   changes the databases "a" and "b" at random and replicates them, until
//                                                  it is killed; prints a line after each round
//   replication serve ENGINE DIRECTORY PORT SEED   listens with the database "b" on a port, prints the port, and changes the
//                                                  database at random until it is killed; with the seed 0 it doesn't
//   replication sync ENGINE DIRECTORY PORT SEED    changes the database "a" at random and replicates it with the listener
//                                                  on a port, until it is killed; prints a line after each round
//   replication http ENGINE DIRECTORY PORT SEED    does so over HTTP

import ChildSupport
import Storage
import StorageConformance
import TestSupport
import Touchstone
import TouchstoneServer
import TouchstoneSync

#if canImport(Glibc)
  import Glibc
#endif

enum ReplicationCommands: ChildCommands {
  static let name = "replication"
  static let usage =
    "run ENGINE ENGINE DIRECTORY SEED | serve ENGINE DIRECTORY PORT SEED | sync ENGINE DIRECTORY PORT SEED | http ENGINE DIRECTORY PORT SEED"

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 5, let seed = UInt64(arguments[4]) else { throw WrongUsage() }
    func open(_ name: String, _ engine: String, _ directory: String) throws -> Database {
      let engine = EngineName(rawValue: engine)
      return try Database.open(
        name, in: directory, options: DatabaseOptions(engine: engine, key: try key(of: engine)))
    }
    var random = SeededGenerator(seed: seed)
    switch arguments[0] {
    case "run":
      let databases = [
        try open("a", arguments[1], arguments[3]), try open("b", arguments[2], arguments[3]),
      ]
      say("open")
      while true {
        for (place, database) in databases.enumerated() {
          try change(database, place == 0 ? "a" : "b", 50 + random.below(300), &random)
        }
        if let error = replicate(databases[0], .database(databases[1]), &random) { throw error }
        say("round")
      }
    case "serve":
      let database = try open("b", arguments[1], arguments[2])
      var configuration = SyncListenerConfiguration(databases: ["b": database])
      configuration.port = Int(arguments[3]) ?? 0
      configuration.servesHTTP = true
      let listener = SyncListener(configuration)
      try listener.start()
      say("\(listener.port ?? 0)")
      while true {
        if seed != 0 { try change(database, "b", 1 + random.below(60), &random) }
        usleep(20_000)
      }
    case "sync", "http":
      let scheme = arguments[0] == "http" ? "http" : "ws"
      let database = try open("a", arguments[1], arguments[2])
      say("open")
      while true {
        try change(database, "a", 20 + random.below(100), &random)
        let error = replicate(database, try .url("\(scheme)://127.0.0.1:\(arguments[3])/b"), &random)
        // The listener is killed too.
        say(error == nil ? "round" : "lost")
        if error != nil { usleep(50_000) }
      }
    default: throw WrongUsage()
    }
  }

  /// Changes documents in one transaction: each side its own, and some that both change.
  private static func change(
    _ database: Database, _ prefix: String, _ count: Int, _ random: inout SeededGenerator
  )
    throws
  {
    try database.inBatch {
      for _ in 0..<count {
        let id = "\(random.once(in: 8) ? "both" : prefix)\(random.below(2_000))"
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

  /// Replicates once and returns its error.
  private static func replicate(
    _ database: Database, _ target: ReplicatorTarget, _ random: inout SeededGenerator
  )
    -> ReplicationError?
  {
    var configuration = ReplicatorConfiguration(database, target)
    configuration.direction = random.pick([.push, .pull, .pushAndPull, .pushAndPull])
    configuration.checkpointDelay = 0.002
    configuration.skipsTombstonesOfFirstPull = false
    configuration.maximumRetries = 0
    let replicator = Replicator(configuration)
    let stopped = CountingSemaphore()
    let token = replicator.observeStatus { if $0.activity == .stopped { stopped.signal() } }
    replicator.start()
    stopped.wait()
    token.cancel()
    return replicator.status.error
  }
}
