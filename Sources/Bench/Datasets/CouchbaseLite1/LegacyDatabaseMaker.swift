import Bytes
import CSQLite
import FoundationEssentials
import SQLiteLibrary

/// Writes a database in the format of Couchbase Lite 1.x, with plain SQL. For tests and measurements of
/// upgrades.
package struct LegacyDatabaseMaker {
  private let settings: LegacyDatabase

  /// A maker of a database with these settings.
  package init(_ settings: LegacyDatabase) { self.settings = settings }

  /// The number of documents whose revisions are interleaved.
  private static let window = 50

  /// Makes the database `name` in an existing directory and returns its path: `NAME.cblite2`, or
  /// `NAME.cblite` for 1.0. Nothing may exist there.
  package func make(_ name: String, in directory: String) throws -> String {
    let isDirectory = settings.version != .v10
    let path = "\(directory)/\(name).\(isDirectory ? "cblite2" : "cblite")"
    let attachments: String
    if isDirectory {
      attachments = path + "/attachments"
    } else {
      attachments =
        settings.platform == .ios ? "\(directory)/\(name) attachments" : "\(directory)/\(name)/attachments"
    }
    let manager = FileManager.default
    if isDirectory { try manager.createDirectory(atPath: path, withIntermediateDirectories: true) }
    try manager.createDirectory(atPath: attachments, withIntermediateDirectories: true)
    if settings.key != nil {
      try Data("AES".utf8).write(to: URL(fileURLWithPath: attachments + "/_encryption"))
    }
    let file = isDirectory ? path + "/db.sqlite3" : path
    let connection = try open(file)
    defer { connection.close() }
    try createSchema(connection)
    try connection.execute("BEGIN")
    try Writing(settings, connection, attachments).run()
    try connection.execute("COMMIT")
    if settings.hasLog {
      // Closing the last connection removes the log, so a copy is kept.
      let copies = try ["", "-wal"].map { (file + $0, try Data(contentsOf: URL(fileURLWithPath: file + $0))) }
      connection.close()
      for suffix in ["", "-wal", "-shm"] { try? manager.removeItem(atPath: file + suffix) }
      for (path, data) in copies { try data.write(to: URL(fileURLWithPath: path)) }
    } else {
      if isDirectory { try connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE) }
      connection.close()
    }
    return path
  }

  private func open(_ file: String) throws -> Connection {
    let library = try Library.load(settings.key == nil ? Library.sqlitePath : Library.sqlcipherPath)
    let connection = try Connection(
      file, library: library, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    if let key = settings.key {
      try Array("x'\(Hex.text(key))'".utf8).withUnsafeBytes { try connection.setKey($0) }
      // The parameters of SQLCipher 3. Later versions have other defaults.
      try connection.execute("PRAGMA cipher_compatibility = 3; PRAGMA cipher_page_size = 1024")
    } else {
      try connection.execute("PRAGMA page_size = \(settings.platform == .ios ? 4096 : 1024)")
    }
    // Any stable order is good enough: only the writer of this index reads it.
    try connection.createCollation("REVID") { left, right in
      let generations = [left, right].map { bytes in
        Int(String(decoding: bytes.prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)) ?? 0
      }
      if generations[0] != generations[1] { return generations[0] - generations[1] }
      return left.lexicographicallyPrecedes(right) ? -1 : left.elementsEqual(right) ? 0 : 1
    }
    try connection.createCollation("JSON") { left, right in
      left.lexicographicallyPrecedes(right) ? -1 : left.elementsEqual(right) ? 0 : 1
    }
    try connection.execute("PRAGMA synchronous = OFF")
    if settings.version != .v10 {
      try connection.execute(
        "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = \(settings.hasLog ? 0 : 1000)")
    }
    return connection
  }

  private func createSchema(_ connection: Connection) throws {
    let is10 = settings.version == .v10
    let expiry = settings.version == .v13 ? ", expiry_timestamp INTEGER" : ""
    let type = is10 ? "" : ", doc_type TEXT"
    // 1.0 on Android and .NET had no such constraint.
    let unique = is10 && settings.platform != .ios ? "" : ", UNIQUE (doc_id, revid)"
    try connection.execute(
      """
      CREATE TABLE docs (doc_id INTEGER PRIMARY KEY, docid TEXT UNIQUE NOT NULL\(expiry));
      CREATE TABLE revs (sequence INTEGER PRIMARY KEY AUTOINCREMENT,
        doc_id INTEGER NOT NULL REFERENCES docs(doc_id) ON DELETE CASCADE, revid TEXT NOT NULL COLLATE REVID,
        parent INTEGER REFERENCES revs(sequence) ON DELETE SET NULL, current BOOLEAN, deleted BOOLEAN DEFAULT 0,
        json BLOB, no_attachments BOOLEAN\(type)\(unique));
      CREATE TABLE localdocs (docid TEXT UNIQUE NOT NULL, revid TEXT NOT NULL COLLATE REVID, json BLOB);
      CREATE TABLE views (view_id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, version TEXT,
        lastsequence INTEGER DEFAULT 0, total_docs INTEGER DEFAULT -1);
      CREATE TABLE info (key TEXT PRIMARY KEY, value TEXT);
      CREATE INDEX revs_parent ON revs(parent);
      CREATE INDEX revs_by_docid_revid ON revs(doc_id, revid desc, current, deleted);
      CREATE INDEX revs_current ON revs(doc_id, current desc, deleted, revid desc);
      """)
    if is10 {
      try connection.execute(
        """
        CREATE TABLE attachments (sequence INTEGER NOT NULL REFERENCES revs(sequence) ON DELETE CASCADE,
          filename TEXT NOT NULL, key BLOB NOT NULL, type TEXT, length INTEGER NOT NULL, revpos INTEGER DEFAULT 0,
          encoding INTEGER DEFAULT 0, encoded_length INTEGER);
        CREATE INDEX attachments_by_sequence on attachments(sequence, filename);
        CREATE TABLE maps (view_id INTEGER NOT NULL REFERENCES views(view_id) ON DELETE CASCADE,
          sequence INTEGER NOT NULL REFERENCES revs(sequence) ON DELETE CASCADE, key TEXT NOT NULL COLLATE JSON,
          value TEXT);
        CREATE TABLE replicators (remote TEXT NOT NULL, push BOOLEAN, last_sequence TEXT, UNIQUE (remote, push));
        """)
      if settings.platform == .android {
        try connection.execute("CREATE TABLE android_metadata (locale TEXT)")
      }
    } else {
      try connection.execute(
        """
        INSERT INTO views (name, version) VALUES ('byType', '1');
        CREATE TABLE 'maps_1' (sequence INTEGER NOT NULL REFERENCES revs(sequence) ON DELETE CASCADE,
          key TEXT NOT NULL COLLATE JSON, value TEXT, fulltext_id INTEGER, bbox_id INTEGER, geokey BLOB);
        CREATE INDEX 'maps_1_keys' on 'maps_1'(key COLLATE JSON);
        """)
      if settings.version == .v13 {
        try connection.execute(
          "CREATE INDEX docs_expiry ON docs(expiry_timestamp) WHERE expiry_timestamp not null")
      }
    }
    let uuids =
      settings.platform == .android || is10
      ? ["1d9c5c0e-8f0e-4d62-9d5c-27f5d1f0a3b1", "2e9c5c0e-8f0e-4d62-9d5c-27f5d1f0a3b2"]
      : ["-FEYHnujdYBN52mBgHiFzy4", "-d9EhMIFvI2nKMzJYnvQYrV"]
    try connection.execute(
      """
      INSERT INTO info VALUES ('privateUUID', '\(uuids[0])'), ('publicUUID', '\(uuids[1])'), ('pruned', 'true'),
        ('checkpoint/abc', '17');
      PRAGMA user_version = \(settings.version.rawValue);
      """)
  }

  /// One pass that writes all documents.
  private final class Writing {
    private let settings: LegacyDatabase
    private let attachments: LegacyAttachments
    private let documentRow, revisionRow, attachmentRow: Statement?
    private let connection: Connection
    private var sequence = 0

    init(_ settings: LegacyDatabase, _ connection: Connection, _ attachments: String) throws {
      self.settings = settings
      self.attachments = LegacyAttachments(settings, in: attachments)
      self.connection = connection
      documentRow = try connection.prepare(
        settings.version == .v13
          ? "INSERT INTO docs (doc_id, docid, expiry_timestamp) VALUES (?, ?, ?)"
          : "INSERT INTO docs (doc_id, docid) VALUES (?, ?)")
      revisionRow = try connection.prepare(
        "INSERT INTO revs (sequence, doc_id, revid, parent, current, deleted, json, no_attachments"
          + (settings.version == .v10
            ? ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)" : ", doc_type) VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)"))
      attachmentRow =
        settings.version == .v10
        ? try connection.prepare("INSERT INTO attachments VALUES (?, ?, ?, ?, ?, ?, ?, ?)") : nil
    }

    func run() throws {
      defer { for statement in [documentRow, revisionRow, attachmentRow] { statement?.finalize() } }
      for start in stride(from: 0, to: settings.documents, by: LegacyDatabaseMaker.window) {
        let numbers = start..<min(start + LegacyDatabaseMaker.window, settings.documents)
        let documents = numbers.map { settings.document($0) }
        var sequences = documents.map { [Int](repeating: 0, count: $0.revisions.count) }
        for (index, number) in numbers.enumerated() { try insert(documents[index], number + 1) }
        // The order of a database in use: the first revisions of all documents, then the second ones, …
        for step in 0..<(documents.map(\.revisions.count).max() ?? 0) {
          for (index, number) in numbers.enumerated() where step < documents[index].revisions.count {
            let revision = documents[index].revisions[step]
            sequence += 1
            sequences[index][step] = sequence
            try insert(revision, number + 1, parent: revision.parent.map { sequences[index][$0] })
          }
        }
      }
      for number in 0..<settings.localDocuments {
        let local = settings.localDocument(number)
        try connection.execute(
          "INSERT INTO localdocs VALUES ('_local/\(local.id)', '\(local.generation)-local', CAST('\(local.json)' AS BLOB))"
        )
      }
    }

    private func insert(_ document: LegacyDocument, _ number: Int) throws {
      guard let documentRow else { return }
      try documentRow.bind(1, number)
      try documentRow.bind(2, document.id)
      if settings.version == .v13 {
        if let expiration = document.expiration {
          try documentRow.bind(3, expiration)
        } else {
          try documentRow.bindNull(3)
        }
      }
      try documentRow.run()
    }

    private func insert(_ revision: LegacyDocument.Revision, _ document: Int, parent: Int?) throws {
      guard let row = revisionRow else { return }
      try row.bind(1, sequence)
      try row.bind(2, document)
      try row.bind(3, revision.id)
      if let parent { try row.bind(4, parent) } else { try row.bindNull(4) }
      try row.bind(5, revision.isLeaf ? 1 : 0)
      try row.bind(6, revision.isDeleted ? 1 : 0)
      if let body = revision.body {
        try row.bind(7, try attachments.body(body, revision.attachments))
      } else {
        try row.bindNull(7)
      }
      try row.bind(8, revision.attachments.isEmpty ? 1 : 0)
      try row.run()
      guard let attachmentRow else { return }
      for attachment in revision.attachments {
        let file = try attachments.store(attachment)
        try attachmentRow.bind(1, sequence)
        try attachmentRow.bind(2, attachment.name)
        try attachmentRow.bind(3, file.digest)
        try attachmentRow.bind(4, "image/png")
        try attachmentRow.bind(5, file.length)
        try attachmentRow.bind(6, attachment.revpos)
        try attachmentRow.bind(7, file.encodedLength == nil ? 0 : 1)
        if let length = file.encodedLength {
          try attachmentRow.bind(8, length)
        } else {
          try attachmentRow.bindNull(8)
        }
        try attachmentRow.run()
      }
    }
  }
}
