import Bytes
import Storage

/// The data of a path. It exists from the first open until it is removed, as a file does.
final class MemoryStore: Sendable {
  /// All stores, by the bytes of their paths.
  private static let known = Lock<[ByteString: MemoryStore]>([:])

  let state = Lock(MemoryState())
  let queue = GroupCommit()
  /// The engine that wrote last. Used only inside the queue.
  let lastEngine = Lock<ObjectIdentifier?>(nil)

  static func find(_ path: String, creation: FileCreation) throws -> MemoryStore {
    try known.withLock { known in
      let name = ByteString(path)
      if let store = known[name] {
        guard creation != .createNew else {
          throw StorageError(.alreadyExists, "a store in memory has this name", path: path)
        }
        return store
      }
      guard creation != .openExisting else {
        throw StorageError(.notFound, "no store in memory has this name", path: path)
      }
      let store = MemoryStore()
      known[name] = store
      return store
    }
  }

  static func remove(_ path: String) { _ = known.withLock { $0.removeValue(forKey: ByteString(path)) } }
}

/// A committed state, or the state that a writer changes. Copies take constant time.
struct MemoryState: Sendable {
  var keyspaces: [Int: MemoryKeyspace] = [:]
  var numbers: [String: Int] = [:]
  var lastNumber = 0
}

/// A keyspace and its records.
struct MemoryKeyspace: Sendable {
  let name: String
  let shape: KeyspaceShape
  var records = SortedRecords()
}
