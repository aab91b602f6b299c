import Foundation
import TestSupport

@Suite("Backups") struct BackupTests {
  private let directory = TemporaryDirectory()
  private var path: String { directory.file("a.touchstone") }

  @Test("a backup is the same peer, with the engine and the key of the database", arguments: someEngines)
  func identity(_ engine: EngineName) throws {
    try makeFixture(engine, at: path)
    let key = try key(of: engine)
    let before = try Contents(of: path, key: key)
    let database = try Database.open(path, options: DatabaseOptions(key: key))
    // The database is open.
    let report = try Database.backup("a", to: "b", in: directory.path, key: key)
    expect(report.isComplete)
    let backup = try Database.open("b", in: directory.path, options: DatabaseOptions(key: key))
    expect(backup.engineName, equals: engine)
    try expect(backup.publicUUID, equals: database.publicUUID)
    try expect(backup.privateUUID, equals: database.privateUUID)
    try expect(backup.previousPrivateUUID == nil)
    try expect(backup.lastSequence, equals: database.lastSequence)
    try expect(differences(database, backup, sequences: true), equals: [])
    try backup.close()
    try database.close()
    try expect(Contents(of: directory.file("b.touchstone"), key: key), equals: before)
    try expect(directory.names(), equals: ["a.touchstone", "b.touchstone"])

    func code(_ source: String, _ target: String, _ key: UserKey?) throws -> DatabaseError.Code? {
      try databaseCode { try Database.backup(source, to: target, in: directory.path, key: key) }
    }
    try expect(code("a", "b", key), equals: .alreadyExists)
    try expect(code("none", "c", key), equals: .notFound)
    if try encrypts(engine) {
      try expect(code("a", "c", newKey()), equals: .wrongKey)
      try expect(code("a", "c", nil), equals: .keyRequired)
    }
    try expect(directory.names(), equals: ["a.touchstone", "b.touchstone"])
  }

  @Test("a database that nobody has closed is backed up", arguments: everyEngine)
  func unclosed(_ engine: EngineName) throws {
    let database = try Database.open(path, options: try options(engine))
    for number in 0..<20 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    // What a killed process leaves.
    try FileManager.default.copyItem(atPath: path, toPath: directory.file("left.touchstone"))
    try database.close()
    let key = try key(of: engine)
    let report = try Database.backup("left", to: "b", in: directory.path, key: key)
    expect(report.isComplete)
    let backup = try Database.open("b", in: directory.path, options: DatabaseOptions(key: key))
    try expect(backup.documentCount, equals: 20)
    try backup.close()
  }

  @Test("a backup is the database at one moment, while others write", arguments: someEngines)
  func whileOthersWrite(_ engine: EngineName) throws {
    let key = try key(of: engine)
    let database = try Database.open(path, options: try options(engine))
    func write(_ number: Int) throws {
      try database.inBatch {
        let blob = try database.makeBlob(Array("blob \(number)".utf8))
        for id in ["first", "last"] {
          try database.save(id, ["n": .int(Int64(number)), "blob": blob.jsonValue])
        }
        try database.save("doc\(number)", ["n": .int(Int64(number))])
      }
    }
    for number in 1...50 { try write(number) }
    for round in 0..<3 {
      var number = 50 + round * 1_000
      // Between the parts of the work as often as the progress is told, so that each run has writes in its midst.
      try Database.backup(path, to: "backup\(round)", in: directory.path, key: key) { _ in
        number += 1
        try write(number)
      }
      expect(number > 50 + round * 1_000)
      let backup = try Database.open("backup\(round)", in: directory.path, options: DatabaseOptions(key: key))
      try expect(backup.check(deep: true).map(\.description), equals: [])
      let found = try ["first", "last"].map { try #require(try backup.document($0)) }
      let saved = try #require(found[0]["n"].int)
      expect(found[1]["n"].int, equals: saved)
      try expect(backup.document("doc\(saved)") != nil)
      let blob = try #require(found[0]["blob"].blob)
      try expect(backup.contents(of: blob), equals: Array("blob \(saved)".utf8))
      // Everything up to its last sequence is there, and nothing later.
      let sequence = try backup.lastSequence
      try expect(sequence <= database.lastSequence)
      try expect(backup.documentCount, equals: backup.changes().count)
      try backup.close()
    }
    try database.close()
  }
}
