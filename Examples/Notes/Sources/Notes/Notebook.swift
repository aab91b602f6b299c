// The two databases, and what the commands do with them.

import Touchstone

/// Notes, and an archive of notes, for any number of tasks at once.
///
/// Asynchronous writes and queries run on threads of the database, so they never block a task. If a task is
/// cancelled, its transaction is rolled back and the call throws `CancellationError`. A call with an ID that no
/// note has throws an error of the kind `notFound`.
struct Notebook: Sendable {
  let current: Database
  let archived: Database

  init(_ folder: DatabaseFolder) throws {
    try self.init(current: folder.open("notes"), archived: folder.open("archive"))
  }

  init(current: Database, archived: Database) throws {
    self.current = current
    self.archived = archived
    for database in [current, archived] { try Self.migrations.migrate(database) }
  }

  /// Each runs once in a database. A later release adds others after these, and never changes these.
  private static let migrations = {
    var migrator = DatabaseMigrator()
    migrator.register("full-text index of texts") { transaction in
      try transaction.createFullTextIndex("words", on: ["text"])
    }
    migrator.register("index of tags") { transaction in try transaction.createIndex("byTag", unnest: "tags") }
    return migrator
  }()

  // MARK: Reading

  /// Returns the notes, or those with a tag, the latest first.
  func list(tag: String? = nil, inArchive: Bool = false) async throws -> [NoteRow] {
    let database = inArchive ? archived : current
    guard let tag else { return try await list(of: database).run(as: NoteRow.self) }
    return try await list(of: database, "WHERE ANY tag IN tags SATISFIES tag = $tag END")
      .run(as: NoteRow.self, ["tag": .string(tag)])
  }

  /// Returns the differences of the list: first all notes as inserted rows, then what commits change.
  func listChanges() throws -> LiveRowChanges { try current.rowChanges(of: list(of: current)) }

  private func list(of database: Database, _ condition: String = "") throws -> Query {
    try database.query("SELECT \(NoteRow.columns) FROM _ \(condition) ORDER BY edited DESC, META().id")
  }

  /// Returns the notes with these words, the best first.
  func find(_ words: String) async throws -> [NoteRow] {
    try await current.query(
      "SELECT \(NoteRow.columns) FROM _ WHERE MATCH(words, $words) ORDER BY RANK(words) DESC"
    ).run(as: NoteRow.self, ["words": .string(words)])
  }

  // MARK: Writing

  /// Saves a new note with its photo. Returns its ID, which the save makes.
  func add(_ note: Note) async throws -> String {
    try await current.write { transaction in
      var note = note
      try transaction.save(&note)
      return note.id ?? ""
    }
  }

  /// Changes a note. It is read and saved in one transaction, so no change by another task is lost.
  func update(_ id: String, _ change: @escaping @Sendable (inout Note) -> Void) async throws {
    try await current.write { transaction in _ = try transaction.update(Note.self, id, change) }
  }

  /// Moves a note with its photo to the archive.
  ///
  /// Each database commits on its own. The archive commits inside the transaction of the notes, so no other
  /// task changes the note meanwhile. After a crash or a cancellation in between, the note is in both
  /// databases. Archiving it again replaces the copy and completes the move.
  func archive(_ id: String) async throws {
    try await current.write { transaction in
      if var copy = try transaction.get(Note.self, id) {
        copy.revision = ModelRevision()  // The archive doesn't have this revision.
        // Never nest them the other way as well: two tasks could then wait for each other.
        try archived.write { archive in _ = try archive.save(&copy) }
      }
      try transaction.delete(id)
    }
  }

  func remove(_ id: String) async throws {
    try await current.write { transaction in _ = try transaction.delete(id) }
  }
}
