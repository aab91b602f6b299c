import Datasets
import TestSupport

/// Upgrades where the old database lies: at opening, and in place.
@Suite("Upgrades in place") struct OpeningTests {
  private let directory = TemporaryDirectory()

  private func make(_ version: LegacyDatabase.Version, _ directory: TemporaryDirectory) throws -> String {
    var settings = LegacyDatabase()
    settings.version = version
    settings.documents = 30
    settings.attachments = 50
    settings.platform = .android
    return try LegacyDatabaseMaker(settings).make("travel", in: directory.path)
  }

  @Test("happen at the opening, once, and the old one stays", arguments: LegacyDatabase.Version.allCases)
  func opening(_ version: LegacyDatabase.Version) throws {
    let source = try make(version, directory)
    let before = try Files(directory.path)
    var options = DatabaseOptions(engine: .lmdb, upgrade: UpgradeOptions(verifies: true))
    var database = try Database.open("travel", in: directory.path, options: options)
    expect(database.engineName == .lmdb && database.name == "travel")
    try expect(database.documentCount, equals: 30)
    try database.save("new", ["a": 1])
    try database.close()
    // By the old one's name as well.
    database = try Database.open(source, options: options)
    try expect(database.documentCount, equals: 31)
    try database.close()
    let after = try Files(directory.path)
    for (name, bytes) in before.contents { expect(after.contents[name], equals: bytes) }
    try FileManager.default.removeItem(atPath: directory.path + "/travel.touchstone")
    options.isReadOnly = true
    #expect(throws: DatabaseError.self) { try Database.open(source, options: options) }
    options = DatabaseOptions(creation: .openExisting)
    #expect(throws: DatabaseError.self) { try Database.open("travel", in: directory.path, options: options) }
  }

  @Test("keep the old one until told otherwise", arguments: LegacyDatabase.Version.allCases)
  func inPlace(_ version: LegacyDatabase.Version) throws {
    let source = try make(version, directory)
    let before = try directory.names()
    let report = try Database.upgradeInPlace(source)
    expect(report.documents.carried == 30 && report.attachments.carried > 0)
    try expect(directory.names(), equals: (before + ["travel.touchstone"]).sorted())
    #expect(throws: DatabaseError.self) { try Database.upgradeInPlace(source) }
    try FileManager.default.removeItem(atPath: directory.path + "/travel.touchstone")
    try Database.upgradeInPlace(source, removesSource: true)
    try expect(directory.names(), equals: ["travel.touchstone"])
  }

  @Test("leave the last sequence, UUIDs and the depth of trees as they were")
  func identity() throws {
    let source = try make(.v13, directory)
    try change(
      source + "/db.sqlite3",
      "INSERT INTO info VALUES ('max_revs', '7'); UPDATE sqlite_sequence SET seq = 4711 WHERE name = 'revs'")
    try Database.upgradeInPlace(source)
    let database = try Database.open(directory.path + "/travel")
    expect(database.privateUUID, equals: "1d9c5c0e-8f0e-4d62-9d5c-27f5d1f0a3b1")
    expect(database.publicUUID, equals: "2e9c5c0e-8f0e-4d62-9d5c-27f5d1f0a3b2")
    try expect(database.lastSequence, equals: 4_711)
    try expect(database.maximumTreeDepth, equals: 7)
    try expect(database.document("doc-3")?.sequence, equals: 4)
    try database.close()
  }
}
