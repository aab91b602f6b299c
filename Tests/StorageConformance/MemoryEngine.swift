import Storage

/// An engine that keeps everything in memory: a minimal `StorageEngine`, and an example of an external
/// engine.
///
/// A path names a store for the lifetime of the process. Opening it again finds the committed data. Snapshots
/// share committed states as values, so reads never wait. Closing writes an image of the store to the path,
/// for tests that copy files.
public final class MemoryEngine: EngineMaintenance {
  /// The engine's type.
  public static let type = EngineType(name: "memory", fileExtension: "memory", encrypts: false) {
    try MemoryEngine(path: $0, options: $1)
  }

  /// The maximum number of open snapshots per engine.
  static let maximumReaders = 8_192

  /// The path, which names its store.
  let path: String
  /// The path.
  public var location: String { path }
  /// The durability of the options. A commit survives until the process ends.
  public let durability: Durability
  /// Whether it is open for reading only.
  public let isReadOnly: Bool
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
    self.path = path
    durability = options.durability
    isReadOnly = options.isReadOnly
  }

  /// The engine's name, `memory`.
  public var name: String { Self.type.name }
  /// The name and version of the library. This engine has no library below it.
  public var library: String { "memory 1" }
  /// The settings; none.
  public var settings: [(name: String, value: String)] { [] }
  /// Always false: there is no file.
  public var compactsInPlace: Bool { false }

  /// Begins a snapshot of the last committed state.
  public func beginRead() throws -> any ReadTransaction {
    try life.withLock { life in
      try checkOpen(life)
      guard life.readers < Self.maximumReaders else {
        throw StorageError(
          .tooManyReaders, "\(life.readers) snapshots are open, which is the limit", path: path)
      }
      life.readers += 1
    }
    return MemorySnapshot(state: store.state.withLock { $0 }) { [self] in
      life.withLock { $0.readers -= 1 }
    }
  }

  /// Runs `body` on a copy of the last state, which then becomes the last state.
  public func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try life.withLock { try checkOpen($0) }
    guard !isReadOnly else { throw StorageError(.readOnly, "the engine is open for reading", path: path) }
    try store.queue.run(MemoryWriteGroup(store: store), body)
  }

  /// Statistics. The size of the keys and values takes the place of the file size.
  public func statistics() throws -> EngineStatistics {
    let readers = try life.withLock { life in
      try checkOpen(life)
      return life.readers
    }
    let tables = store.state.withLock { $0 }.tables.values
    let bytes = tables.reduce(0) { $0 + $1.records.reduce(0) { $0 + $1.key.count + $1.value.count } }
    return EngineStatistics(
      fileBytes: bytes, pageBytes: 1, freePages: 0, totalPages: bytes,
      entries: Dictionary(uniqueKeysWithValues: tables.map { ($0.name, $0.records.count) }),
      openReaders: readers)
  }

  /// Makes another store with the same state.
  public func backup(to path: String) throws {
    try life.withLock { try checkOpen($0) }
    let copy = try MemoryStore.find(path, creation: .createNew)
    let state = store.state.withLock { $0 }
    copy.state.withLock { $0 = state }
  }

  /// Throws `unsupported`.
  public func compact() throws {
    try life.withLock { try checkOpen($0) }
    throw StorageError(.unsupported, "an engine in memory has no file to compact", path: path)
  }

  /// Finds no faults.
  public func checkIntegrity() throws -> [String] {
    try life.withLock { try checkOpen($0) }
    return []
  }

  /// Closes the engine and writes the image of its store. The store stays for later opens.
  public func close() throws {
    try store.queue.exclusively {
      if !isReadOnly, life.withLock({ $0.readers == 0 && !$0.isClosed }) {
        try MemoryImage.write(store.state.withLock { $0 }, to: path)
      }
      try life.withLock { life in
        guard life.readers == 0 else {
          throw StorageError(.inUse, "\(life.readers) snapshots are open", path: path)
        }
        life.isClosed = true
      }
    }
  }

  private func checkOpen(_ life: Life) throws {
    if life.isClosed { throw StorageError(.closed, "the engine is closed", path: path) }
  }
}

/// The data of a path.
final class MemoryStore: Sendable {
  private static let known = Lock<[String: MemoryStore]>([:])

  let state = Lock(MemoryState())
  let queue = GroupCommit()

  static func find(_ path: String, creation: FileCreation) throws -> MemoryStore {
    try known.withLock { known in
      if let store = known[path] {
        guard creation != .createNew else {
          throw StorageError(.alreadyExists, "there is such a store", path: path)
        }
        return store
      }
      let image = try MemoryImage.read(path)
      guard creation != .openExisting || image != nil else {
        throw StorageError(.notFound, "there is no such store", path: path)
      }
      guard creation != .createNew || image == nil else {
        throw StorageError(.alreadyExists, "there is such a store", path: path)
      }
      let store = MemoryStore()
      if let image { store.state.withLock { $0 = image } }
      known[path] = store
      return store
    }
  }
}

/// A committed state, or the state that a writer changes.
struct MemoryState: Sendable {
  var tables: [Int: MemoryTable] = [:]
  var numbers: [String: Int] = [:]
  var lastNumber = 0
}

struct MemoryTable: Sendable {
  let name: String
  let shape: KeyspaceShape
  /// Sorted by key.
  var records: [MemoryRecord] = []
}

/// A key and a value. Their addresses don't change while the record is referenced.
final class MemoryRecord: @unchecked Sendable {
  let key: UnsafeRawBufferPointer
  let value: UnsafeRawBufferPointer

  init(key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    self.key = Self.copy(key)
    self.value = Self.copy(value)
  }

  deinit {
    key.deallocate()
    value.deallocate()
  }

  private static func copy(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    copy.copyMemory(from: bytes)
    return UnsafeRawBufferPointer(copy)
  }
}

extension UnsafeRawBufferPointer {
  /// Compares bytes: negative, zero or positive if `self` is before, equal to or after `other`.
  func compared(to other: UnsafeRawBufferPointer) -> Int {
    for (left, right) in zip(self, other) where left != right { return Int(left) - Int(right) }
    return count - other.count
  }
}
