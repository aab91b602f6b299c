import TestSupport

/// Databases in ForestDB that Couchbase Lite 1.x wrote, and some that its libraries wrote for the rare cases. What each has to
/// yield is in companion files that were made with those libraries.
@Suite("ForestDB databases that others wrote", .enabled(if: realDatabases != nil)) struct RealForestDBTests {
  struct Expected: Decodable {
    struct Revision: Decodable {
      var rev: String
      var parent: Int?
      var leaf: Bool
      var deleted: Bool
      var sequence: UInt64
      var storedJSON: String?
    }
    struct Attachment: Decodable {
      var name: String
      var digest: String
      var length: UInt64
      var blob: String?
    }
    struct Document: Decodable {
      var id: String
      var winningRev: String
      var deleted: Bool
      var sequence: UInt64
      var revs: [Revision]
      var attachments: [Attachment]
    }
    struct Local: Decodable {
      var id: String
      var rev: String
      var json: String
    }
    struct Store: Decodable {
      var name: String
      var lastSequence: UInt64
    }
    /// Seconds by document ID; an empty array for none.
    struct Expirations: Decodable {
      var seconds: [String: Int]
      init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        seconds = (try? container.decode([String: Int].self)) ?? [:]
      }
    }
    var main: String
    var key: String?
    var encrypted: Bool
    var docs: [Document]
    var conflictedDocs: [String]
    var localDocs: [Local]
    var stores: [Store]
    var expirations: Expirations
  }

  static func expected() throws -> [String: Expected] {
    guard let realDatabases else { return [:] }
    var all: [String: Expected] = [:]
    for name in ["expected-forestdb.json", "expected-forestdb-made.json"] {
      let data = try Data(contentsOf: URL(fileURLWithPath: "\(realDatabases)/\(name)"))
      all.merge(try JSONDecoder().decode([String: Expected].self, from: data)) { $1 }
    }
    return all
  }

  static func path(_ name: String, _ expected: Expected) -> String {
    "\(realDatabases ?? "")/\(name)/" + expected.main.prefix { $0 != "/" }
  }

  @Test("give exactly what their companions say, on every engine", arguments: someEngines)
  func upgrades(_ engine: EngineName) throws {
    let all = try Self.expected()
    expect(all.count, equals: 16)
    for (name, expected) in all.sorted(by: { $0.key < $1.key }) {
      let comment: Comment = "\(name) to \(engine)"
      let directory = TemporaryDirectory()
      let base = try #require(realDatabases) + "/" + name
      let before = try Files(base)
      let sourceKey = try expected.key.map { try UserKey.raw(hex($0)) }
      let report = try Database.upgrade(
        Self.path(name, expected), to: directory.new, engine: engine, key: try key(of: engine),
        options: UpgradeOptions(verifies: true, sourceKey: sourceKey))
      try expect(Files(base), equals: before, comment)
      expect(report.storage == "ForestDB" && report.isEncrypted == expected.encrypted, comment)
      // IDs of 2,000 bytes and with a zero byte can't be stored.
      let left = expected.docs.count { !Self.isStorable($0.id) }
      expect(report.issueCounts, equals: (left == 0 ? [:] : ["invalidDocumentID": left]), "\(name)")
      expect(report.verifiedDocuments, equals: expected.docs.count - left, comment)
      expect(report.conflicts.carried, equals: expected.conflictedDocs.count, comment)
      let database = try directory.openNew(key: key(of: engine))
      defer { try? database.close() }
      try compare(database, expected, report, base, comment)
      let faults = try database.check(deep: true)
      expect(faults.isEmpty, "\(name): \(faults.prefix(3))")
    }
  }

  private static func isStorable(_ id: String) -> Bool {
    id.utf8.count <= 480 && !id.utf8.contains { $0 < 0x20 }
  }

  private func compare(
    _ database: Database, _ expected: Expected, _ report: UpgradeReport, _ base: String, _ comment: Comment
  ) throws {
    let documents = expected.docs.filter { Self.isStorable($0.id) }
    try expect(database.documentCount, equals: documents.filter { !$0.deleted }.count, comment)
    for said in documents {
      let revisions = try #require(try database.revisions(of: said.id), comment)
      expect(revisions.count, equals: said.revs.count, comment)
      expect(revisions.first?.id.description, equals: said.winningRev, comment)
      expect(revisions.first?.isDeleted, equals: said.deleted, comment)
      let byID = Dictionary(uniqueKeysWithValues: revisions.map { ($0.id.description, $0) })
      for revision in said.revs {
        let comment: Comment = "\(comment): \(said.id) \(revision.rev)"
        let found = try #require(byID[revision.rev], comment)
        expect(found.parent?.description, equals: revision.parent.map { said.revs[$0].rev }, comment)
        expect(found.isLeaf == revision.leaf && found.isDeleted == revision.deleted, comment)
        expect(found.sequence, equals: revision.sequence, comment)
        let text = revision.storedJSON ?? (revision.leaf ? "{}" : nil)
        guard let text else {
          expect(!found.hasBody, comment)
          continue
        }
        let body = try #require(found.body, comment)
        try expect(object(try body.canonicalJSON()), equals: object(text), comment)
      }
      for attachment in said.attachments {
        let entry = revisions.first?.body?["_attachments"].object?[attachment.name]
        let blob = try #require(entry.flatMap { Attachment($0) }, comment).blob
        expect(blob.digest.text == attachment.digest && blob.length == attachment.length, comment)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: base + "/" + #require(attachment.blob)))
        try expect(database.contents(of: blob), equals: Array(bytes), comment)
      }
    }
    let ids = Set(documents.map(\.id))
    for id in ids {
      let seconds = try database.expiration(of: id)?.timeIntervalSince1970
      expect(seconds, equals: expected.expirations.seconds[id].map(Double.init), comment)
    }
    try expect(
      Set(try database.localDocumentIDs().map { "_local/" + $0 }), equals: Set(expected.localDocs.map(\.id)),
      comment)
    for said in expected.localDocs {
      let found = try #require(try database.localDocument(String(said.id.dropFirst(7))), comment)
      expect("\(found.generation)-local", equals: said.rev, comment)
      var wanted = try object(said.json)
      // .NET keeps the ID in the body.
      wanted?["_id"] = nil
      try expect(
        object(found.body.canonicalJSON()) as NSDictionary?, equals: wanted as NSDictionary?, comment)
    }
    expect(
      report.expirations.carried, equals: expected.expirations.seconds.keys.count { ids.contains($0) },
      comment)
    try expect(
      database.lastSequence, equals: expected.stores.first { $0.name == "default" }?.lastSequence, comment)
  }

  private func object(_ text: String) throws -> [String: AnyHashable]? {
    try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: AnyHashable]
  }

  /// Databases in ForestDB, and those in SQLite with the same contents.
  private static let siblings = [
    ("android120-forestdb", "android120"), ("android120-forestdb-a", "android120-a"),
    ("android140-forestdb", "android140"), ("android140-forestdb", "android140-b"),
    ("net120-forestdb", "net120"), ("net140-forestdb", "net120"), ("net130-forestdb", "net130"),
    ("net130-forestdb-b", "net130-b"),
  ]

  @Test("are upgraded to the same as their siblings in SQLite", arguments: siblings)
  func sibling(_ forest: String, _ sqlite: String) throws {
    let directory = TemporaryDirectory()
    var databases: [Database] = []
    for name in [forest, sqlite] {
      let base = try #require(realDatabases) + "/" + name
      let inner = try #require(
        try FileManager.default.contentsOfDirectory(atPath: base).first { $0.hasSuffix(".cblite2") })
      try Database.upgrade(
        base + "/" + inner, to: directory.file(name), options: UpgradeOptions(verifies: true))
      databases.append(try Database.open(directory.file(name), options: DatabaseOptions(isReadOnly: true)))
    }
    defer { for database in databases { try? database.close() } }
    let all = try RealDatabasesTests.expected()
    // The local documents of two pairs have other contents.
    let haveSameLocals =
      try Self.expected()[forest]?.localDocs.map { $0.json.suffix(40) }
      == all[sqlite]?.localDocs?.map { $0.json?.suffix(40) }
    expect(haveSameLocals, equals: (sqlite != "net120"))
    let found = try differences(databases[0], databases[1], sequences: true)
    expect(found.filter { $0.kind != .local || haveSameLocals }.isEmpty, "\(found)")
    try expect(databases[0].lastSequence, equals: databases[1].lastSequence)
    try expect(databases[0].localDocumentIDs(), equals: databases[1].localDocumentIDs())
  }

  @Test("ask for their key, and refuse a wrong one")
  func keys() throws {
    let directory = TemporaryDirectory()
    let all = try Self.expected()
    func code(_ name: String, _ key: UserKey?) throws -> UpgradeError.Code? {
      let source = Self.path(name, try #require(all[name]))
      return try upgradeCode {
        try Database.upgrade(source, to: directory.new, options: UpgradeOptions(sourceKey: key))
      }
    }
    try expect(code("syn-minienc-14-forestdb", nil), equals: .keyRequired)
    try expect(code("syn-minienc-14-forestdb", .raw([UInt8](repeating: 1, count: 32))), equals: .wrongKey)
    try expect(code("syn-minienc-14-forestdb", .passphrase("letmein")), equals: .wrongKey)
    try expect(code("syn-mini-14-forestdb", .passphrase("letmein")), equals: .notEncrypted)
    try expect(directory.names().isEmpty)
  }
}
