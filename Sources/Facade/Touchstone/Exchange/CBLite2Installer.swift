import CBLite2
import Encryption
import Storage

/// Makes a database from a Couchbase Lite 2.x or 3.x database, with all of its data.
struct CBLite2Installer {
  /// The path that the database gets, for errors.
  let target: DatabaseDirectory

  /// Makes the database in `partial`. Throws `incompleteSource` if something can't be carried over.
  func make(
    in partial: PartialDirectory, from source: String, _ type: EngineType, key: UserKey?,
    progress: ConversionProgress.Handler?
  ) throws -> UnfinishedDatabase {
    let recipe = try DatabaseRecipe(
      type, isEncrypted: false, key: nil, newKey: key, renewsDataKey: true, path: target.path)
    let new = try UnfinishedDatabase(in: partial, type)
    let dataKey = try new.makeKey(recipe)
    let report = try new.withDocuments(.createNew, dataKey) { store in
      try CBLite2Importer(store, from: source, scratch: partial.path).run { done in
        try progress?(ConversionProgress(phase: .copying, done: done, total: 0))
      }
    }
    try Self.checkComplete(report, source)
    return new
  }

  private static func checkComplete(_ report: CBLite2ImportReport, _ source: String) throws {
    if let first = report.details.first {
      throw DatabaseError(
        .incompleteSource,
        "the Couchbase Lite database has data that can't be carried over, such as '\(first.id)' "
          + "(\(first.reason)); make a database, import this one with importCBLite2, and install the result",
        path: source)
    }
    let others = report.otherCollections.filter { $0.documents > 0 }
    guard others.isEmpty else {
      throw DatabaseError(
        .incompleteSource,
        "the Couchbase Lite database has documents in the collections \(others.map(\.name).joined(separator: ", ")); "
          + "only the default collection can be installed",
        path: source)
    }
  }
}
