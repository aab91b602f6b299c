import CSQLite
import SQLiteLibrary

/// The contents of a source besides documents: local documents, the `info` table and views.
extension SQLiteSource {
  func forEachLocalDocument(
    _ body: (_ id: String, _ generation: UInt64, _ json: UnsafeRawBufferPointer) throws -> Void,
    skipped: (_ id: String?, _ reason: String) throws -> Void
  ) throws {
    guard hasTable("localdocs") else { return }
    try reading {
      let statement = try connection.prepare(
        "SELECT docid, revid, json FROM localdocs NOT INDEXED ORDER BY rowid")
      defer { statement.finalize() }
      while try statement.step() {
        let generation = SourceText.localGeneration(statement.string(1) ?? "")
        let bytes = statement.type(2) == SQLITE_BLOB ? statement.bytes(2) : statement.utf8(2)
        let id = statement.string(0) ?? ""
        try body(id, generation, bytes.isEmpty ? SourceText.emptyBody : bytes)
      }
    }
  }

  func info(_ key: String) throws -> String? {
    guard hasTable("info") else { return nil }
    return try reading {
      let statement = try connection.prepare("SELECT value FROM info NOT INDEXED WHERE key = ?")
      defer { statement.finalize() }
      try statement.bind(1, key)
      return try statement.step() ? statement.string(0) : nil
    }
  }

  func checkpointCount() throws -> Int {
    guard hasTable("info") else { return 0 }
    return try reading {
      try connection.integer("SELECT count(*) FROM info NOT INDEXED WHERE key LIKE 'checkpoint/%'")
        ?? 0
    }
  }

  func viewCount() throws -> Int {
    guard hasTable("views") else { return 0 }
    return try reading { try connection.integer("SELECT count(*) FROM views NOT INDEXED") ?? 0 }
  }

  func lastSequence() throws -> Int {
    try reading {
      let highest = try connection.integer("SELECT max(sequence) FROM revs") ?? 0
      guard hasTable("sqlite_sequence") else { return highest }
      return max(
        highest,
        try connection.integer(
          "SELECT max(CAST(seq AS INTEGER)) FROM sqlite_sequence WHERE name = 'revs'")
          ?? 0)
    }
  }
}
