import CSQLite
import SQLiteLibrary
import Storage

/// Looking after the file: sizes, copies, compaction, checks.
extension SQLiteEngine {
  /// Sizes and counts, read in a snapshot of their own.
  public func statistics() throws -> EngineStatistics {
    try withSnapshot { connection in
      let database = connection.connection
      let entries = try CatalogTable.rows(in: database, path).map { row in
        (row.name, try CatalogTable.count(row, in: database, path))
      }
      return try storing("reading statistics", path) {
        EngineStatistics(
          fileBytes: (SQLiteFile.size(path) ?? 0) + (SQLiteFile.size(path + "-wal") ?? 0),
          pageBytes: try database.integer("PRAGMA page_size") ?? 0,
          freePages: try database.integer("PRAGMA freelist_count") ?? 0,
          totalPages: try database.integer("PRAGMA page_count") ?? 0,
          entries: Dictionary(uniqueKeysWithValues: entries),
          // Not the one that looks.
          openReaders: readers.snapshots - 1)
      }
    }
  }

  // MARK: Copies

  /// Copies table by table from one snapshot into a new file, which gets its name when it is whole and synced.
  public func backup(to target: String) throws {
    let target = try SQLiteFile.absolute(target)
    guard SQLiteFile.size(target) == nil else {
      throw StorageError(.alreadyExists, "copying a database: there is a file", path: target)
    }
    var copy = SQLiteFile(path: target, library: file.library, key: file.key, durability: .full)
    copy.access = .readWrite
    // A snapshot of its own keeps the engine from being closed meanwhile.
    try withSnapshot { _ in
      let isNew = try copy.publish { temporary in
        let source = try storing("copying a database", path) { try file.connect(cacheBytes: 2 << 20) }
        defer { source.close() }
        try storing("copying a database", temporary) { try copyTables(source, to: temporary) }
      }
      guard isNew else {
        throw StorageError(.alreadyExists, "copying a database: there is a file", path: target)
      }
    }
  }

  /// Copies table by table, which leaves out what is unused, in one snapshot of the source.
  private func copyTables(_ source: Connection, to temporary: String) throws {
    try attach(temporary, to: source)
    try source.execute(
      """
      PRAGMA copy.journal_mode = OFF;
      PRAGMA copy.synchronous = OFF;
      BEGIN;
      SELECT count(*) FROM main.sqlite_master;
      \(SQLiteLayout.creation(in: "copy"))
      INSERT INTO copy.layout SELECT * FROM main.layout;
      INSERT INTO copy.keyspaces SELECT * FROM main.keyspaces;
      """)
    for row in try CatalogTable.rows(in: source, path) {
      let table = SQLiteLayout.table(row.number)
      // Alike in every word, the library copies the records of table and index as they are.
      try source.execute(
        """
        \(SQLiteLayout.tableCreation(row.number, shape: row.shape, in: "copy"));
        INSERT INTO copy.\(table) SELECT * FROM main.\(table);
        """)
    }
    try source.execute(
      """
      PRAGMA copy.application_id = \(SQLiteLayout.applicationID);
      PRAGMA copy.user_version = \(SQLiteLayout.version);
      COMMIT;
      PRAGMA copy.journal_mode = WAL;
      """)
  }

  private func attach(_ target: String, to source: Connection) throws {
    let uri = SQLiteFile(path: target, library: file.library, key: nil, durability: .none).uri
    if let key = file.key {
      let statement = try source.prepare("ATTACH ?1 AS copy KEY ?2")
      defer { statement.finalize() }
      try statement.bind(1, uri)
      try key.withText { text in
        try statement.bindStaticText(2, text)
        try statement.run()
        try statement.bindNull(2)
      }
      try source.execute("PRAGMA copy.cipher_page_size = \(SQLiteLayout.pageBytes)")
    } else {
      let statement = try source.prepare("ATTACH ?1 AS copy")
      defer { statement.finalize() }
      try statement.bind(1, uri)
      try statement.run()
      try source.execute("PRAGMA copy.page_size = \(SQLiteLayout.pageBytes)")
    }
  }

  // MARK: Compaction

  /// True.
  public var compactsInPlace: Bool { true }

  /// Rebuilds the file (VACUUM). Needs room for two more copies of it meanwhile, one of them in the log.
  public func compact() throws {
    try checkFork()
    guard !isReadOnly else { throw readOnlyError("compacting") }
    try queue.exclusively {
      try checkOpen()
      try storing("compacting", path) {
        let connection = try file.connect(cacheBytes: 2 << 20)
        defer { connection.close() }
        // The library builds the new file aside: not in memory, which may be smaller.
        try connection.execute("PRAGMA temp_store = FILE; VACUUM;")
        // What the log holds goes into the file, and both are cut, unless a snapshot goes on needing the log: then
        // the next checkpoint does.
        connection.waitWhenBusy(upTo: Checkpoints.patience)
        do {
          try connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
        } catch let error as SQLiteError where error.code == SQLITE_BUSY || error.code == SQLITE_LOCKED {}
      }
    }
  }

  // MARK: Checks

  /// The library's own check, and each keyspace's count held against its table.
  public func checkIntegrity() throws -> [String] {
    try withSnapshot { connection in
      let database = connection.connection
      var faults: [String] = []
      do {
        faults = try database.strings("PRAGMA integrity_check(1000)").filter { $0 != "ok" }
        faults += try countFaults(database)
        if let size = SQLiteFile.size(path), size % SQLiteLayout.pageBytes != 0,
          SQLiteFile.size(path + "-wal") ?? 0 <= SQLiteFile.emptyLogBytes
        {
          faults.append("the file's \(size) bytes are no whole number of pages")
        }
      } catch let error as SQLiteError {
        guard Self.isDamage(error) else { throw StorageError(error, "checking a database", path: path) }
        faults.append("a page can't be read: \(error.message)")
      } catch let error as StorageError where error.code == .damaged {
        faults.append(error.description)
      }
      return faults
    }
  }

  /// Whether a check that fails has found damage: SQLCipher gives a plain error for a page whose
  /// authentication code is wrong, and old libraries take an impossible size of the file for a full disk.
  private static func isDamage(_ error: SQLiteError) -> Bool {
    switch error.code {
    case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL, SQLITE_NOMEM, SQLITE_INTERRUPT, SQLITE_CANTOPEN: false
    case SQLITE_IOERR: error.systemError == 0
    default: true
    }
  }

  /// Holds the table of keyspaces against the tables that there are and what is in them.
  private func countFaults(_ database: Connection) throws -> [String] {
    var faults: [String] = []
    var tables = Set(try database.strings("SELECT name FROM sqlite_master WHERE type = 'table'"))
    for table in ["layout", "keyspaces"] where tables.remove(table) == nil {
      faults.append("there is no table \(table)")
    }
    guard faults.isEmpty else { return faults }
    let rows = try CatalogTable.rows(in: database, path)
    let next = try database.integer("SELECT next FROM layout") ?? 0
    for row in rows {
      let table = SQLiteLayout.table(row.number)
      guard tables.remove(table) != nil else {
        faults.append("keyspace “\(row.name)” has no table \(table)")
        continue
      }
      let count = try database.integer("SELECT count(*) FROM \(table)") ?? 0
      do {
        let expected = try CatalogTable.count(row, in: database, path)
        if count != expected {
          faults.append("keyspace “\(row.name)” has \(count) entries and should have \(expected)")
        }
      } catch let error as StorageError where error.code == .damaged {
        faults.append("keyspace “\(row.name)”: \(error.message)")
      }
      if row.number >= next {
        faults.append("keyspace “\(row.name)” has the number \(row.number), next is \(next)")
      }
    }
    for table in tables.sorted() where !table.hasPrefix("sqlite_") {
      faults.append("the table \(table) belongs to no keyspace")
    }
    return faults
  }

  private func withSnapshot<Result>(_ body: (EngineConnection) throws -> Result) throws -> Result {
    try checkFork()
    let connection = try readers.take(isOwn: true)
    defer { readers.give(connection) }
    return try body(connection)
  }
}
