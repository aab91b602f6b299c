import Synchronization
import TestSupport

@testable import Documents
@testable import Touchstone

/// Documents in the formats of earlier releases.
@Suite("Formats of documents") struct FormatTests {
  private let databases = TestDatabases()

  /// A database that an earlier release wrote, copied to where it may be changed.
  private func withEarlier(
    _ engine: EngineName, format: Int = 2, _ body: (_ directory: String, DatabaseOptions) throws -> Void
  ) throws {
    let directory = TemporaryDirectory()
    let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("Databases/format-\(format)/\(engine.rawValue)")
    try FileManager.default.copyItem(atPath: source.path, toPath: directory.path + "/earlier.touchstone")
    let encrypts = try Engines.type(engine).encrypts
    try body(directory.path, DatabaseOptions(key: encrypts ? try .raw(Array(0..<32)) : nil))
  }

  private func format(_ database: Database) throws -> [UInt8]? {
    try database.engine.read {
      try $0.bytes(Array("format".utf8), in: #require(try $0.keyspace(named: "meta")))
    }
  }

  private func check(_ database: Database) throws {
    try expect(database.documentCount, equals: 3)
    try expect(database.document("doc1")?.value(), equals: ["name": "castle two", "n": 11])
    try expect(database.document("café")?.value(), equals: ["name": "é", "n": 4])
    try expect(database.document("doc3", includeDeleted: true)?.isDeleted, equals: true)
    try expect(database.revisions(of: "doc1")?.map(\.id.description).last?.hasPrefix("1-"), equals: true)
    try expect(database.revisions(of: "doc1")?.last?.body?["n"], equals: 1)
    try expect(database.lastSequence, equals: 7)
    try expect(database.query("SELECT META().id FROM _ WHERE n = 11").run().count, equals: 1)
    try expect(database.query("SELECT META().id FROM _ WHERE MATCH(words, 'river')").run().count, equals: 1)
    try expect(database.check(deep: true), equals: [])
  }

  private static let engines: [EngineName] = [.sqlite, .lmdb, .sqlcipher, .lmdbEncrypted]

  @Test("a database of an earlier release is converted once", arguments: engines, [2, 3])
  func conversion(_ engine: EngineName, from earlier: Int) throws {
    try withEarlier(engine, format: earlier) { directory, options in
      var uuid = ""
      for round in 0..<2 {
        let database = try Database.open("earlier", in: directory, options: options)
        try expect(format(database)?.first == 4 && format(database)?.count == 5)
        try check(database)
        if round == 0 { uuid = database.publicUUID }
        expect(database.publicUUID, equals: uuid)
        try database.close()
      }
      var verifying = options
      verifying.verifiesChecksums = true
      let database = try Database.open("earlier", in: directory, options: verifying)
      try check(database)
      try database.save("doc1", ["n": 12])
      try expect(database.document("doc1")?["n"].int, equals: 12)
      try database.close()
    }
  }

  @Test("opened for reading only, it stays as it is", arguments: engines, [2, 3])
  func readOnly(_ engine: EngineName, earlier: Int) throws {
    try withEarlier(engine, format: earlier) { directory, options in
      var options = options
      options.isReadOnly = true
      let database = try Database.open("earlier", in: directory, options: options)
      try check(database)
      try expect(format(database)?.first, equals: UInt8(earlier))
      #expect(throws: (any Error).self) { try database.save("doc1", ["n": 12]) }
      try database.close()
    }
  }

  @Test("whoever reads goes on when somebody else converts it", arguments: [EngineName.sqlite, .lmdb])
  func convertedMeanwhile(_ engine: EngineName) throws {
    try withEarlier(engine) { directory, options in
      let database = try Database.open("earlier", in: directory, options: options)
      let engine = database.engine
      try takeChecksumsAway(engine)
      let reader = try DocumentStore(engine: ReadOnlyEngine(engine))
      try expect(reader.document("doc1")?["n"].int, equals: 11)
      expect(reader.context.checksums == nil)
      try engine.write { try DocumentStore.create(in: $0, location: engine.location) }
      try expect(reader.document("doc1")?["n"].int, equals: 11)
      expect(reader.context.checksums != nil)
      // (Its indexes are of kinds that it wasn't opened with.)
      try expect(reader.check(deep: true).filter { !$0.subject.hasPrefix("index") }, equals: [])
      try database.close()
    }
  }

  @Test("everything that a database holds is converted", arguments: someEngines)
  func everything(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    options.revisionsPerBlock = 2
    options.compaction = .off
    var database = try Database.open("a", in: directory.path, options: options)
    let reference = try Database.open("b", in: directory.path, options: options)
    for database in [database, reference] {
      for number in 0..<300 {
        try database.save(
          "doc\(number)", ["n": .int(Int64(number)), "text": .string(String(repeating: "x", count: 9_000))])
      }
      try database.apply(PulledRevision(id: "doc1", history: ["2-bb", "1-aa"], body: ["pulled": true]))
      try database.delete("doc5")
      for number in 0..<9 { try database.save("deep", ["n": .int(Int64(number))]) }
      try database.setExpiration(of: "doc2", at: Date(timeIntervalSince1970: 4_000_000_000))
      try database.saveLocalDocument("local", ["a": 1])
    }
    try takeChecksumsAway(database.engine)
    try database.close()
    database = try Database.open("a", in: directory.path, options: options)
    try expect(differences(database, reference, sequences: true), equals: [])
    try expect(database.check(deep: true), equals: [])
    try database.close()
    try reference.close()
  }

  @Test("a format of a later release, and one that is none, are told apart", arguments: someEngines)
  func others(_ engine: EngineName) throws {
    for (stored, expected) in [
      ([5], DocumentError.Code.unsupportedVersion), ([200, 1, 2], .unsupportedVersion), ([0], .damaged),
      ([], .damaged), ([2, 2], .damaged), ([3], .damaged), ([3, 1, 2, 3, 4], .damaged),
      ([4, 1, 2, 3, 4], .damaged),
    ] as [([UInt8], DocumentError.Code)] {
      let database = try databases.open(engine)
      try database.engine.write {
        try $0.put(Array("format".utf8), stored, in: try #require(try $0.keyspace(named: "meta")))
      }
      try expect(
        documentCode { _ = try DocumentStore(engine: database.engine) }, equals: expected, "\(stored)")
    }
  }

  @Test("an engine whose keys are too short for documents is refused") func narrowEngine() throws {
    let database = try databases.open(.lmdb)
    var limits = EngineLimits.portable
    limits.keyBytes -= 1
    let narrow = ReadOnlyEngine(database.engine, limits: limits)
    try expect(storageCode { _ = try DocumentStore(engine: narrow) }, equals: .unsupported)
  }

  @Test("documents are checked on an engine that does nothing with its files") func withoutMaintenance()
    throws
  {
    let database = try databases.open(.lmdb)
    try database.save("a", ["n": 1])
    let plain = ReadOnlyEngine(database.engine)
    try expect(DocumentStore(engine: plain).check(deep: true), equals: [])
    try expect(storageCode { _ = try plain.maintenance }, equals: .unsupported)
  }

  @Test("documents are opened on one snapshot") func oneSnapshot() throws {
    let database = try databases.open(.lmdb)
    let engine = ReadOnlyEngine(database.engine)
    _ = try DocumentStore(engine: engine)
    expect(engine.snapshots.load(ordering: .relaxed), equals: 1)
  }

  /// Makes the documents what an earlier release would have written.
  private func takeChecksumsAway(_ engine: any StorageEngine) throws {
    try engine.write { transaction in
      for (name, keyspace) in try transaction.keyspaces() where EntryChecksums.keyspaceNames.contains(name) {
        for entry in try transaction.entries(of: keyspace) {
          try transaction.put(entry.key, entry.value.dropLast(4), in: keyspace)
        }
      }
      try transaction.put(
        Array("format".utf8), [2], in: try #require(try transaction.keyspace(named: "meta")))
    }
  }
}

/// An engine that can't be written, over one that can: another process's view of a file.
private final class ReadOnlyEngine: StorageEngine {
  private let base: any StorageEngine
  let limits: EngineLimits
  /// How many snapshots were begun.
  let snapshots = Atomic<Int>(0)
  init(_ base: any StorageEngine, limits: EngineLimits = .portable) {
    self.base = base
    self.limits = limits
  }
  var name: String { base.name }
  var library: String { base.library }
  var location: String { base.location }
  var durability: Durability { base.durability }
  var isReadOnly: Bool { true }
  var settings: [(name: String, value: String)] { base.settings }
  func beginRead() throws -> any ReadTransaction {
    snapshots.add(1, ordering: .relaxed)
    return try base.beginRead()
  }
  func write(_ body: (any WriteTransaction) throws -> Void) throws {
    throw StorageError(.readOnly, "opened for reading only", path: location)
  }
  func close() throws {}
}
