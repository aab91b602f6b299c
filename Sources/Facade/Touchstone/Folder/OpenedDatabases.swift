import Storage

/// The databases that were opened through a folder and that someone still holds.
final class OpenedDatabases: Sendable {
  private struct Entry {
    let name: String
    weak var database: Database?
  }

  private let entries = Lock<[Entry]>([])

  func add(_ database: Database, _ name: String) {
    entries.withLock { entries in
      entries.removeAll { $0.database == nil }
      entries.append(Entry(name: name, database: database))
    }
  }

  /// Takes out all databases.
  func takeAll() -> [(name: String, database: Database)] {
    entries.withLock { entries in
      defer { entries = [] }
      return entries.compactMap { entry in entry.database.map { (entry.name, $0) } }
    }
  }
}
