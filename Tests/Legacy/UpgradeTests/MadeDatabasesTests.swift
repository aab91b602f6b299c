import Datasets
import TestSupport

/// Databases that are made for the purpose: what the maker knows of each document is what the result has to have.
@Suite("Databases that are made") struct MadeDatabasesTests {
  private let directory = TemporaryDirectory()

  static let variants: [(LegacyDatabase.Platform, LegacyDatabase.Version)] =
    LegacyDatabase.Platform.allCases.flatMap { platform in
      LegacyDatabase.Version.allCases.map { (platform, $0) }
    }

  static func settings(_ platform: LegacyDatabase.Platform, _ version: LegacyDatabase.Version)
    -> LegacyDatabase
  {
    var settings = LegacyDatabase()
    settings.platform = platform
    settings.version = version
    settings.documents = 150
    settings.history = 4
    settings.conflicts = 20
    settings.tombstones = 15
    settings.attachments = 25
    settings.compressed = 40
    settings.compacted = 30
    settings.expiring = 10
    settings.oddRevisionIDs = 20
    settings.localDocuments = 7
    settings.seed = 42
    return settings
  }

  @Test("come over whole, whoever wrote them", arguments: variants)
  func variant(_ platform: LegacyDatabase.Platform, _ version: LegacyDatabase.Version) throws {
    for engine in [EngineName.sqlite, .lmdb] {
      let directory = TemporaryDirectory()
      try FileManager.default.createDirectory(
        atPath: directory.path + "/old", withIntermediateDirectories: true)
      let settings = Self.settings(platform, version)
      let source = try LegacyDatabaseMaker(settings).make("old", in: directory.path + "/old")
      let before = try Files(directory.path + "/old")
      let report = try Database.upgrade(
        source, to: directory.new, engine: engine, options: UpgradeOptions(verifies: true))
      try expect(Files(directory.path + "/old"), equals: before)
      expect(report.verifiedDocuments, equals: settings.documents)
      expect(report.losses, equals: 0, "\(report.issues)")
      try compareMade(directory.new, settings, report)
    }
  }

  @Test(
    "come over whole from a log, and to engines that encrypt",
    arguments: [EngineName.sqlcipher, .sqlcipherPlain])
  func withLog(_ engine: EngineName) throws {
    try FileManager.default.createDirectory(
      atPath: directory.path + "/old", withIntermediateDirectories: true)
    var settings = Self.settings(.ios, .v13)
    settings.hasLog = true
    let source = try LegacyDatabaseMaker(settings).make("old", in: directory.path + "/old")
    expect(FileManager.default.fileExists(atPath: source + "/db.sqlite3-wal"))
    let before = try Files(directory.path + "/old")
    let report = try Database.upgrade(
      source, to: directory.new, engine: engine, key: try key(of: engine),
      options: UpgradeOptions(verifies: true))
    try expect(Files(directory.path + "/old"), equals: before)
    try compareMade(directory.new, settings, report, key: try key(of: engine))
  }

  @Test("say that commits of a damaged log are lost")
  func damagedLog() throws {
    try FileManager.default.createDirectory(
      atPath: directory.path + "/old", withIntermediateDirectories: true)
    var settings = Self.settings(.ios, .v13)
    settings.hasLog = true
    let source = try LegacyDatabaseMaker(settings).make("old", in: directory.path + "/old")
    let url = URL(filePath: source + "/db.sqlite3-wal")
    var log = try [UInt8](Data(contentsOf: url))
    log[log.count / 2] ^= 1
    try Data(log).write(to: url)
    do {
      let report = try Database.upgrade(
        source, to: directory.new, options: UpgradeOptions(verifies: true))
      expect(report.issueCounts["damagedCommit"], equals: 1, "\(report.issues)")
      expect(report.losses >= 1)
    } catch let error as UpgradeError {
      // The whole database is in the log, maybe with its schema.
      expect([.damaged, .foreign, .truncated].contains(error.code), "\(error)")
    }
  }

  @Test("give the winners alone when that is asked for")
  func winners() throws {
    var settings = Self.settings(.net, .v13)
    settings.history = 30
    settings.compacted = 0
    let source = try directory.makeOld(settings)
    let report = try Database.upgrade(
      source, to: directory.new, options: UpgradeOptions(carry: .winners, verifies: true))
    expect(report.localDocuments.unwanted == 7 && report.localDocuments.carried == 0)
    expect(report.expirations.carried == 0 && report.conflicts.carried == 0)
    let database = try directory.openNew()
    defer { try? database.close() }
    for number in 0..<settings.documents {
      let document = settings.document(number)
      let winner = winningRevision(document)
      let revisions = try #require(try database.revisions(of: document.id))
      var branch: [String] = []
      var next: Int? = winner
      while let index = next, branch.count < 20 {
        branch.append(document.revisions[index].id)
        next = document.revisions[index].parent
      }
      expect(revisions.map(\.id.description), equals: branch)
      expect(revisions.filter(\.hasBody).map(\.id.description), equals: [branch[0]])
      expect(revisions[0].isDeleted, equals: document.revisions[winner].isDeleted)
    }
    try expect(database.localDocumentIDs().isEmpty)
  }

  @Test("keep local documents apart whose IDs are alike but for normalization")
  func normalization() throws {
    let source = try LegacyDatabaseMaker(Self.settings(.ios, .v13)).make("old", in: directory.path)
    let ids = ["caf\u{e9}", "cafe\u{301}"]
    try change(
      source + "/db.sqlite3",
      """
      UPDATE localdocs SET docid = '_local/\(ids[0])', json = CAST('{"n":0}' AS BLOB) WHERE docid = '_local/local-0';
      UPDATE localdocs SET docid = '_local/\(ids[1])', json = CAST('{"n":1}' AS BLOB) WHERE docid = '_local/local-1';
      """)
    let report = try Database.upgrade(source, to: directory.new, options: UpgradeOptions(verifies: true))
    expect(report.localDocuments.carried, equals: 7)
    let database = try directory.openNew()
    for (number, id) in ids.enumerated() {
      try expect(database.localDocument(id)?.body, equals: .object(["n": .int(Int64(number))]))
    }
    try database.close()
  }

  @Test(
    "that are damaged in single places are carried over but for those, and refused when nothing may be lost")
  func losses() throws {
    var settings = Self.settings(.ios, .v13)
    settings.conflicts = 0
    settings.tombstones = 0
    settings.compressed = 0
    settings.oddRevisionIDs = 0
    let source = try directory.makeOld(settings)
    let long = String(repeating: "x", count: 481)
    try change(
      source + "/db.sqlite3",
      """
      UPDATE docs SET docid = '_other/views' WHERE doc_id = 1;
      UPDATE docs SET docid = '\(long)' WHERE doc_id = 2;
      UPDATE docs SET docid = '\(long.dropLast())' WHERE doc_id = 3;
      UPDATE revs SET json = CAST('{"broken' AS BLOB) WHERE doc_id = 4;
      UPDATE revs SET json = CAST('[1,2]' AS BLOB) WHERE doc_id = 5 AND current = 0;
      UPDATE revs SET parent = sequence WHERE doc_id = 6;
      UPDATE revs SET revid = 'no' || sequence WHERE doc_id = 7 AND current = 1;
      UPDATE revs SET json = NULL WHERE doc_id = 8;
      UPDATE revs SET doc_id = 100000 WHERE doc_id = 9 AND current = 0;
      UPDATE revs SET current = 0 WHERE doc_id = 10;
      DELETE FROM revs WHERE doc_id = 11;
      UPDATE docs SET expiry_timestamp = 'soon' WHERE doc_id = 12;
      UPDATE localdocs SET json = CAST('nothing' AS BLOB) WHERE docid = '_local/local-3';
      """)
    let attachments = source + "/attachments"
    let files = try FileManager.default.contentsOfDirectory(atPath: attachments).sorted()
    try FileManager.default.removeItem(atPath: attachments + "/" + files[0])
    try Data("other".utf8).write(to: URL(fileURLWithPath: attachments + "/" + files[1]))
    let report = try Database.upgrade(source, to: directory.new, options: UpgradeOptions(verifies: true))
    let counts = report.issueCounts
    expect(counts["reservedDocumentID"], equals: 1)
    expect(counts["invalidDocumentID"], equals: 1)
    expect(counts["noRevision"], equals: 3, "\(report.issues)")
    expect(counts["unreadableBody"], equals: 1)
    expect(counts["brokenParent", default: 0] >= 4)
    expect(counts["invalidRevisionID"], equals: 1)
    expect(counts["emptyBody"], equals: 1)
    expect(counts["orphanRevision"], equals: 3)
    expect(counts["expiration"], equals: 1)
    expect(counts["localDocument"], equals: 1)
    expect(counts["missingAttachment", default: 0] >= 1)
    expect(counts["damagedAttachment", default: 0] >= 1)
    expect(report.attachments.missing == 1 && report.attachments.damaged == 1)
    expect(report.documents.read, equals: settings.documents)
    expect(report.documents.carried + report.documents.skipped, equals: report.documents.read)
    expect(report.documents.skipped, equals: 5)
    expect(report.revisions.read, equals: report.revisions.carried + report.revisions.skipped)
    let database = try directory.openNew()
    try expect(database.documentCount, equals: report.documents.carried)
    try expect(database.document(String(long.dropLast())) != nil)
    try expect(database.revisions(of: "doc-7")?.first?.body, equals: [:])
    try database.close()
    let code = try upgradeCode {
      _ = try Database.upgrade(
        source, to: directory.path + "/strict", options: UpgradeOptions(isStrict: true))
    }
    expect(code, equals: .refused)
    try expect(!directory.names().contains { $0.hasPrefix("strict") || $0.hasPrefix(".") })
  }
}

/// The revision of a document that wins by the rule of 1.x.
func winningRevision(_ document: LegacyDocument) -> Int {
  func rank(_ index: Int) -> (Int, Int, String) {
    let revision = document.revisions[index]
    let parts = revision.id.split(separator: "-", maxSplits: 1)
    return (revision.isDeleted ? 0 : 1, Int(parts[0]) ?? 0, String(parts[1]))
  }
  let leaves = document.revisions.indices.filter { document.revisions[$0].isLeaf }
  return leaves.max { rank($0) < rank($1) } ?? 0
}

/// Compares a result with what the maker knows.
func compareMade(
  _ path: String, _ settings: LegacyDatabase, _ report: UpgradeReport, key: UserKey? = nil
) throws {
  let database = try Database.open(path, options: DatabaseOptions(isReadOnly: true, key: key))
  defer { try? database.close() }
  var tombstones = 0
  var conflicts = 0
  var revisionCount = 0
  for number in 0..<settings.documents {
    let document = settings.document(number)
    let comment: Comment = "document \(number)"
    let revisions = try #require(try database.revisions(of: document.id), comment)
    let byID = Dictionary(uniqueKeysWithValues: revisions.map { ($0.id.description, $0) })
    expect(revisions.count, equals: document.revisions.count, comment)
    revisionCount += revisions.count
    for said in document.revisions {
      let found = try #require(byID[said.id], comment)
      expect(found.parent?.description, equals: said.parent.map { document.revisions[$0].id }, comment)
      expect(found.isDeleted == said.isDeleted && found.isLeaf == said.isLeaf, comment)
      guard let body = said.body else {
        expect(!found.hasBody, comment)
        continue
      }
      var stored = try #require(found.body, comment)
      let attachments = stored.object?["_attachments"]?.object
      expect(attachments?.count ?? 0, equals: said.attachments.count, comment)
      for attachment in said.attachments {
        let value = try #require(attachments?[attachment.name].flatMap { Attachment($0) }, comment)
        expect(value.encoding == nil && value.revpos == UInt64(attachment.revpos), comment)
        try expect(
          database.contents(of: value.blob), equals: settings.attachmentBytes(attachment.number), comment)
      }
      stored.remove("_attachments")
      let wanted =
        try JSONSerialization.jsonObject(with: Data(body.isEmpty ? Array("{}".utf8) : body)) as? NSDictionary
      let got = try JSONSerialization.jsonObject(with: Data(try stored.canonicalJSON().utf8)) as? NSDictionary
      expect(got, equals: wanted, comment)
    }
    let winner = document.revisions[winningRevision(document)]
    expect(revisions[0].id.description == winner.id && revisions[0].isCurrent, comment)
    if winner.isDeleted { tombstones += 1 }
    if document.revisions.count(where: { $0.isLeaf && !$0.isDeleted }) > 1 { conflicts += 1 }
    let expires = try database.expiration(of: document.id)
    expect(expires?.timeIntervalSince1970, equals: document.expiration.map(Double.init), comment)
  }
  expect(report.tombstones.carried == tombstones && report.conflicts.carried == conflicts)
  expect(report.revisions.carried, equals: revisionCount)
  try expect(database.documentCount, equals: settings.documents - tombstones)
  try expect(database.localDocumentIDs().count, equals: settings.localDocuments)
  for number in 0..<settings.localDocuments {
    let said = settings.localDocument(number)
    let found = try #require(try database.localDocument(said.id))
    expect(found.generation, equals: UInt64(said.generation))
    try expect(found.body, equals: JSONValue(json: said.json))
  }
  let faults = try database.check(deep: true)
  expect(faults.isEmpty, "\(faults.prefix(3))")
}
