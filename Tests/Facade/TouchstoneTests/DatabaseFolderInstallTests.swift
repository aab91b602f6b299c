import Foundation
import TestSupport
import Testing
import Touchstone

@Suite("Installing databases in a folder") struct DatabaseFolderInstallTests {
  private let directory = TemporaryDirectory()

  private func folder(_ options: DatabaseOptions = DatabaseOptions()) throws -> DatabaseFolder {
    try DatabaseFolder(directory.file("f"), options: options)
  }

  private func expectEqual(
    _ database: Database, _ original: Database, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let count = try database.compare(with: original) { difference in
      Issue.record("\(difference)", sourceLocation: sourceLocation)
    }
    #expect(count > 0, sourceLocation: sourceLocation)
  }

  @Test("a database is installed once, as a separate peer that knows the checkpoints", arguments: someEngines)
  func database(_ engine: EngineName) throws {
    let folder = try folder(try options(engine))
    let source = directory.file("prebuilt")
    try makeDatabase(engine, at: source, "first")
    let original = try Database.open(source, options: try options(engine))
    // The source may be open.
    try expect(folder.install("a", from: source))
    let copy = try folder.openExisting("a")
    expect(copy.engineName, equals: engine)
    expect(copy.publicUUID != original.publicUUID && copy.privateUUID != original.privateUUID)
    try expect(copy.previousPrivateUUID, equals: original.privateUUID)
    try original.close()
    // It is also left as it is while it is open.
    try expect(!folder.install("a", from: source))
    try expect(!folder.install("a", from: directory.file("missing")))
    try expect(
      databaseCode { try folder.install("a", from: source, unlessExists: false) }, equals: .alreadyExists)
    try expect(marker(of: copy), equals: "first")
    try expect(folder.install("b", from: source + ".touchstone", unlessExists: false))
    try expectNoLeftovers(folder.path, ["a.touchstone", "b.touchstone"])
  }

  @Test(
    "a zip file of a database is installed", arguments: [EngineName.sqlite, .lmdbEncrypted] + optionalEngines)
  func archive(_ engine: EngineName) throws {
    let folder = try folder(try options(engine))
    try makeDatabase(engine, at: directory.file("prebuilt"), "first")
    try storedZip(zipEntries(of: directory.file("prebuilt.touchstone")))
      .write(to: URL(fileURLWithPath: directory.file("prebuilt.zip")))
    try expect(folder.install("a", from: directory.file("prebuilt.zip")))
    try expect(marker(of: try folder.openExisting("a")), equals: "first")
    try expectNoLeftovers(folder.path)
  }

  @Test("a zip file can't choose SQLCipher's old library for a plain database") func oldLibrary() throws {
    let folder = try folder(try options(.sqlite))
    try makeDatabase(.sqlcipherPlain, at: directory.file("prebuilt"), "first")
    try storedZip(zipEntries(of: directory.file("prebuilt.touchstone")))
      .write(to: URL(fileURLWithPath: directory.file("prebuilt.zip")))
    try expect(folder.install("a", from: directory.file("prebuilt.zip")))
    let database = try folder.openExisting("a")
    expect(database.engineName, equals: .sqlite)
    try expect(marker(of: database), equals: "first")
  }

  @Test("a database of Couchbase Lite 1.x is installed, also from a zip file", arguments: someEngines)
  func legacy(_ engine: EngineName) throws {
    let folder = try folder(try options(engine))
    let old = try makeLegacyDatabase(.v10, "old", in: directory.path)
    let new = try makeLegacyDatabase(.v13, "new", in: directory.path)
    try storedZip(zipEntries(of: new)).write(to: URL(fileURLWithPath: directory.file("new.zip")))
    expect(old.hasSuffix(".cblite") && new.hasSuffix(".cblite2"))
    try Database.upgrade(new, to: directory.file("upgraded"))
    let upgraded = try Database.open(directory.file("upgraded"))
    defer { try? upgraded.close() }
    for (name, source) in [("old", old), ("new", new), ("zip", directory.file("new.zip"))] {
      try expect(folder.install(name, from: source))
      let database = try folder.openExisting(name)
      expect(database.engineName, equals: engine)
      try expect(database.documentCount, equals: 60)
      try expect(database.check(deep: true).isEmpty)
      try expect(database.localDocumentIDs().count, equals: 3)
      if name != "old" {
        try expectEqual(database, upgraded)
        // The checkpoints of the 1.x database are found under its private UUID.
        try expect(database.previousPrivateUUID, equals: upgraded.privateUUID)
        expect(database.privateUUID != upgraded.privateUUID)
      }
      try database.close()
    }
    try expectNoLeftovers(folder.path, ["new.touchstone", "old.touchstone", "zip.touchstone"])
  }

  @Test("a database of Couchbase Lite 2.x is installed, also from a zip file", arguments: someEngines)
  func cblite2(_ engine: EngineName) throws {
    let folder = try folder(try options(engine))
    let path = directory.file("prebuilt.cblite2")
    try makeDatabase(.sqlite, at: directory.file("prebuilt"), "first")
    let original = try Database.open(directory.file("prebuilt"))
    // Indexes aren't carried over.
    try original.deleteIndex("byN")
    try original.exportCBLite2(to: path)
    try storedZip(zipEntries(of: path)).write(to: URL(fileURLWithPath: directory.file("prebuilt.zip")))
    for (name, source) in [("a", path), ("b", path + "/"), ("c", directory.file("prebuilt.zip"))] {
      try expect(folder.install(name, from: source))
      let database = try folder.openExisting(name)
      expect(database.engineName, equals: engine)
      try expectEqual(database, original)
      let blob = try #require(try database.document("blob")?["file"].blob)
      try expect(database.contents(of: blob), equals: folderBlob + Array("first".utf8))
      try database.close()
    }
    try original.close()
    try expectNoLeftovers(folder.path, ["a.touchstone", "b.touchstone", "c.touchstone"])
  }

  @Test("a source that isn't a database leaves nothing behind") func foreign() throws {
    let folder = try folder()
    let manager = FileManager.default
    func file(_ name: String, _ text: String) throws -> String {
      try Data(text.utf8).write(to: URL(fileURLWithPath: directory.file(name)))
      return directory.file(name)
    }
    for name in ["empty", "empty.touchstone", "forest.cblite2"] {
      try manager.createDirectory(atPath: directory.file(name), withIntermediateDirectories: false)
    }
    _ = try file("forest.cblite2/db.forest", "x")
    try expect(databaseCode { try folder.install("a", from: directory.file("missing")) }, equals: .notFound)
    try expect(databaseCode { try folder.install("a", from: "") }, equals: .invalidName)
    try expect(
      databaseCode { try folder.install("a", from: directory.file("empty.touchstone")) },
      equals: .notADatabase)
    try expect(
      databaseCode { try folder.install("a", from: try file("a.zip", "PK\u{3}\u{4}")) }, equals: .notADatabase
    )
    try expect(
      upgradeCode { try folder.install("a", from: directory.file("forest.cblite2")) }, equals: .truncated)
    try expect(upgradeCode { try folder.install("a", from: try file("a.cblite", "text")) }, equals: .foreign)
    try storedZip([("other.txt", [1])]).write(to: URL(fileURLWithPath: directory.file("b.zip")))
    try expect(databaseCode { try folder.install("a", from: directory.file("b.zip")) }, equals: .notADatabase)
    struct Stop: Error {}
    try makeDatabase(.sqlite, at: directory.file("prebuilt"), "first")
    for source in [directory.file("prebuilt"), try makeLegacyDatabase(.v13, "old", in: directory.path)] {
      #expect(throws: Stop.self) {
        try folder.install("a", from: source, progress: { _ in throw Stop() })
      }
    }
    try expect(folder.names(), equals: [])
    try expect(directory.names("f"), equals: [])
  }

  @Test("a Couchbase Lite database that can't be carried over whole is refused") func incomplete() throws {
    let folder = try folder()
    let path = directory.file("prebuilt.cblite2")
    try makeDatabase(.sqlite, at: directory.file("prebuilt"), "first")
    let original = try Database.open(directory.file("prebuilt"))
    try original.exportCBLite2(to: path)
    try original.close()
    for name in try directory.names("prebuilt.cblite2/Attachments") {
      try FileManager.default.removeItem(atPath: path + "/Attachments/" + name)
    }
    try expect(databaseCode { try folder.install("a", from: path) }, equals: .incompleteSource)
    let old = try makeLegacyDatabase(.v13, "old", in: directory.path)
    for name in try directory.names("old.cblite2/attachments") {
      try FileManager.default.removeItem(atPath: old + "/attachments/" + name)
    }
    try expect(upgradeCode { try folder.install("a", from: old) }, equals: .refused)
    try expect(directory.names("f"), equals: [])
  }

  @Test("the copy gets the key of the folder, or the one that is given") func keys() throws {
    let deviceKey = try UserKey.raw([UInt8](repeating: 9, count: 32))
    let other = try UserKey.raw([UInt8](repeating: 5, count: 32))
    let plain = directory.file("plain")
    let secret = directory.file("secret")
    try makeDatabase(.sqlite, at: plain, "plain")
    try makeDatabase(.lmdbEncrypted, at: secret, "secret")
    let secretKey = try #require(try key(of: .lmdbEncrypted))
    func engine(_ folder: DatabaseFolder, _ name: String, _ key: UserKey?) throws -> EngineName {
      let database = try folder.openExisting(name, options: DatabaseOptions(key: key))
      defer { try? database.close() }
      return database.engineName
    }
    let keyed = try folder(DatabaseOptions(key: deviceKey))
    try keyed.install("plain", from: plain)
    try expect(engine(keyed, "plain", deviceKey), equals: .sqlcipher)
    try expect(databaseCode { try keyed.install("secret", from: secret) }, equals: .wrongKey)
    try keyed.install("secret", from: secret, key: secretKey)
    try expect(engine(keyed, "secret", deviceKey), equals: .lmdbEncrypted)
    try keyed.install("other", from: secret, engine: .sqlcipher, key: secretKey, newKey: other)
    try expect(engine(keyed, "other", other), equals: .sqlcipher)
    try expect(databaseCode { try keyed.install("x", from: plain, engine: .sqlite) }, equals: .notEncrypted)
    try keyed.install("old", from: try makeLegacyDatabase(.v13, "old", in: directory.path))
    try expect(engine(keyed, "old", deviceKey), equals: .sqlcipher)

    let open = try DatabaseFolder(directory.file("open"))
    try expect(databaseCode { try open.install("secret", from: secret) }, equals: .keyRequired)
    try open.install("secret", from: secret, key: secretKey)
    try expect(engine(open, "secret", secretKey), equals: .lmdbEncrypted)
    try open.install("plain", from: plain, newKey: other)
    try expect(engine(open, "plain", other), equals: .sqlcipher)
    // What was encrypted isn't stored in plain text.
    let old = try makeLegacyDatabase(
      .v13, "encrypted", in: directory.path, key: [UInt8](repeating: 5, count: 32))
    try expect(upgradeCode { try open.install("old", from: old) }, equals: .keyRequired)
    try open.install("old", from: old, key: other)
    try expect(engine(open, "old", other), equals: .sqlcipher)
    // The engine of the options is for an existing database only if they require it.
    let lmdb = try DatabaseFolder(
      directory.file("lmdb"), options: DatabaseOptions(engine: .lmdb, requireEngine: true))
    try lmdb.install("plain", from: plain)
    try expect(engine(lmdb, "plain", nil), equals: .lmdb)
  }

  @Test("the databases of the originals are installed")
  func realDatabases() throws {
    guard let data = environmentVariable("TOUCHSTONE_DATA") else { return }
    let folder = try folder()
    for (name, path) in [
      ("1.0", "cblite-1x/ios104"), ("1.3", "cblite-1x/ios130"), ("2.0", "cblite-2x/PrebuiltDB"),
      ("3.0", "cblite-2x/names-3x"),
    ] {
      let manager = FileManager.default
      let inner = try manager.subpathsOfDirectory(atPath: data + "/" + path)
      let found = inner.first { $0.hasSuffix(".cblite") || $0.hasSuffix(".cblite2") || $0.hasSuffix(".zip") }
      guard let found else { continue }
      try expect(folder.install(name, from: "\(data)/\(path)/\(found)"), "\(path)")
      let database = try folder.openExisting(name)
      try expect(database.check(deep: true).isEmpty)
      try expect(database.documentCount > 0)
      try database.close()
    }
  }
}
