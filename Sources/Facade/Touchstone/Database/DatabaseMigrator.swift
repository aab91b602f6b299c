import Bytes
import Documents
import Fleece
import Storage

/// Changes the documents and indexes of a database from one version of an app to the next. Each migration has
/// a name and runs once.
///
/// ```swift
/// var migrator = DatabaseMigrator()
/// migrator.register("notes have tags") { transaction in
///   try transaction.createIndex("byTag", unnest: "tags")
/// }
/// try migrator.migrate(notes)
/// ```
///
/// Migrations run in the order in which they were registered, each in a transaction of its own. The name is
/// recorded in that transaction, in the local document `touchstone/migrations`, so a migration that was
/// interrupted runs again as a whole, and one that another process has run meanwhile isn't repeated. A copy of
/// the database has the record too; a sync doesn't.
///
/// A migration that an app has shipped must never change: databases that ran it won't run it again. Register
/// another one after it.
public struct DatabaseMigrator: Sendable {
  /// The ID of the local document that lists the migrations that have run.
  static let documentID = "touchstone/migrations"

  private struct Migration: Sendable {
    let name: String
    let run: @Sendable (borrowing Transaction) throws -> Void
  }

  private var migrations: [Migration] = []

  /// Makes a migrator without migrations.
  public init() {}

  /// Adds a migration. Names are compared by their bytes. A second migration with the same name replaces the
  /// first in its place.
  public mutating func register(
    _ name: String, _ migration: @escaping @Sendable (borrowing Transaction) throws -> Void
  ) {
    let added = Migration(name: name, run: migration)
    if let index = migrations.firstIndex(where: { ByteString($0.name) == ByteString(name) }) {
      migrations[index] = added
    } else {
      migrations.append(added)
    }
  }

  /// The names of the registered migrations, in order.
  public var names: [String] { migrations.map(\.name) }

  /// Runs the migrations that this database hasn't run yet. With `last`, it stops after the migration of that
  /// name. Returns the names of those that it has run.
  ///
  /// If a migration throws, its transaction is rolled back, the earlier ones stay, and the error is rethrown.
  /// Throws `StorageError.invalidArgument` if there is no migration `last`, and `nestedWrite` inside a batch.
  @discardableResult
  public func migrate(_ database: Database, upTo last: String? = nil) throws -> [String] {
    try migrate(database, upTo: last, nil)
  }

  private func migrate(
    _ database: Database, upTo last: String?, _ cancellation: JobCancellation?
  ) throws -> [String] {
    var count = migrations.count
    if let last {
      guard let index = migrations.firstIndex(where: { ByteString($0.name) == ByteString(last) }) else {
        throw StorageError(.invalidArgument, "there is no migration \"\(last)\"")
      }
      count = index + 1
    }
    guard try !database.writable.isInBatch else {
      throw StorageError(.nestedWrite, "migrations can't run inside a batch", path: database.path)
    }
    var done: [String] = []
    for migration in migrations[..<count] {
      try cancellation?.check()
      guard try !hasRun(migration.name, in: applied(in: database)) else { continue }
      let isDone = try database.write { transaction in
        let record = try transaction.localDocument(Self.documentID)
        let names = Self.names(in: record)
        // Another process may have run it in the meantime.
        guard !hasRun(migration.name, in: names) else { return false }
        try migration.run(transaction)
        try transaction.saveLocalDocument(
          Self.documentID, ["names": .array((names + [migration.name]).map { .string($0) })],
          onConflict: .lastWriteWins)
        return true
      }
      if isDone { done.append(migration.name) }
    }
    return done
  }

  /// Runs the migrations as the synchronous `migrate(_:upTo:)` does, on the database's thread for asynchronous
  /// writes. If the task is cancelled, the migration that runs is completed, and no other one follows it.
  @discardableResult
  public func migrate(_ database: Database, upTo last: String? = nil) async throws -> [String] {
    _ = try database.writable
    return try await database.open.asyncWriter.run { cancellation in
      try migrate(database, upTo: last, cancellation)
    }
  }

  /// Returns the names of the migrations that the database has run, oldest first, also of those that aren't
  /// registered here.
  public func applied(in database: Database) throws -> [String] {
    Self.names(in: try database.localDocument(Self.documentID))
  }

  /// Whether the database has run all registered migrations.
  public func isComplete(in database: Database) throws -> Bool {
    let applied = try applied(in: database)
    return migrations.allSatisfy { hasRun($0.name, in: applied) }
  }

  /// Whether the database has run a migration that isn't registered: a later version of the app has used it.
  public func isSuperseded(in database: Database) throws -> Bool {
    try applied(in: database).contains { !hasRun($0, in: names) }
  }

  private func hasRun(_ name: String, in names: [String]) -> Bool {
    names.contains { ByteString($0) == ByteString(name) }
  }

  private static func names(in record: LocalDocument?) -> [String] {
    record?.body["names"].array?.compactMap(\.string) ?? []
  }
}
