import TestSupport

/// Databases that Couchbase Lite 1.x wrote, and what each has to yield by its companion `expected.json`, which was made
/// with other tools.
@Suite("Databases that others wrote", .enabled(if: realDatabases != nil)) struct RealDatabasesTests {
  struct Expected: Decodable {
    struct Document: Decodable {
      struct Attachment: Decodable {
        var name: String
        var digest: String
        var length: Int?
        var content_type: String?
        var revpos: Int?
        var blob: String?
        var blobSHA1Matches: Bool?
      }
      var id: String
      var winningRev: String
      var deleted: Bool
      var storedJSON: String?
      var attachments: [Attachment]
      var history: [String]
      var sequence: UInt64
      var leafRevs: [String]
    }
    struct Local: Decodable {
      var id: String
      var json: String?
    }
    var main: String?
    var storage: String
    var userVersion: Int?
    var docs: [Document]?
    var localDocs: [Local]?
  }

  static func expected() throws -> [String: Expected] {
    guard let realDatabases else { return [:] }
    let data = try Data(contentsOf: URL(fileURLWithPath: realDatabases + "/expected.json"))
    return try JSONDecoder().decode([String: Expected].self, from: data)
  }

  /// What is given for a database: its directory when it is a `.cblite2`.
  static func path(_ name: String, _ main: String) -> String {
    let base = "\(realDatabases ?? "")/\(name)/"
    guard let slash = main.firstIndex(of: "/"), main.contains(".cblite2/") else { return base + main }
    return base + main[..<slash]
  }

  @Test("give exactly what their companion says, on every engine", arguments: someEngines)
  func upgrades(_ engine: EngineName) throws {
    var count = 0
    for (name, expected) in try Self.expected().sorted(by: { $0.key < $1.key }) {
      guard expected.storage == "SQLite", let main = expected.main else { continue }
      let comment: Comment = "\(name) to \(engine)"
      let directory = TemporaryDirectory()
      let before = try Files(try #require(realDatabases) + "/" + name)
      let source = Self.path(name, main)
      let report = try Database.upgrade(
        source, to: directory.new, engine: engine, key: try key(of: engine),
        options: UpgradeOptions(verifies: true))
      try expect(Files(try #require(realDatabases) + "/" + name), equals: before, comment)
      expect(report.userVersion, equals: expected.userVersion, comment)
      expect(report.documents.skipped == 0 && report.revisions.skipped == 0, comment)
      let database = try directory.openNew(key: key(of: engine))
      defer { try? database.close() }
      try compare(database, expected, source: "\(realDatabases ?? "")/\(name)", comment)
      let isWhole = report.attachments.missing == 0
      if isWhole {
        try expect(database.check(deep: true).isEmpty, comment)
      }
      count += 1
    }
    expect(count, equals: 33)
  }

  private func compare(_ database: Database, _ expected: Expected, source: String, _ comment: Comment) throws
  {
    let documents = expected.docs ?? []
    try expect(database.documentCount, equals: documents.filter { !$0.deleted }.count, comment)
    for said in documents {
      let revisions = try #require(try database.revisions(of: said.id), comment)
      let current = try #require(revisions.first, comment)
      expect(current.id.description, equals: said.winningRev, comment)
      expect(current.isDeleted, equals: said.deleted, comment)
      // The history of the winner, newest first, with the revision IDs as they were.
      var branch: [String] = []
      var next: RevisionID? = current.id
      while let id = next, let revision = revisions.first(where: { $0.id == id }) {
        branch.append(id.description)
        next = revision.parent
      }
      expect(branch, equals: said.history, comment)
      expect(Set(revisions.filter(\.isLeaf).map(\.id.description)), equals: Set(said.leafRevs), comment)
      // The body, as the text that was stored says it, by Foundation's parser.
      let body = try #require(current.body, comment)
      var stored = body
      if expected.userVersion ?? 0 < 100, !said.attachments.isEmpty,
        said.storedJSON?.contains("_attachments") != true
      {
        stored.remove("_attachments")
      }
      let text = said.storedJSON.flatMap { $0.isEmpty ? nil : $0 } ?? "{}"
      let wanted = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? NSDictionary
      let found =
        try JSONSerialization.jsonObject(with: Data(try stored.canonicalJSON().utf8)) as? NSDictionary
      expect(found, equals: wanted, comment)
      try compareAttachments(database, said, body, source, comment)
    }
    let locals = Set((expected.localDocs ?? []).map { String($0.id.dropFirst("_local/".count)) })
    try expect(Set(try database.localDocumentIDs()), equals: locals, comment)
  }

  private func compareAttachments(
    _ database: Database, _ said: Expected.Document, _ body: JSONValue, _ source: String, _ comment: Comment
  ) throws {
    let entries = body.object?["_attachments"]?.object
    expect(entries?.count ?? 0, equals: said.attachments.count, comment)
    for attachment in said.attachments {
      let value = try #require(entries?[attachment.name], comment)
      let found = try #require(Attachment(value), comment)
      expect(found.blob.digest.text, equals: attachment.digest, comment)
      expect(found.revpos, equals: UInt64(attachment.revpos ?? 0), comment)
      expect(found.blob.contentType, equals: attachment.content_type, comment)
      if let length = attachment.length { expect(found.blob.length, equals: UInt64(length), comment) }
      // As the guide of 2.1 reads it: the entry is a blob.
      for member in ["digest", "length", "revpos", "stub"] {
        expect(value.object?[member] != nil, comment)
      }
      guard let file = attachment.blob, attachment.blobSHA1Matches == true else {
        try expect(!database.contains(found.blob), comment)
        continue
      }
      let bytes = try Data(contentsOf: URL(fileURLWithPath: source + "/" + file))
      try expect(database.contents(of: found.blob), equals: Array(bytes), comment)
    }
  }

  @Test("of later versions are told apart, and nothing is made")
  func laterVersions() throws {
    let base = try #require(realDatabases).replacingOccurrences(of: "/cblite-1x", with: "/cblite-2x")
    guard let names = try? FileManager.default.contentsOfDirectory(atPath: base) else { return }
    var codes: [UpgradeError.Code: Int] = [:]
    for name in names {
      guard
        let inner = try? FileManager.default.contentsOfDirectory(atPath: base + "/" + name).first(where: {
          $0.hasSuffix(".cblite2")
        })
      else { continue }
      let directory = TemporaryDirectory()
      let before = try Files(base + "/" + name)
      let error = try #require(throws: UpgradeError.self, "\(name)") {
        try Database.upgrade("\(base)/\(name)/\(inner)", to: directory.new)
      }
      codes[error.code, default: 0] += 1
      expect([.laterVersion, .unknownCipher, .keyRequired].contains(error.code), "\(name): \(error)")
      try expect(Files(base + "/" + name), equals: before, "\(name)")
    }
    expect(codes[.laterVersion, default: 0] > 5)
    expect(codes[.unknownCipher, default: 0] > 0)
  }
}
