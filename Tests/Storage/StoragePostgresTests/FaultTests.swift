import Expectations
import Foundation
import TestTools
import Testing

@testable import StoragePostgres

/// Each failure of a server has its error, or is ridden out.
@Suite(.enabled(if: hasServer))
struct FaultTests {
  @Test func aServerThatRestartsIsFoundAgain() throws {
    let server = try PostgresServer()
    let engine = try open(server.location("k"))
    let keyspace = try engine.fill(["a": "1"])
    for ending in [PostgresServer.Ending.fast, .crash] {
      let snapshot = try engine.beginRead()
      _ = try snapshot.bytes(Array("a".utf8), in: keyspace)
      var runs = 0
      let failure = try storageCode {
        try engine.write { transaction in
          runs += 1
          try transaction.put("lost", "1", in: keyspace)
          try server.stop(ending)
          try server.start()
        }
      }
      // Nothing of it is there, and it may be run again.
      expect(failure == .conflict)
      expect(runs, equals: 1)
      // A new snapshot sees the data, and the old one says that it is gone.
      try expect(
        try storageCode { _ = try snapshot.bytes(Array("a".utf8), in: keyspace) } == .snapshotExpired)
      snapshot.end()
      try expect(try engine.texts(), equals: ["a": "1"])
      let value = Lock("")
      _ = try engine.read(Array("a".utf8).span.bytes, in: keyspace) { bytes in
        let text = String(copying: bytes)
        value.withLock { $0 = text }
      }
      expect(value.withLock { $0 }, equals: "1")
      try server.stop(ending)
      try server.start()
      try engine.write { try $0.put("a", "1", in: keyspace) }
      try expect(try engine.texts(), equals: ["a": "1"])
    }
    try engine.close()
  }

  /// A socket on which nobody answers, as on a machine that hangs.
  private final class SilentHost {
    let directory: String
    private let descriptor: Int32

    init() throws {
      var template = Array("/tmp/touchstone-silent-XXXXXX".utf8CString)
      _ = try #require(mkdtemp(&template))
      directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) {
        $0.copyBytes(from: (directory + "/.s.PGSQL.5432").utf8.prefix($0.count - 1))
      }
      let status = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
      }
      try #require(status == 0 && listen(descriptor, 64) == 0)
    }

    /// The number of connections that were made since the last call.
    func asked() -> Int {
      _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
      var count = 0
      while case let client = accept(descriptor, nil, nil), client >= 0 {
        close(client)
        count += 1
      }
      return count
    }

    deinit {
      close(descriptor)
      try? FileManager.default.removeItem(atPath: directory)
    }
  }

  @Test func aHostThatDoesNotAnswerIsAskedAfterTheOthers() throws {
    let server = try PostgresServer.shared.get()
    let silent = try [SilentHost(), SilentHost()]
    let schema = "test-\(UUID().uuidString)"
    let hosts = [silent[0].directory, silent[1].directory, server.directory].joined(separator: ",")
    let location = "postgres:///postgres?host=\(hosts)&user=touchstone&connect_timeout=8#\(schema)"
    let engine = try open(location)
    expect(silent.map { $0.asked() }, equals: [1, 1])
    // Each snapshot has a connection of its own, and none of them waits.
    try engine.fill(["a": "1"])
    let snapshots = try (0..<4).map { _ in try engine.beginRead() }
    for snapshot in snapshots { snapshot.end() }
    try expect(try engine.texts(), equals: ["a": "1"])
    expect(silent.map { $0.asked() }, equals: [0, 0])
    try engine.close()
    let alone = "postgres:///postgres?host=\(silent[0].directory)&user=touchstone&connect_timeout=2#\(schema)"
    try expect(storageCode { try open(alone) { $0.reconnectSeconds = 0 } } == .ioError)
  }

  @Test func aSessionThatIsEndedCostsItsSnapshotAndNothingElse() throws {
    let server = try PostgresServer.shared.get()
    try open(try newLocation()).closing { engine in
      let keyspace = try engine.fill(["a": "1"])
      let snapshot = try engine.beginRead()
      let cursor = try snapshot.cursor(in: keyspace, .all)
      try server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%\(engine.place.schema)%'"
      )
      try expect(try storageCode { _ = try cursor.first() } == .snapshotExpired)
      try expect(try storageCode { try snapshot.scan(keyspace) { _, _ in true } } == .snapshotExpired)
      snapshot.end()
      try expect(try engine.texts(), equals: ["a": "1"])
    }
  }

  @Test func aServerThatIsAbsentIsToldAtOnce() throws {
    let directory = TemporaryDirectory()
    let location = "postgres:///postgres?host=\(directory.path)#k"
    let error = try thrown(StorageError.self) { try open(location) }
    expect(error?.code == .ioError)
    expect(error?.path, equals: location)
  }

  @Test func wrongPasswordsAndUnknownNamesAreToldApart() throws {
    let server = try PostgresServer()
    let rules = "\(server.directory)/data/pg_hba.conf"
    let before = try String(contentsOfFile: rules, encoding: .utf8)
    try ("local all reader scram-sha-256\n" + before).write(toFile: rules, atomically: false, encoding: .utf8)
    try server.sql("CREATE ROLE reader LOGIN PASSWORD 'right'")
    try server.sql("SELECT pg_reload_conf()")
    func code(_ location: String, _ creation: FileCreation = .openExisting) throws -> StorageError.Code? {
      let error = try thrown(StorageError.self) { try open(location, creation).close() }
      expect(!"\(error.map(String.init(describing:)) ?? "")".contains("secret"))
      return error?.code
    }
    let base = "postgres:///postgres?host=\(server.directory)&user=reader"
    // The rules are read again a moment later.
    try eventually { try code("\(base)#k") == .permissionDenied }
    try expect(try code("\(base)&password=secret#k") == .permissionDenied)
    try expect(try code("\(base)&password=right#k") == .notFound)
    // A role that may not make a schema uses one that is there.
    try expect(try code("\(base)&password=right#k", .openOrCreate) == .permissionDenied)
    try server.sql("CREATE SCHEMA k AUTHORIZATION reader")
    try expect(try code("\(base)&password=right#k", .openOrCreate) == nil)
    try expect(try code("\(base)&password=right#k") == nil)
    try expect(try code(server.location("k").replacing("/postgres?", with: "/nowhere?")) == .notFound)
    try expect(try code(server.location("k", user: "nobody")) == .permissionDenied)
  }

  @Test func tablesOfSomethingElseAndOfLaterReleasesAreRefused() throws {
    let server = try PostgresServer.shared.get()
    let location = try newLocation()
    try open(location).close()
    let schema = try PostgresLocation(location).quotedSchema
    try server.sql("UPDATE \(schema).touchstone SET version = 2")
    try expect(try storageCode { try open(location) } == .unsupportedVersion)
    try server.sql("ALTER TABLE \(schema).touchstone RENAME COLUMN version TO other")
    try expect(try storageCode { try open(location) } == .notADatabase)
    try server.sql("DROP SCHEMA \(schema) CASCADE")
    try expect(try storageCode { try open(location, .openExisting) } == .notFound)
  }

  @Test(arguments: [
    ("53100", StorageError.Code.diskFull), ("40001", .conflict), ("40P01", .conflict), ("XX001", .damaged),
  ])
  func anErrorOfAWriteLeavesNothingAndPasses(state: String, code: StorageError.Code) throws {
    let server = try PostgresServer.shared.get()
    try open(try newLocation()).closing { engine in
      let keyspace = try engine.fill(["a": "1"])
      let schema = engine.place.quotedSchema
      try server.sql(
        """
        CREATE FUNCTION \(schema).fails() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN RAISE EXCEPTION USING ERRCODE = '\(state)', MESSAGE = 'on purpose'; END $$;
        CREATE TRIGGER fails BEFORE INSERT ON \(schema).entries EXECUTE FUNCTION \(schema).fails()
        """)
      try expect(try storageCode { try engine.write { try $0.put("b", "2", in: keyspace) } } == code)
      // The same when the entries are sent before the commit.
      try expect(
        try storageCode {
          try engine.write { transaction in
            try transaction.put("b", "2", in: keyspace)
            _ = try transaction.deleteRange(KeyRange(lower: .inclusive([0xFF])), in: keyspace)
          }
        } == code)
      // A failure that the body swallows fails the commit.
      try expect(
        try storageCode {
          try engine.write { transaction in
            try transaction.put("b", "2", in: keyspace)
            _ = try? transaction.deleteRange(.all, in: keyspace)
          }
        } == code)
      try expect(try engine.texts(), equals: ["a": "1"])
      try server.sql("DROP TRIGGER fails ON \(schema).entries")
      try engine.write { try $0.put("b", "2", in: keyspace) }
      try expect(try engine.texts(), equals: ["a": "1", "b": "2"])
      try expect(try engine.checkIntegrity(), equals: [])
    }
  }

  @Test func aWriterThatWaitsForTooLongIsBusy() throws {
    let location = try newLocation()
    try open(location).closing { first in
      let keyspace = try first.fill(["a": "1"])
      try open(location, .openExisting, { $0.lockSeconds = 1 }).closing { second in
        try first.write { transaction in
          try transaction.put("a", "2", in: keyspace)
          try expect(try storageCode { try second.write { try $0.put("a", "3", in: keyspace) } } == .busy)
          // Readers don't wait.
          try expect(try second.texts(), equals: ["a": "1"])
        }
        try second.write { try $0.put("a", "3", in: keyspace) }
      }
      try expect(try first.texts(), equals: ["a": "3"])
    }
  }

  @Test func aStandbyIsReadAndTakesOver() throws {
    let primary = try PostgresServer()
    let engine = try open(primary.location("k"))
    let keyspace = try engine.fill(["a": "1"])
    let standby = try PostgresServer(standbyOf: primary)
    let reader = try open(standby.location("k"), .openExisting, isReadOnly: true)
    try expect(try reader.texts(), equals: ["a": "1"])
    try engine.write { try $0.put("b", "2", in: keyspace) }
    try eventually { try reader.texts() == ["a": "1", "b": "2"] }
    try expect(try storageCode { try reader.write { (_: any WriteTransaction) in } } == .readOnly)
    // Who opens it for writing reads, and learns it with the first write.
    try open(standby.location("k"), .openExisting).closing { writer in
      try expect(try writer.texts(), equals: ["a": "1", "b": "2"])
      try expect(try storageCode { try writer.write { try $0.put("c", "3", in: keyspace) } } == .readOnly)
    }
    try expect(try storageCode { try open(standby.location("other")) } == .readOnly)
    try engine.close()

    // Of several hosts, the one that takes writes is used.
    let hosts =
      "postgres:///postgres?host=\(primary.directory),\(standby.directory)&user=touchstone&target_session_attrs=read-write#k"
    let following = try open(hosts, .openExisting)
    try following.write { try $0.put("c", "3", in: keyspace) }
    try eventually { try reader.texts().count == 3 }
    try primary.stop()
    try standby.sql("SELECT pg_promote()")
    try following.write { try $0.put("d", "4", in: keyspace) }
    try expect(try following.texts(), equals: ["a": "1", "b": "2", "c": "3", "d": "4"])
    try expect(try reader.texts().count, equals: 4)
    try following.close()
    try reader.close()
  }

  /// A server that takes over without standbys in step may lack commits, and gets others with the same numbers.
  @Test func aServerThatLacksTheLastCommitsIsReadAnew() throws {
    let server = try PostgresServer.shared.get()
    try open(try newLocation()).closing { engine in
      try engine.fill(["a": "1", "b": "1"])
      let mine = try engine.write { transaction -> Keyspace in
        let mine = try transaction.createKeyspace("mine", shape: .documents)
        try transaction.put("m", "1", in: mine)
        try transaction.put("a", "2", in: try transaction.known())
        return mine
      }
      let lineage = try engine.write { try $0.lineage }
      try expect(try engine.read { try $0.keyspaces().keys.sorted() }, equals: ["k", "mine"])
      // Instead of the last commit, the server has another one with the same numbers.
      let schema = engine.place.quotedSchema
      try server.sql(
        """
        UPDATE \(schema).keyspaces SET name = 'theirs' WHERE number = \(mine.number);
        UPDATE \(schema).entries SET key = 't' WHERE keyspace = \(mine.number);
        DELETE FROM \(schema).entries WHERE key = 'b';
        UPDATE \(schema).entries SET value = '3' WHERE key = 'a';
        UPDATE \(schema).keyspaces SET entries = 1 WHERE name = 'k'
        """)
      try server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
      )
      try expect(try engine.read { try $0.keyspaces().keys.sorted() }, equals: ["k", "theirs"])
      try engine.write { transaction in
        try expect(try transaction.lineage != lineage)
        try expect(try transaction.keyspaces().keys.sorted(), equals: ["k", "theirs"])
        try expect(
          try transaction.bytes(Array("a".utf8), in: try transaction.known()), equals: Array("3".utf8))
        // What was known to be there isn't.
        try transaction.put("b", "4", in: try transaction.known())
      }
      try expect(try engine.texts(), equals: ["a": "3", "b": "4"])
      try expect(try engine.checkIntegrity(), equals: [])
    }
  }

  /// A commit that the standby doesn't have yet is there on the primary when its connection is lost.
  @Test func aLostCommitIsFoundOnlyWhenTheStandbyHasIt() throws {
    let server = try PostgresServer()
    var settings = PostgresSettings(location: try PostgresLocation(server.location("k")))
    settings.synchronousCommit = "on"
    let engine = try PostgresEngine(settings, EngineOptions(durability: .full))
    let keyspace = try engine.fill(["a": "1"])
    // There is no standby, so commits wait.
    try server.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    try server.sql("SELECT pg_reload_conf()")
    func waiting() throws -> [String] {
      try server.sql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    }
    try eventually { try server.sql("SHOW synchronous_standby_names") == ["*"] }
    let writer = TestThreadResult {
      try storageCode { try engine.write { try $0.put("b", "2", in: keyspace) } }
    }
    try eventually { try waiting().count == 1 }
    let first = try waiting()
    try server.sql("SELECT pg_terminate_backend(\(first.joined()))")
    // It is committed here. The writer asks, and waits again.
    try eventually { try waiting().count == 1 && waiting() != first }
    try server.sql("ALTER SYSTEM RESET synchronous_standby_names")
    try server.sql("SELECT pg_reload_conf()")
    try expect(try writer.value() == nil)
    try expect(try engine.texts(), equals: ["a": "1", "b": "2"])
    try engine.close()
  }
}
