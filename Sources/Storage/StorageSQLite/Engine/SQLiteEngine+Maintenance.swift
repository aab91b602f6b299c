import CSQLite
import SQLiteLibrary
import Storage

/// Maintenance of the file: statistics, copies, compaction and checks.
extension SQLiteEngine {
  /// Reads sizes and counts in one snapshot.
  package func statistics() throws -> EngineStatistics {
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
          // Without the snapshot that this call reads in.
          openReaders: readers.snapshots - 1)
      }
    }
  }

  // MARK: Copies

  /// Copies one snapshot, table by table, into a new file. The file gets its name when it is complete and
  /// synced.
  package func backup(to target: String) throws {
    let target = try SQLiteFile.absolute(target)
    guard SQLiteFile.size(target) == nil else {
      throw StorageError(.alreadyExists, "the database can't be copied: the target file exists", path: target)
    }
    var copy = SQLiteFile(path: target, library: file.library, key: file.key, durability: .full)
    copy.access = .readWrite
    copy.newAccess = FileAccess(of: path)
    // While this snapshot is open, the engine can't be closed.
    try withSnapshot { reader in
      var file = file
      if let visit = reader.visit { file.access = visit.access }
      let isNew = try copy.publish { temporary in
        let source = try storing("copying a database", path) { try file.connect(cacheBytes: 2 << 20) }
        defer { source.close() }
        try storing("copying a database", temporary) { try copyTables(source, to: temporary) }
      }
      guard isNew else {
        throw StorageError(
          .alreadyExists, "the database can't be copied: the target file exists", path: target)
      }
    }
  }

  /// Copies all tables in one snapshot of the source. This leaves out unused pages.
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
      // The definitions of both tables are the same in every word. The library then copies the records of
      // table and index unchanged.
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
      try CipherSettings.setPageBytes(SQLiteLayout.pageBytes, ofAttached: "copy", on: source)
    } else {
      let statement = try source.prepare("ATTACH ?1 AS copy")
      defer { statement.finalize() }
      try statement.bind(1, uri)
      try statement.run()
      try source.execute("PRAGMA copy.page_size = \(SQLiteLayout.pageBytes)")
    }
  }

  // MARK: Compaction

  /// True: VACUUM compacts the file in place.
  package var compactsInPlace: Bool { true }

  /// Rebuilds the file with VACUUM. Needs disk space for two more copies of the file, one of them in the log.
  package func compact() throws {
    try checkFork()
    guard !isReadOnly else { throw readOnlyError("compacting") }
    try queue.exclusively {
      try checkOpen()
      try storing("compacting", path) {
        let connection = try file.connect(cacheBytes: 2 << 20)
        defer { connection.close() }
        try file.syncNames()
        // The library builds the new file as a temporary file. Memory may be too small for it.
        try connection.execute("PRAGMA temp_store = FILE; VACUUM;")
        // Copies the log into the file and truncates both. If a snapshot still needs the log, the next
        // checkpoint does this.
        connection.waitWhenBusy(upTo: Checkpoints.patience)
        do {
          guard log.mayRunCheckpoint else { return }
          try log.checkpoint(SQLITE_CHECKPOINT_TRUNCATE, on: connection)
        } catch let error as SQLiteError where error.code == SQLITE_BUSY || error.code == SQLITE_LOCKED {}
      }
    }
  }

  // MARK: Checks

  /// Runs the library's own check and compares each keyspace's count with its table.
  package func checkIntegrity() throws -> [String] {
    try withSnapshot { connection in
      let database = connection.connection
      var faults: [String] = []
      do {
        faults = try database.strings("PRAGMA integrity_check(1000)").filter { $0 != "ok" }
          .map { Self.explained($0, database) }
        faults += try countFaults(database)
        if let size = SQLiteFile.size(path), size % SQLiteLayout.pageBytes != 0,
          SQLiteFile.size(path + "-wal") ?? 0 <= SQLiteFile.emptyLogBytes
        {
          faults.append("the file has \(size) bytes, which isn't a whole number of pages")
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

  /// A fault with the words for its code. The library reports a page that the system can't read with a number only.
  private static func explained(_ fault: String, _ database: Connection) -> String {
    guard fault.contains("error code="), let code = fault.split(separator: "=").last.flatMap({ Int32($0) })
    else { return fault }
    return "\(fault), \(database.words(of: code))"
  }

  /// Returns whether an error of a check means damage.
  ///
  /// SQLCipher reports a plain error for a page with a wrong authentication code. Old libraries report an
  /// impossible file size as a full disk.
  private static func isDamage(_ error: SQLiteError) -> Bool {
    switch error.code {
    case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL, SQLITE_NOMEM, SQLITE_INTERRUPT, SQLITE_CANTOPEN: false
    case SQLITE_IOERR: error.systemError == 0
    default: true
    }
  }

  /// Compares the table of keyspaces with the existing tables and their entries.
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
          faults.append("keyspace “\(row.name)” has \(count) entries, but its count says \(expected)")
        }
      } catch let error as StorageError where error.code == .damaged {
        faults.append("keyspace “\(row.name)”: \(error.message)")
      }
      if row.number >= next {
        faults.append(
          "keyspace “\(row.name)” has the number \(row.number), but the next free number is \(next)")
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
