// The writer that the tests of the engine on a server start, and kill.
//
//   server write LOCATION NAME
//       commits for ever: each transaction adds 1 to the entry `count` and puts an entry NAME-n. Prints "did n" when a commit
//       has returned, and "unknown n" when its outcome can't be found out.

#if POSTGRES
  import ChildSupport
  import StorageConformance
  import StoragePostgres
  import TestTools

  enum ServerCommands: ChildCommands {
    static let name = "server"
    static let usage = "write LOCATION NAME"

    static func run(_ arguments: [String]) throws {
      guard arguments.count == 3, arguments[0] == "write" else { throw WrongUsage() }
      let engine = try open(arguments[1])
      let keyspace = try again { try engine.read { try $0.keyspace(named: "k") } }
      guard let keyspace else { throw WrongUsage() }
      for number in 1... {
        do {
          try again { try engine.write { try commit("\(arguments[2])-\(number)", keyspace, $0) } }
          say("did \(number)")
        } catch let error as StorageError where error.code == .ioError {
          say("unknown \(number)")
        }
      }
    }

    private static func open(_ location: String) throws -> any StorageEngine {
      while true {
        do {
          return try PostgresEngines.postgres.open(
            location, EngineOptions(creation: .openExisting, durability: .full))
        } catch let error as StorageError where error.code == .ioError {
          // The server restarts, or another one takes over.
          usleep(20_000)
        }
      }
    }

    /// Runs a transaction again that wasn't committed.
    private static func again<Result>(_ body: () throws -> Result) throws -> Result {
      while true {
        do { return try body() } catch let error as StorageError
          where [.conflict, .snapshotExpired, .readOnly, .busy].contains(error.code)
        {
          usleep(1_000)
        }
      }
    }

    private static func commit(
      _ key: String, _ keyspace: Keyspace, _ transaction: any WriteTransaction
    ) throws {
      let count = try transaction.bytes(Array("count".utf8), in: keyspace) ?? []
      let next = (Int(String(decoding: count, as: UTF8.self)) ?? 0) + 1
      try transaction.put(Array("count".utf8), Array("\(next)".utf8), in: keyspace)
      try transaction.put(Array(key.utf8), Array("\(next)".utf8), in: keyspace)
    }
  }
#endif
