import Expectations
import Foundation
import TestTools
import Testing

@testable import StoragePostgres

/// What a writer asks the server, keeps, and undoes.
@Suite(.enabled(if: hasServer))
struct WriterTests {
  private func roundTrips(_ engine: PostgresEngine, _ body: () throws -> Void) throws -> Int {
    let before = engine.writing.connection?.roundTrips ?? 0
    try body()
    // The last answer of a transaction that was undone isn't waited for.
    return (engine.writing.connection?.roundTrips ?? 0) - before
  }

  @Test func aWriteTakesThreeRoundTripsAtMost() throws {
    try open(try newLocation()).closing { engine in
      let keyspace = try engine.fill(["a": "1"])
      let sequences = try engine.write { try $0.createKeyspace("s", shape: .sequences) }
      try expect(
        try roundTrips(engine) { try engine.write { try $0.put("b", "2", in: keyspace) } }, equals: 2)
      // A key that is looked for first.
      try expect(
        try roundTrips(engine) {
          try engine.write { transaction in
            _ = try transaction.bytes(Array("c".utf8), in: keyspace)
            try transaction.put("c", "3", in: keyspace)
          }
        }, equals: 3)
      // What the transaction before wrote is known, and so is the greatest key.
      for number in 0..<3 {
        try expect(
          try roundTrips(engine) {
            try engine.write { transaction in
              try expect(try transaction.bytes(Array("c".utf8), in: keyspace), equals: Array("3".utf8))
              let key = withUnsafeBytes(of: UInt64(number).bigEndian) { [UInt8]($0) }
              try transaction.append(key.span.bytes, key.span.bytes, in: sequences)
            }
          }, equals: 2)
      }
    }
  }

  @Test func whatAnotherEngineCommitsIsForgotten() throws {
    let location = try newLocation()
    try open(location).closing { first in
      let keyspace = try first.fill(["a": "1"])
      try open(location).closing { second in
        for number in 0..<4 {
          let lineage = try first.write { transaction -> UInt64? in
            try expect(
              try transaction.bytes(Array("a".utf8), in: keyspace),
              equals: Array("\(number == 0 ? 1 : number)".utf8))
            return try transaction.lineage
          }
          try second.write { try $0.put("a", "\(number + 1)", in: keyspace) }
          try expect(try first.write { try $0.lineage } != lineage)
        }
      }
    }
  }

  /// The parts of a group, some of which are sent before they are undone.
  @Test func partsThatWereSentAreUndoneAlone() throws {
    try open(try newLocation()).closing { engine in
      let keyspace = try engine.fill(["old": "0", "gone": "0", "kept": "0"])
      let group = PostgresWriteGroup(engine)
      let leader = try group.begin()
      try leader.put("leader", "1", in: keyspace)
      try leader.delete(Array("gone".utf8).span.bytes, in: keyspace)
      let extra = try leader.createKeyspace("extra", shape: .entries)
      try leader.put("x", "1", in: extra)

      // Changes what the leader wrote, is sent, and is undone.
      let failing = try group.beginMember()
      try failing.put("leader", "2", in: keyspace)
      try failing.put("gone", "2", in: keyspace)
      try failing.put("failing", "2", in: keyspace)
      try failing.dropKeyspace(extra)
      try expect(try failing.deleteRange(.prefix(Array("ol".utf8)), in: keyspace), equals: 1)
      try expect(try failing.count(of: keyspace), equals: 4)
      try failing.delete(Array("leader".utf8).span.bytes, in: keyspace)
      group.abortMember()

      // Is sent and kept.
      let kept = try group.beginMember()
      try expect(try kept.bytes(Array("leader".utf8), in: keyspace), equals: Array("1".utf8))
      try kept.put("part", "3", in: keyspace)
      try expect(try kept.deleteRange(.prefix(Array("kep".utf8)), in: keyspace), equals: 1)
      try kept.put("leader", "3", in: keyspace)
      try group.keepMember()

      // Isn't sent, and is undone.
      let last = try group.beginMember()
      try last.put("last", "4", in: keyspace)
      group.abortMember()
      try group.commit()
      try expect(try engine.texts(), equals: ["leader": "3", "old": "0", "part": "3"])
      try expect(try engine.read { try $0.keyspaces().keys.sorted() }, equals: ["extra", "k"])
      try expect(try engine.checkIntegrity(), equals: [])
    }
  }

  /// A part removes what the leader has made, before either is sent.
  @Test func aPartThatIsSentTakesBackWhatTheLeaderMade() throws {
    try open(try newLocation()).closing { engine in
      let keyspace = try engine.fill(["a": "1"])
      let group = PostgresWriteGroup(engine)
      let leader = try group.begin()
      _ = try leader.insert(Array("new".utf8).span.bytes, Array("1".utf8).span.bytes, in: keyspace)
      let extra = try leader.createKeyspace("extra", shape: .entries)
      try leader.put("x", "1", in: extra)
      let part = try group.beginMember()
      try expect(try part.delete(Array("new".utf8).span.bytes, in: keyspace))
      try part.dropKeyspace(extra)
      try expect(try part.deleteRange(KeyRange(lower: .inclusive([0xFF])), in: keyspace), equals: 0)
      try group.keepMember()
      try group.commit()
      try expect(try engine.texts(), equals: ["a": "1"])
      try expect(try engine.read { try $0.keyspaces().count }, equals: 1)
      try expect(try engine.checkIntegrity(), equals: [])
    }
  }

  @Test func aLargeTransactionIsSentInPiecesAndSeesItself() throws {
    try open(try newLocation()).closing { engine in
      let keyspace = try engine.fill([:])
      let value = [UInt8](repeating: 1, count: 10_000)
      try engine.write { transaction in
        for number in 0..<2_500 {
          try transaction.put(Array("\(10_000 + number)".utf8), value, in: keyspace)
        }
        expect(engine.writing.connection == nil)
        try expect(try transaction.count(of: keyspace), equals: 2_500)
        for number in stride(from: 0, to: 2_500, by: 2) {
          try expect(try transaction.delete(Array("\(10_000 + number)".utf8).span.bytes, in: keyspace))
        }
        try expect(try transaction.count(of: keyspace), equals: 1_250)
      }
      try expect(try engine.read { try $0.count(of: keyspace) }, equals: 1_250)
      try expect(try engine.checkIntegrity(), equals: [])
    }
  }

  @Test func aDumpGivesTheDatabaseBack() throws {
    let server = try PostgresServer.shared.get()
    let location = try newLocation()
    let engine = try open(location)
    let keyspace = try engine.fill(["a": "1", "b": String(repeating: "long", count: 50_000)])
    let before = try engine.texts()
    try engine.close()
    let dump = server.directory + "/dump-\(UUID().uuidString)"
    let common = ["-h", server.directory, "-U", "touchstone", "-d", "postgres"]
    _ = try server.program("pg_dump", common + ["-Fc", "-n", engine.place.quotedSchema, "-f", dump])
    try server.sql("DROP SCHEMA \(engine.place.quotedSchema) CASCADE")
    try expect(try storageCode { try open(location, .openExisting) } == .notFound)
    _ = try server.program("pg_restore", common + [dump])
    try open(location, .openExisting).closing { engine in
      try expect(try engine.texts() == before)
      try expect(try engine.checkIntegrity(), equals: [])
      try engine.write { try $0.put("c", "3", in: keyspace) }
    }
  }
}
