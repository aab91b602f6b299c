import CSQLite
import Datasets
import SQLiteLibrary
import TestSupport

/// The databases that Couchbase Lite itself wrote, of the data directory.
@Suite("Real .cblite2 databases", .enabled(if: realData != nil)) struct RealDatabaseTests {
  private let directory = TemporaryDirectory()

  struct Expected: CustomTestStringConvertible, Sendable {
    let name: String
    let path: String
    var collection: String?
    var documents = 0
    var tombstones = 0
    var revisions = 0
    var blobs = 0
    var others: [String: Int] = [:]
    var testDescription: String { name + (collection.map { "/" + $0 } ?? "") }
  }

  static let expected = [
    Expected(name: "PrebuiltDB", path: "PrebuiltDB.cblite2", documents: 10, revisions: 10),
    Expected(name: "android200-sqlite", path: "android-sqlite.cblite2", documents: 2, revisions: 2, blobs: 2),
    Expected(
      name: "android200-sqlite-b", path: "android-sqlite.cblite2", documents: 2, revisions: 2, blobs: 2),
    Expected(
      name: "db_3_0_0_names_100_with_deleted", path: "db_3_0_0_names_100_with_deleted.cblite2", documents: 78,
      tombstones: 22, revisions: 122),
    Expected(name: "mini-travel-sample", path: "mini-travel-sample.cblite2", documents: 41, revisions: 41),
    Expected(name: "names-3x", path: "names.cblite2", documents: 100, revisions: 100),
    Expected(name: "posts-3x", path: "posts.cblite2", others: ["posts": 0]),
    Expected(name: "todo-3x", path: "todo.cblite2", others: ["lists": 0, "tasks": 0, "users": 0]),
    Expected(
      name: "travel-3x", path: "travel.cblite2.zip",
      others: [
        "travel.airlines": 150, "travel.airports": 0, "travel.hotels": 350, "travel.landmarks": 0,
        "travel.routes": 3_000,
      ]),
    Expected(
      name: "travel-3x", path: "travel.cblite2.zip", collection: "travel.hotels", documents: 350,
      revisions: 350,
      blobs: 20,
      others: [
        "travel.airlines": 150, "travel.airports": 0, "travel.landmarks": 0, "travel.routes": 3_000,
      ]),
    Expected(name: "travel-sample", path: "travel-sample.cblite2.zip", documents: 2_885, revisions: 2_885),
    Expected(name: "upgrade_2.7", path: "upgrade_2.7.cblite2", documents: 50, tombstones: 50, revisions: 100),
    Expected(name: "upgrade_2.8", path: "upgrade_2.8.cblite2", documents: 50, tombstones: 50, revisions: 100),
    Expected(name: "upgrade_2.8_index", path: "upgrade_2.8_index.cblite2", documents: 2, revisions: 2),
    Expected(
      name: "upgrade_3.1_peerCheckpoints", path: "upgrade_3.1_peerCheckpoints.cblite2",
      others: ["loopback.test": 100]),
    Expected(
      name: "upgrade_3.1_peerCheckpoints", path: "upgrade_3.1_peerCheckpoints.cblite2",
      collection: "loopback.test", documents: 100, revisions: 100),
  ]

  @Test("are imported whole, on every engine, and stay as they are", arguments: expected, someEngines)
  func imports(_ expected: Expected, _ engine: EngineName) throws {
    let source = "\(realData ?? "")/\(expected.name)"
    let before = try files(below: source)
    let database = try newDatabase(directory.file("db"), engine)
    let report = try database.importCBLite2("\(source)/\(expected.path)", collection: expected.collection)
    expect(report.documents == expected.documents && report.tombstones == expected.tombstones)
    expect(report.revisions == expected.revisions && report.blobs == expected.blobs)
    expect(report.skipped == 0 && report.missingBlobs == 0 && report.details.isEmpty)
    expect(
      Dictionary(uniqueKeysWithValues: report.otherCollections.map { ($0.name, $0.documents) }),
      equals: expected.others)
    try expect(database.documentCount, equals: expected.documents)
    try expect(database.tombstoneCount, equals: expected.tombstones)
    try expect(files(below: source), equals: before)
    try expectSound(database, expected.name)
    // What was imported goes out and comes back the same.
    if engine == .lmdb {
      try database.exportCBLite2(to: directory.file("out.cblite2"))
      let again = try newDatabase(directory.file("again"))
      try again.importCBLite2(directory.file("out.cblite2"))
      try expect(differences(database, again, sequences: true), equals: [])
      try again.close()
    }
    try database.close()
  }

  @Test("that 2.x wrote are exported byte for byte: rows, trees, bodies, property names")
  func sameBytes() throws {
    for expected in Self.expected where ["201", "302"].contains(versions[expected.name]) {
      // Rows of a log are read by SQL from a copy that may be changed.
      let source = directory.file("\(expected.name).cblite2")
      try unpack("\(realData ?? "")/\(expected.name)/\(expected.path)", to: source)
      try checkpoint(source)
      let database = try newDatabase(directory.file(expected.name))
      try database.importCBLite2(source)
      let target = directory.file("\(expected.name)-out.cblite2")
      try database.exportCBLite2(to: target)
      // The flag 8 says that a remote database has the revision, and isn't carried over.
      let documents =
        "SELECT hex(key), sequence, flags & 7, hex(version), hex(body) FROM kv_default ORDER BY key"
      try expect(rows(source, documents), equals: rows(target, documents), "\(expected.name)")
      let info =
        "SELECT key, flags, version, hex(body) FROM kv_info WHERE key IN ('versioning', 'SharedKeys')"
      try expect(rows(source, info).sorted(), equals: rows(target, info).sorted())
      let last = "SELECT lastSeq FROM kvmeta WHERE name = 'default'"
      try expect(rows(source, last), equals: rows(target, last))
      let schema = "SELECT sql FROM sqlite_master WHERE name IN ('kv_default', 'kv_info') ORDER BY name"
      try expect(rows(source, schema), equals: rows(target, schema))
      try database.close()
    }
  }

  @Test("of 2.0 have the tables that are exported, word for word")
  func schema() throws {
    let database = try newDatabase(directory.file("db"))
    try database.exportCBLite2(to: directory.file("out.cblite2"))
    let all = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name"
    try expect(
      rows(directory.file("out.cblite2"), all),
      equals: rows("\(realData ?? "")/android200-sqlite/android-sqlite.cblite2", all))
    try expect(rows(directory.file("out.cblite2"), "PRAGMA user_version"), equals: ["201"])
    try expect(rows(directory.file("out.cblite2"), "PRAGMA integrity_check"), equals: ["ok"])
    try database.close()
  }

  @Test("have the documents that their makers say")
  func contents() throws {
    let database = try newDatabase(directory.file("db"))
    try database.importCBLite2("\(realData ?? "")/upgrade_2.7/upgrade_2.7.cblite2")
    for n in 1...100 {
      let id = "doc-" + String(repeating: "0", count: 3 - "\(n)".count) + "\(n)"
      let document = try #require(try database.document(id, includeDeleted: true))
      expect(document.isDeleted == (n > 50) && document.revisionID.description == "1-abcd")
      try expect(document.value(), equals: ["n": .int(Int64(n)), "even": .bool(n % 2 == 0)])
    }
    try database.close()
  }

  @Test("travel-sample is what the JSON lines of the data directory say")
  func travelSample() throws {
    let database = try newDatabase(directory.file("db"))
    try database.importCBLite2("\(realData ?? "")/travel-sample/travel-sample.cblite2.zip")
    let lines = try LoadedDataset.load("travel-sample")
    var compared = 0
    for index in 0..<lines.count {
      let id = String(decoding: lines.id(index), as: UTF8.self)
      guard let document = try database.document(id) else { continue }
      try expect(document.value(), equals: JSONValue(json: lines.json(index)), "\(id)")
      compared += 1
    }
    expect(compared, equals: 2_885)
    try database.close()
  }

  @Test(
    "that are encrypted are refused by name",
    arguments: [
      "Mac_2.1_AES128/Mac_2.1_AES128", "Mac_2.5_AES256/Mac_2.5_AES256",
      "PrebuiltDB-encrypted/PrebuiltDB-encrypted",
      "PrebuiltDB-encrypted-b/PrebuiltDB-encrypted", "PrebuiltDB-encrypted-c/PrebuiltDB-encrypted",
      "upgrade_2.7_encrypted/upgrade_2.7", "upgrade_2.8_encrypted/upgrade_2.8_encrypted",
    ])
  func encrypted(_ name: String) throws {
    let database = try newDatabase(directory.file("db"))
    let path = "\(realData ?? "")/\(name).cblite2"
    let before = try files(below: path)
    try expect(cblite2Code { try database.importCBLite2(path) }, equals: .encrypted)
    try expect(files(below: path), equals: before)
    try database.close()
  }
}

/// The real databases, when they are here.
let realData: String? = {
  guard let data = environmentVariable("TOUCHSTONE_DATA") else { return nil }
  let path = data + "/cblite-2x"
  return FileManager.default.fileExists(atPath: path) ? path : nil
}()

private let versions = [
  "PrebuiltDB": "201", "android200-sqlite": "201", "mini-travel-sample": "201", "upgrade_2.7": "302",
  "upgrade_2.8": "302", "upgrade_2.8_index": "302",
]

private func unpack(_ source: String, to target: String) throws {
  try FileManager.default.copyItem(atPath: source, toPath: target)
  for name in try FileManager.default.subpathsOfDirectory(atPath: target) {
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: target + "/" + name)
  }
  try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: target)
}

/// Brings what is in the write-ahead log into the file.
private func checkpoint(_ path: String) throws {
  let connection = try connection(path)
  _ = try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
  connection.close()
}
