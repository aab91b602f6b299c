import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@Suite("Databases in memory") struct InMemoryTests {
  @Test("it does what other databases do, and leaves nothing")
  func everything() throws {
    let notes = try Database.inMemory()
    expect(notes.engineName == .memory && !notes.isEncrypted)
    try notes.createIndex("byType", on: ["type"])
    try notes.createFullTextIndex("words", on: ["text"])
    for n in 0..<3_000 {
      try notes.save(
        "note_\(n)", ["type": .string("t\(n % 7)"), "text": "buy groceries", "n": .int(Int64(n))])
    }
    for n in 0..<1_000 { try notes.delete("note_\(n)") }
    for n in 1_000..<1_500 { try notes.purge("note_\(n)") }
    let blob = try notes.makeBlob([UInt8](repeating: 7, count: 100_000))
    try notes.save("blob", ["data": blob.jsonValue])
    try notes.setExpiration(of: "note_2000", after: -1)
    try notes.purgeExpired()
    try expect(notes.documentCount, equals: 1_500)
    try expect(notes.contents(of: blob).count, equals: 100_000)
    let query = try notes.query("SELECT COUNT(*) AS n FROM _ WHERE type = 't3'")
    try expect("\(try query.explain())".contains("byType"))
    try expect(
      query.run()[0]["n"].int,
      equals: notes.query(
        "SELECT COUNT(*) AS n FROM _ WHERE type || '' = 't3'"
      ).run()[0]["n"].int)
    let words = try notes.query("SELECT META().id FROM _ WHERE MATCH(words, 'groceries')")
    try expect(words.run().count, equals: notes.documentCount - 1)
    try expect(notes.check(deep: true).isEmpty)
    try notes.compact()
    try expect(notes.check(deep: true).isEmpty)
    try expect(notes.checkIntegrity().isEmpty)
    let directory = URL(fileURLWithPath: notes.path).deletingLastPathComponent().path
    expect(FileManager.default.fileExists(atPath: directory))
    try notes.close()
    expect(!FileManager.default.fileExists(atPath: directory))
    expect(!Database.exists(notes.path))
  }

  @Test("each is a database of its own, and one that is released is removed")
  func separate() throws {
    let first = try Database.inMemory()
    var paths = [first.path]
    do {
      let second = try Database.inMemory()
      paths.append(second.path)
      try first.save("a", ["n": 1])
      try expect(second.document("a") == nil)
      expect(first.path != second.path)
    }
    expect(!FileManager.default.fileExists(atPath: paths[1]))
    try expect(first.document("a") != nil)
    try first.close()
  }

  @Test("it can be kept by converting it", arguments: someEngines)
  func converted(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let notes = try Database.inMemory()
    try notes.save("a", ["n": 1])
    try notes.createIndex("byN", on: ["n"])
    let blob = try notes.makeBlob(Array("text".utf8))
    try notes.save("b", ["blob": blob.jsonValue])
    let target = directory.path + "/kept"
    try Database.convert(notes.path, to: engine, at: target, newKey: try key(of: engine))
    try notes.save("later", ["n": 1])
    let kept = try Database.open(target, options: try options(engine))
    expect(kept.engineName, equals: engine)
    try expect(kept.documentCount, equals: 2)
    try expect(kept.contents(of: blob), equals: Array("text".utf8))
    try expect(kept.indexes.map(\.name), equals: ["byN"])
    try expect(kept.check(deep: true).isEmpty)
    try kept.close()
    try notes.close()
  }

  @Test("deleting it closes it")
  func deletion() throws {
    let notes = try Database.inMemory()
    try notes.save("a", ["n": 1])
    try notes.delete()
    expect(!FileManager.default.fileExists(atPath: notes.path))
    try expect(databaseCode { try notes.save("b", ["n": 1]) }, equals: .closed)
    try expect(databaseCode { try notes.delete() }, equals: .notFound)
    try notes.close()
  }

  @Test("options that need a file, and opening one elsewhere, are refused")
  func refusals() throws {
    for options in [
      DatabaseOptions(engine: .lmdb), DatabaseOptions(isReadOnly: true),
      DatabaseOptions(creation: .openExisting), DatabaseOptions(upgrade: .init()),
    ] {
      do {
        _ = try Database.inMemory(options: options)
        Issue.record("\(options) was taken")
      } catch let error as StorageError { expect(error.code, equals: .invalidArgument) }
    }
    try expect(
      databaseCode {
        _ = try Database.inMemory(options: DatabaseOptions(key: .raw([UInt8](repeating: 1, count: 32))))
      }, equals: .notEncrypted)
    let directory = TemporaryDirectory()
    try expect(
      databaseCode {
        _ = try Database.open("a", in: directory.path, options: DatabaseOptions(engine: .memory))
      }, equals: .unknownEngine)
    let file = try Database.open("b", in: directory.path)
    try file.close()
    try expect(
      databaseCode { try Database.convert("b", in: directory.path, to: .memory) }, equals: .unknownEngine)
    expect(!Engines.names.contains(.memory))
  }

  @Test("it counts the same as a file does, whatever is written", arguments: [EngineName.lmdb])
  func sameAsFile(_ engine: EngineName) throws {
    try withDatabase(engine) { file in
      let memory = try Database.inMemory()
      var random = SystemRandomNumberGenerator()
      for _ in 0..<2_000 {
        let id = "doc\(Int.random(in: 0..<300, using: &random))"
        let kind = Int.random(in: 0..<10, using: &random)
        for database in [file, memory] {
          switch kind {
          case 0: _ = try? database.delete(id)
          case 1: try? database.purge(id)
          default: try database.save(id, ["n": .int(Int64(kind))])
          }
        }
      }
      try expect(file.documentCount, equals: memory.documentCount)
      try expect(file.tombstoneCount, equals: memory.tombstoneCount)
      try expect(file.documents().map(\.id), equals: memory.documents().map(\.id))
      try expect(file.changes(), equals: memory.changes())
      try file.compare(with: memory) { Issue.record("\($0)") }
      try memory.close()
    }
  }
}
