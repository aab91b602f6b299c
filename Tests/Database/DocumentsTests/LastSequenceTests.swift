import TestSupport

@testable import Documents
@testable import Touchstone

/// The last sequence is that of the newest change, and is written down only where no change tells it.
@Suite("The last sequence") struct LastSequenceTests {
  private let databases = TestDatabases()

  private func record(_ database: Database) throws -> [UInt8]? {
    try database.engine.read {
      try $0.bytes(DocumentStore.State.key, in: #require(try $0.keyspace(named: "meta")))
    }
  }

  @Test("a save writes no record of it", arguments: someEngines)
  func recordStays(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    let first = try record(database)
    for number in 2..<20 { try database.save("a", ["n": .int(Int64(number))]) }
    try database.save("b", ["n": 1])
    try database.delete("b")
    try expect(record(database), equals: first)
    try expect(database.lastSequence, equals: 21)
  }

  @Test("it stays when the newest documents are purged, and over a reopening", arguments: someEngines)
  func purged(_ engine: EngineName) throws {
    try withTemporaryDirectory { directory in
      var database = try Database.open("a", in: directory, options: try options(engine))
      func reopen() throws {
        try database.close()
        database = try Database.open("a", in: directory, options: try options(engine))
      }
      for number in 1...6 { try database.save("doc\(number)", ["n": 1]) }
      try database.purge("doc6")
      try reopen()
      try expect(database.lastSequence, equals: 6)
      // An older one, while the newest change is below the last sequence.
      try database.purge("doc5")
      try database.purge("doc2")
      try reopen()
      try expect(database.lastSequence, equals: 6)
      try expect(database.save("doc7", ["n": 1]).sequence, equals: 7)
      try expect(database.check(deep: true), equals: [])
      try database.inBatch {
        try expect(database.save("doc8", ["n": 1]).sequence, equals: 8)
        try database.purge("doc8")
        try expect(database.lastSequence, equals: 8)
      }
      try reopen()
      try expect(database.lastSequence, equals: 8)
      try database.inBatch {
        for id in ["doc1", "doc3", "doc4", "doc7"] { try database.purge(id) }
        try expect(database.lastSequence, equals: 8)
        try database.save("doc9", ["n": 1])
      }
      try database.purge("doc9")
      try reopen()
      try expect(database.documentCount == 0 && database.lastSequence == 9)
      try expect(database.read { try $0.lastSequence }, equals: 9)
      try expect(database.save("doc1", ["n": 1]).sequence, equals: 10)
      try expect(database.check(deep: true), equals: [])
      try database.close()
    }
  }

  @Test("a batch that fails leaves it", arguments: someEngines)
  func failed(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    try database.inUndoneBatch {
      try database.save("b", ["n": 1])
      try database.purge("b")
    }
    try expect(database.lastSequence, equals: 1)
    try expect(database.save("c", ["n": 1]).sequence, equals: 2)
  }

  @Test("two stores on one engine go on from each other's", arguments: someEngines)
  func shared(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let other = try DocumentStore(engine: database.engine)
    for number in 0..<5 {
      try database.save("a\(number)", ["n": 1])
      try other.save("b\(number)", ["n": 1])
      try other.purge("b\(number)")
    }
    try expect(database.lastSequence == 10 && other.lastSequence == 10)
    try expect(database.save("last", ["n": 1]).sequence, equals: 11)
  }

  @Test("a newest change under another key is damage where checksums are verified", arguments: someEngines)
  func movedChange(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.verifiesChecksums = true }
    for number in 1...10 { try database.save("doc\(number)", ["n": 1]) }
    let changes = try database.store.context.keyspaces.changes
    try database.engine.write { transaction in
      let key: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 10]
      let value = try #require(try transaction.bytes(key, in: changes))
      _ = try key.withUnsafeBytes { try transaction.delete($0, in: changes) }
      try transaction.put([0, 0, 1, 0, 0, 0, 0, 10], value, in: changes)
    }
    try expect(documentCode { _ = try database.lastSequence }, equals: .damaged)
    try expect(documentCode { _ = try database.read { try $0.lastSequence } }, equals: .damaged)
    try expect(documentCode { try database.save("new", ["n": 1]) }, equals: .damaged)
  }

  @Test("a record that can't be right is damage", arguments: [EngineName.sqlite, .lmdb])
  func damaged(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    let context = try database.store.context
    try database.engine.write {
      let record = try #require(try $0.bytes(DocumentStore.State.key, in: context.keyspaces.meta))
      try $0.put(DocumentStore.State.key, record.map { ~$0 }, in: context.keyspaces.meta)
    }
    try expect(documentCode { _ = try database.lastSequence }, equals: .damaged)
    try expect(documentCode { try database.save("b", ["n": 1]) }, equals: .damaged)
  }
}
