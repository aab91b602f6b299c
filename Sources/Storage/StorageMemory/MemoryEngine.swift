import Storage

/// An engine that keeps everything in memory, for tests of apps (`Database.inMemory`). It is also the
/// smallest complete engine, as an example for others.
///
/// A path names a store. It exists until `remove(_:)`, as a file does: opening the path again finds the
/// committed data. Snapshots share committed states as values, so reads never wait.
package final class MemoryEngine: EngineMaintenance {
  /// The engine's type.
  package static let type = EngineType(name: "memory", fileExtension: "memory", encrypts: false) {
    try MemoryEngine(path: $0, options: $1)
  }

  /// The maximum number of open snapshots per engine.
  static let maximumReaders = 8_192

  /// The path, which names its store.
  package let location: String
  package let durability: Durability
  package let isReadOnly: Bool
  private let store: MemoryStore
  private let life = Lock(Life())

  private struct Life {
    var readers = 0
    var isClosed = false
  }

  init(path: String, options: EngineOptions) throws {
    guard options.key == nil else {
      throw StorageError(.notEncrypted, "an engine in memory takes no key", path: path)
    }
    store = try MemoryStore.find(path, creation: options.isReadOnly ? .openExisting : options.creation)
    location = path
    durability = options.durability
    isReadOnly = options.isReadOnly
  }

  /// Forgets the store of a path, whose engines are closed. Without one it does nothing.
  package static func remove(_ path: String) { MemoryStore.remove(path) }

  package var name: String { Self.type.name }
  /// There is no library below this engine.
  package var library: String { "memory 1" }
  package var settings: [(name: String, value: String)] { [] }
  /// True: removed records take no space.
  package var compactsInPlace: Bool { true }

  /// Begins a snapshot of the last committed state.
  package func beginRead() throws -> any ReadTransaction {
    try life.withLock { life in
      try checkOpen(life)
      guard life.readers < Self.maximumReaders else {
        throw StorageError(
          .tooManyReaders, "\(life.readers) snapshots are open, which is the limit", path: location)
      }
      life.readers += 1
    }
    return MemorySnapshot(state: store.state.withLock { $0 }) { [self] in
      life.withLock { $0.readers -= 1 }
    }
  }

  /// Runs `body` on a copy of the last state, which then becomes the last state.
  package func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try life.withLock { try checkOpen($0) }
    guard !isReadOnly else {
      throw StorageError(.readOnly, "the engine is open for reading", path: location)
    }
    try store.queue.run(MemoryWriteGroup(store: store, engine: ObjectIdentifier(self)), body)
  }

  /// Statistics. The size of the keys and values takes the place of the file size.
  package func statistics() throws -> EngineStatistics {
    let readers = try life.withLock { life in
      try checkOpen(life)
      return life.readers
    }
    let keyspaces = store.state.withLock { $0 }.keyspaces.values
    let bytes = keyspaces.reduce(0) { $0 + $1.records.byteCount }
    return EngineStatistics(
      fileBytes: bytes, pageBytes: 1, freePages: 0, totalPages: bytes,
      entries: Dictionary(uniqueKeysWithValues: keyspaces.map { ($0.name, $0.records.count) }),
      openReaders: readers)
  }

  /// Makes another store with the same state.
  package func backup(to path: String) throws {
    try life.withLock { try checkOpen($0) }
    let copy = try MemoryStore.find(path, creation: .createNew)
    let state = store.state.withLock { $0 }
    copy.state.withLock { $0 = state }
  }

  /// Does nothing: removed records take no space.
  package func compact() throws {
    try life.withLock { try checkOpen($0) }
    guard !isReadOnly else {
      throw StorageError(.readOnly, "the engine is open for reading", path: location)
    }
  }

  /// Checks the order and the counts of all records.
  package func checkIntegrity() throws -> [String] {
    try life.withLock { try checkOpen($0) }
    return store.state.withLock { $0 }.keyspaces.values.flatMap { keyspace in
      keyspace.records.faults.map { "keyspace \(keyspace.name): \($0)" }
    }
  }

  /// Closes the engine. The store stays for later opens.
  package func close() throws {
    try store.queue.exclusively {
      try life.withLock { life in
        guard life.readers == 0 else {
          throw StorageError(.inUse, "\(life.readers) snapshots are open", path: location)
        }
        life.isClosed = true
      }
    }
  }

  private func checkOpen(_ life: Life) throws {
    if life.isClosed { throw StorageError(.closed, "the engine is closed", path: location) }
  }
}
