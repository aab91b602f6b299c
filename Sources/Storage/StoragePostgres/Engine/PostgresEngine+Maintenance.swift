import Storage

extension PostgresEngine {
  /// The size of a page of PostgreSQL, in bytes.
  private static let pageBytes = 8_192

  func statistics() throws -> EngineStatistics {
    let readers = try openReaders()
    let (entries, bytes) = try reporting("statistics can't be read", location) {
      try pool.withConnection { connection in
        let answers = try connection.exchange([
          .text("SELECT name, entries FROM \(place.quotedSchema).keyspaces"), .text(sizeText(connection)),
        ])
        pool.giveBack(connection)
        var entries: [String: Int] = [:]
        for row in 0..<answers[0].count { entries[answers[0].text(row, 0)] = answers[0].integer(row, 1) }
        return (entries, answers[1].integer(0, 0))
      }
    }
    return EngineStatistics(
      fileBytes: bytes, pageBytes: Self.pageBytes, freePages: 0,
      totalPages: max(1, bytes / Self.pageBytes), entries: entries, openReaders: readers)
  }

  /// The statement for the size of the tables with their indexes, in bytes. Other servers have no such function: the size of keys
  /// and values takes its place.
  private func sizeText(_ connection: Connection) -> String {
    let schema = place.quotedSchema
    guard connection.hasSettings else {
      return "SELECT coalesce(sum(octet_length(key) + octet_length(value)), 0)::bigint FROM \(schema).entries"
    }
    let tables = ["touchstone", "keyspaces", "entries", "writers"].map { name in
      "pg_total_relation_size('\(schema.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")).\(name)')"
    }
    return "SELECT (\(tables.joined(separator: " + ")))::bigint"
  }

  /// Copies the entries of a snapshot into another schema, of this server or another one.
  func backup(to path: String) throws {
    let snapshot = try beginRead()
    defer { snapshot.end() }
    let copy = try PostgresEngine(
      location: path, options: EngineOptions(creation: .createNew, durability: .full))
    do {
      try copy.write { transaction in
        for (name, keyspace) in try snapshot.keyspaces().sorted(by: { $0.value.number < $1.value.number }) {
          let target = try transaction.createKeyspace(name, shape: keyspace.shape)
          try transaction.load(target) { append in
            try snapshot.scan(keyspace) { key, value in
              try append(key, value)
              return true
            }
          }
        }
      }
    } catch {
      copy.dropTables()
      try? copy.close()
      throw error
    }
    try copy.close()
  }

  /// Removes the tables of a copy that has failed, and its schema if nothing else is in it.
  private func dropTables() {
    let schema = place.quotedSchema
    _ = try? pool.withConnection { connection in
      _ = try connection.exchange([
        .text("DROP TABLE \(schema).touchstone, \(schema).keyspaces, \(schema).entries, \(schema).writers")
      ])
      _ = try connection.exchange([.text("DROP SCHEMA \(schema)")])
    }
  }

  /// False: the server uses space again by itself, and `VACUUM FULL` would keep readers out.
  var compactsInPlace: Bool { false }

  func compact() throws {
    _ = try openReaders()
    throw StorageError(
      .unsupported, "the server uses the space of removed entries again by itself (VACUUM)", path: location)
  }

  /// Compares the counts of all keyspaces with their entries, in one statement and so as of one commit.
  func checkIntegrity() throws -> [String] {
    _ = try openReaders()
    let schema = place.quotedSchema
    let text = """
      SELECT coalesce(k.name, ''), coalesce(k.entries, 0)::bigint, coalesce(e.found, 0)::bigint, \
      coalesce(k.number, e.keyspace)::integer \
      FROM \(schema).keyspaces k FULL JOIN \
      (SELECT keyspace, count(*) AS found FROM \(schema).entries GROUP BY keyspace) e ON e.keyspace = k.number \
      WHERE coalesce(k.entries, -1) <> coalesce(e.found, 0)
      """
    return try reporting("the entries can't be counted", location) {
      try pool.withConnection { connection in
        let answer = try connection.exchange([.text(text)])[0]
        pool.giveBack(connection)
        return (0..<answer.count).map { row in
          let name = answer.text(row, 0)
          return name.isEmpty
            ? "\(answer.integer(row, 2)) entries belong to no keyspace (number \(answer.integer(row, 3)))"
            : "the keyspace \(name) has \(answer.integer(row, 2)) entries, but its count says \(answer.integer(row, 1))"
        }
      }
    }
  }
}
