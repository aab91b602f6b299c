import Bytes
import Fleece
import Glibc
import Storage

/// What runs in the background, for `_active_tasks`.
package final class ActiveTasks: Sendable {
  /// A task that runs.
  package struct Entry: Sendable {
    /// The kind: `database_compaction`, `replication`.
    package var type: String
    /// The database; nil if it concerns none.
    package var database: String?
    /// When it began, in seconds since 1970.
    package var startedOn: Int
    /// More members of its object.
    package var members: [String: JSONValue]
  }

  private let state = Lock<(next: Int, entries: [Int: Entry])>((1, [:]))

  /// Has none yet.
  package init() {}

  /// Adds a task. Returns its number.
  package func begin(_ type: String, database: String?, members: [String: JSONValue] = [:]) -> Int {
    let entry = Entry(type: type, database: database, startedOn: Int(time(nil)), members: members)
    return state.withLock { state in
      defer { state.next += 1 }
      state.entries[state.next] = entry
      return state.next
    }
  }

  /// Changes the members of a task.
  package func update(_ number: Int, members: [String: JSONValue]) {
    state.withLock { $0.entries[number]?.members = members }
  }

  /// Removes a task.
  package func end(_ number: Int) { state.withLock { _ = $0.entries.removeValue(forKey: number) } }

  /// Whether one of that kind runs for a database.
  package func contains(_ type: String, database: String) -> Bool {
    state.withLock {
      $0.entries.values.contains {
        $0.type == type && $0.database.map { ByteString($0) } == ByteString(database)
      }
    }
  }

  /// The tasks in the order of their beginnings.
  package var json: [JSONValue] {
    state.withLock { $0.entries }.sorted { $0.key < $1.key }.map { number, entry in
      var members = entry.members
      members["type"] = .string(entry.type)
      members["pid"] = .string("<0.\(number).0>")
      members["started_on"] = JSONValue(entry.startedOn)
      if members["updated_on"] == nil { members["updated_on"] = JSONValue(Int(time(nil))) }
      if let database = entry.database { members["database"] = .string(database) }
      return JSONValue(members)
    }
  }

  /// The number of tasks.
  package var count: Int { state.withLock { $0.entries.count } }
}
