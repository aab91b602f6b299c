import Encryption
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Logs

/// What databases log, and what they never log.
@Suite("Logs of databases") struct DatabaseLogTests {
  /// A text that is in documents, and nowhere else.
  private static let secret = "Xylophone-7731"

  /// Uses much of a database.
  private func use(_ engine: EngineName, _ key: UserKey?, in directory: String) throws {
    let options = DatabaseOptions(
      engine: engine, key: key, slowQueryThreshold: .zero, watchesOtherProcesses: true)
    var database = try Database.open("test", in: directory, options: options)
    let token = try database.observe { _ in }
    try database.createIndex("byName", on: ["name"])
    try database.createFullTextIndex("text", on: ["text"])
    for number in 0..<20 {
      try database.save(
        "doc\(number)",
        ["name": .string(Self.secret), "text": .string("word \(Self.secret)"), "n": .int(Int64(number))])
    }
    let query = try database.query("SELECT name FROM _ WHERE name = $name ORDER BY n LIMIT 3")
    try expect(query.run(["name": .string(Self.secret)]).count, equals: 3)
    try expect(
      database.query("SELECT META().id FROM _ WHERE MATCH(text, $word)").run([
        "word": .string(Self.secret)
      ]).count, equals: 20)
    // Errors about documents.
    #expect(throws: (any Error).self) { try database.save("doc1", ["_\(Self.secret)": 1]) }
    #expect(throws: (any Error).self) {
      try database.save("doc1", .json(Array("{\"name\": \"\(Self.secret)\" oops}".utf8)))
    }
    #expect(throws: (any Error).self) {
      try database.inBatch { throw NSError(domain: Self.secret, code: 1) }
    }
    #expect(throws: (any Error).self) { _ = try query.run() }
    try database.purge("doc3")
    try database.delete("doc4")
    if let key {
      try database.changeKey(.passphrase("a new passphrase"), key: key)
      #expect(throws: (any Error).self) { _ = try Database.open("test", in: directory, options: options) }
      try database.changeKey(key)
    }
    try database.compact()
    token.cancel()
    try database.close()
    if let key { try Database.rotateKey("test", in: directory, key: key) }
    database = try Database.open("test", in: directory, options: options)
    try database.delete()
  }

  @Test("no content of documents is logged above debug", arguments: someEngines)
  func content(_ engine: EngineName) throws {
    try withLog(.verbose) { directory, log in
      try use(engine, try key(of: engine), in: directory)
      Log.flush()
      let text = log.all.map(\.text).joined(separator: "\n")
      expect(!text.contains(Self.secret), "\(text)")
      for part in [
        "made, with the engine", "opened: ", "closed", "compacted from", "made the index 'byName'",
        "slow query", "ran in", "planned: ", "rolled back", "removed",
      ] {
        expect(text.contains(part), "\(part) is missing in \(text)")
      }
    }
  }

  @Test("no key is logged, not even at debug", arguments: someEngines)
  func keys(_ engine: EngineName) throws {
    guard try Engines.type(engine).encrypts else { return }
    try withLog(.debug) { directory, log in
      let bytes = (0..<32).map { UInt8(200 + $0 % 50) }
      let key = try UserKey.raw(bytes)
      // The data key too.
      let database = try Database.open(
        "other", in: directory, options: DatabaseOptions(engine: engine, key: key))
      let dataKey = try #require(try database.dataKey(key)).withUnsafeBytes { Array($0) }
      try database.save("a", ["n": 1])
      try database.close()
      try use(engine, key, in: directory)
      Log.flush()
      let text = log.all.map(\.text).joined(separator: "\n")
      // At debug the parameters are there, so the search finds what there is.
      expect(text.contains(Self.secret))
      let lower = text.lowercased()
      for secret in [bytes, dataKey] {
        for length in [4, 32] {
          let hex = secret.prefix(length).map { String(format: "%02x", $0) }.joined()
          expect(!lower.contains(hex))
          expect(
            !text.contains(
              Data(secret.prefix(length / 3 * 3 == 0 ? 3 : length / 3 * 3)).base64EncodedString()))
        }
        expect(Array(text.utf8).firstRange(of: secret.prefix(6)) == nil)
        expect(!text.contains(secret.prefix(6).map { "\($0)" }.joined(separator: ", ")))
      }
      expect(!text.contains("a new passphrase"))
    }
  }

  @Test("a slow query is logged once, with its plan")
  func slowQueries() throws {
    try withLog(.info) { directory, log in
      var options = DatabaseOptions(slowQueryThreshold: .zero)
      let database = try Database.open("slow", in: directory, options: options)
      options.slowQueryThreshold = .seconds(3_600)
      let patient = try Database.open("slow", in: directory, options: options)
      options.slowQueryThreshold = nil
      let silent = try Database.open("slow", in: directory, options: options)
      for number in 0..<10 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
      for other in [patient, silent] { _ = try other.query("SELECT n FROM _").run() }
      Log.flush()
      expect(!log.messages.contains { $0.hasPrefix("slow") })
      for _ in 0..<3 {
        _ = try database.query("SELECT n FROM _ WHERE n > $least").run(["least": 3])
        _ = try database.query("SELECT COUNT(*) FROM _").run()
        try database.query("SELECT n FROM _").forEach { _ in true }
      }
      Log.flush()
      let slow = log.all.filter { $0.message.hasPrefix("slow query") }
      expect(slow.count, equals: 3, "\(log.messages)")
      let first = try #require(slow.first)
      expect(first.level == .info && first.domain == .query && first.database == database.path)
      expect(first.message.contains(" ms, 6 rows: SELECT n FROM _ WHERE n > $least"))
      try expect(
        first.details, equals: (try database.query("SELECT n FROM _ WHERE n > $least").explain().lines))
      try patient.close()
      try silent.close()
      try database.close()
    }
  }

  @Test("a sink may use the database that logs", arguments: someEngines)
  func sinkWithDatabase(_ engine: EngineName) throws {
    try withTemporaryDirectory { directory in
      let database = try Database.open("test", in: directory, options: options(engine))
      let saved = Lock(0)
      let path = database.path
      let sink = FunctionSink { entry in
        guard entry.database == path else { return }
        let number = saved.withLock { count in
          count += 1
          return count
        }
        _ = try? database.save("log\(number)", ["message": .string(entry.message)])
      }
      Log.add(sink, levels: LogLevels(.debug))
      for number in 0..<20 {
        try database.inBatch {
          try database.save("a\(number)", ["n": 1])
          _ = try database.query("SELECT COUNT(*) FROM _").run()
        }
      }
      Log.remove(sink)
      expect(saved.withLock { $0 } >= 20)
      try expect(database.documentCount, equals: 20 + saved.withLock { $0 })
      try database.close()
    }
  }

  @Test("leftovers that are removed are logged, and so is a failed open")
  func leftovers() throws {
    try withLog(.info) { directory, log in
      let database = try Database.open("test", in: directory)
      let path = database.path
      try database.close()
      try "x".write(toFile: path + "/data-9.sqlite", atomically: true, encoding: .utf8)
      try Database.open("test", in: directory).close()
      #expect(throws: (any Error).self) {
        try Database.open("test", in: directory, options: DatabaseOptions(key: .random()))
      }
      Log.flush()
      expect(log.messages.contains("removed files that aren't in use: data-9.sqlite"), "\(log.messages)")
      expect(log.messages.contains { $0.hasPrefix("can't be opened: a key was given") }, "\(log.messages)")
      expect(log.all.allSatisfy { $0.level == .info })
    }
  }

  @Test("damage is an error, and background work that fails is a warning")
  func damage() throws {
    try withLog(.warning) { directory, log in
      let database = try Database.open("test", in: directory)
      let path = database.path
      try database.close()
      try "{}".write(toFile: path + "/database.json", atomically: true, encoding: .utf8)
      try expect(databaseCode { _ = try Database.open("test", in: directory) }, equals: .damaged)
      Log.flush()
      expect(log.all.map(\.level), equals: [.error], "\(log.messages)")
      expect(LogText.level(of: StorageError(.diskFull, "full")), equals: .warning)
      expect(LogText.level(of: StorageError(.closed, "closed")), equals: .verbose)
      expect(LogText.of(NSError(domain: "secret", code: 1)), equals: "NSError")
    }
  }
}
