import Bytes
import CRocksDB
import Storage
import StorageFlat

#if canImport(Glibc)
  import Glibc
#endif

/// A snapshot of RocksDB: a number, below which everything is kept. It costs no memory of its own.
final class RocksSnapshot: FlatRead {
  private let library: RocksLibrary
  private let database: OpaquePointer
  private let snapshot: OpaquePointer?
  private let settings = rocksdb_readoptions_create()

  init(_ library: RocksLibrary, _ database: OpaquePointer) {
    self.library = library
    self.database = database
    snapshot = rocksdb_create_snapshot(database)
    rocksdb_readoptions_set_snapshot(settings, snapshot)
  }

  deinit { rocksdb_readoptions_destroy(settings) }

  func end() { rocksdb_release_snapshot(database, snapshot) }

  func read(_ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
    try library.lend(key, settings, body)
  }

  /// The number of keys that RocksDB gets at a time. All their blocks are pinned meanwhile.
  private static let keysAtOnce = 32

  /// RocksDB looks up sorted keys together: it reads each filter and each block once.
  func readMany(
    _ keys: KeyList, _ body: (_ index: Int, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    var start = 0
    while start < keys.count {
      let end = min(keys.count, start + Self.keysAtOnce)
      guard try readSome(keys, start..<end, body) else { return }
      start = end
    }
  }

  private func readSome(
    _ keys: KeyList, _ range: Range<Int>, _ body: (Int, UnsafeRawBufferPointer) throws -> Bool
  ) throws -> Bool {
    var bytes: [UInt8] = []
    var sizes: [Int] = []
    for index in range {
      let key = keys[index]
      key.withUnsafeBytes { bytes.append(contentsOf: $0) }
      sizes.append(key.byteCount)
    }
    var slices = [OpaquePointer?](repeating: nil, count: range.count)
    var errors = [UnsafeMutablePointer<CChar>?](repeating: nil, count: range.count)
    bytes.withUnsafeBytes { bytes in
      var offset = 0
      let places: [UnsafePointer<CChar>?] = sizes.map { size in
        defer { offset += size }
        return UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + size)]).characters
      }
      rocksdb_batched_multi_get_cf(
        database, settings, library.family, range.count, places, sizes, &slices, &errors, false)
    }
    defer {
      for slice in slices { if let slice { rocksdb_pinnableslice_destroy(slice) } }
      for text in errors { if let text { rocksdb_free(text) } }
    }
    for (place, index) in range.enumerated() {
      if let text = errors[place] {
        throw RocksError.error("can't read", library.path, String(cString: text))
      }
      if let slice = slices[place], try !body(index, slice.value) { return false }
    }
    return true
  }

  func iterator(from lower: [UInt8], to upper: [UInt8]) throws -> any FlatIterator {
    RocksIterator(database, nil, snapshot, lower, upper, library.path)
  }
}

/// A write transaction: a batch in memory with an index, which RocksDB writes to its log in one piece.
final class RocksBatch: FlatWrite {
  /// RocksDB's own limit of a batch is 4 GiB.
  private static let maximumBytes = 2 << 30

  private let library: RocksLibrary
  private let database: OpaquePointer
  private let batch = rocksdb_writebatch_wi_create(0, 1)
  private let settings = rocksdb_readoptions_create()
  private var bytes = 0

  init(_ library: RocksLibrary, _ database: OpaquePointer) {
    self.library = library
    self.database = database
  }

  deinit {
    rocksdb_writebatch_wi_destroy(batch)
    rocksdb_readoptions_destroy(settings)
  }

  /// The transaction ends with `commit` or `abort`.
  func end() {}

  func read(_ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
    if rocksdb_writebatch_wi_count(batch) == 0 { return try library.lend(key, settings, body) }
    guard let (value, count) = try copy(of: key) else { return false }
    defer { rocksdb_free(value) }
    try body(UnsafeRawBufferPointer(start: value, count: count))
    return true
  }

  /// A copy of the value, in the library's memory.
  private func copy(of key: UnsafeRawBufferPointer) throws -> (UnsafeMutablePointer<CChar>, Int)? {
    var count = 0
    let value = try RocksError.checked("can't read", library.path) {
      rocksdb_writebatch_wi_get_from_batch_and_db(
        batch, database, settings, key.characters, key.count, &count, $0)
    }
    return value.map { ($0, count) }
  }

  /// Whether there is a value. The filters of the tables say so of most keys that are new.
  private func contains(_ key: UnsafeRawBufferPointer) throws -> Bool {
    if rocksdb_key_may_exist(database, settings, key.characters, key.count, nil, nil, nil, 0, nil) == 0 {
      // The batch alone: it may have a value, and can't have deleted one.
      guard rocksdb_writebatch_wi_count(batch) > 0 else { return false }
      var count = 0
      let value = try RocksError.checked("can't read", library.path) {
        rocksdb_writebatch_wi_get_from_batch(
          batch, library.batchOptions, key.characters, key.count, &count, $0)
      }
      guard let value else { return false }
      rocksdb_free(value)
      return true
    }
    return try read(key) { _ in }
  }

  func iterator(from lower: [UInt8], to upper: [UInt8]) throws -> any FlatIterator {
    RocksIterator(
      database, rocksdb_writebatch_wi_count(batch) == 0 ? nil : batch, nil, lower, upper, library.path)
  }

  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool {
    let isNew = try !contains(key)
    try set(key, value)
    return isNew
  }

  func set(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws {
    bytes += key.count + value.count
    guard bytes <= Self.maximumBytes else {
      throw StorageError(
        .transactionTooLarge, "a transaction writes more than \(Self.maximumBytes) bytes", path: library.path)
    }
    rocksdb_writebatch_wi_put(batch, key.characters, key.count, value.characters, value.count)
  }

  func add(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws { try set(key, value) }

  func insert(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool {
    guard try !contains(key) else { return false }
    try set(key, value)
    return true
  }

  func delete(_ key: UnsafeRawBufferPointer) throws -> Bool {
    guard try contains(key) else { return false }
    try remove(key)
    return true
  }

  func remove(_ key: UnsafeRawBufferPointer) throws {
    bytes += key.count
    rocksdb_writebatch_wi_delete(batch, key.characters, key.count)
  }

  func beginPart() throws { rocksdb_writebatch_wi_set_save_point(batch) }

  func undoPart() throws {
    try RocksError.checked("can't undo a part of a transaction", library.path) {
      rocksdb_writebatch_wi_rollback_to_save_point(batch, $0)
    }
  }

  func commit() throws {
    guard rocksdb_writebatch_wi_count(batch) > 0 else { return }
    let sequence = library.sequence
    do {
      try RocksError.checked("can't commit", library.path) {
        rocksdb_write_writebatch_wi(database, library.writeSettings, batch, $0)
      }
    } catch {
      library.noteFailure(RefusedCommit(self, after: sequence))
      throw error
    }
  }

  /// A batch that gives the keys of this one the values that the database has now. The caller destroys it.
  func inverse() throws -> OpaquePointer? {
    let inverse = rocksdb_writebatch_create()
    do {
      for key in changedKeys() {
        try key.withUnsafeBytes { key in
          let isFound = try library.read(key) { value in
            rocksdb_writebatch_put(inverse, key.characters, key.count, value.characters, value.count)
          }
          if !isFound { rocksdb_writebatch_delete(inverse, key.characters, key.count) }
        }
      }
      return inverse
    } catch {
      rocksdb_writebatch_destroy(inverse)
      throw error
    }
  }

  private func changedKeys() -> Set<[UInt8]> {
    final class Keys { var all: Set<[UInt8]> = [] }
    func insert(_ state: UnsafeMutableRawPointer?, _ key: UnsafePointer<CChar>?, _ count: Int) {
      guard let state else { return }
      let bytes = [UInt8](UnsafeRawBufferPointer(start: key, count: count))
      Unmanaged<Keys>.fromOpaque(state).takeUnretainedValue().all.insert(bytes)
    }
    var count = 0
    let bytes = rocksdb_writebatch_wi_data(batch, &count)
    let copy = rocksdb_writebatch_create_from(bytes, count)
    defer { rocksdb_writebatch_destroy(copy) }
    let keys = Keys()
    withExtendedLifetime(keys) {
      rocksdb_writebatch_iterate(
        copy, Unmanaged.passUnretained(keys).toOpaque(),
        { state, key, count, _, _ in insert(state, key, count) },
        { state, key, count in insert(state, key, count) })
    }
    return keys.all
  }

  func abort() {}
}

/// A position of RocksDB, over the database or over a batch and the database.
final class RocksIterator: FlatIterator {
  private var iterator: OpaquePointer?
  private let settings = rocksdb_readoptions_create()
  /// Both bounds, one after the other. RocksDB keeps their addresses.
  private let bounds: UnsafeMutableRawBufferPointer
  private let lower: UnsafeRawBufferPointer
  private let upper: UnsafeRawBufferPointer
  /// Whether the keys of a batch are among those of the database. RocksDB doesn't keep them within the bounds.
  private let hasBatch: Bool
  private let path: String

  init(
    _ database: OpaquePointer, _ batch: OpaquePointer?, _ snapshot: OpaquePointer?, _ lower: [UInt8],
    _ upper: [UInt8], _ path: String
  ) {
    self.path = path
    bounds = .allocate(byteCount: max(1, lower.count + upper.count), alignment: 1)
    bounds.copyBytes(from: lower + upper)
    self.lower = UnsafeRawBufferPointer(rebasing: bounds[..<lower.count])
    self.upper = UnsafeRawBufferPointer(rebasing: bounds[lower.count..<(lower.count + upper.count)])
    hasBatch = batch != nil
    if let snapshot { rocksdb_readoptions_set_snapshot(settings, snapshot) }
    rocksdb_readoptions_set_iterate_lower_bound(settings, self.lower.characters, lower.count)
    rocksdb_readoptions_set_iterate_upper_bound(settings, self.upper.characters, upper.count)
    let base = rocksdb_create_iterator(database, settings)
    iterator = batch == nil ? base : rocksdb_writebatch_wi_create_iterator_with_base(batch, base)
  }

  deinit {
    rocksdb_readoptions_destroy(settings)
    bounds.deallocate()
  }

  func close() {
    if let iterator { rocksdb_iter_destroy(iterator) }
    iterator = nil
  }

  func seek(_ key: UnsafeRawBufferPointer) throws -> Bool {
    rocksdb_iter_seek(iterator, key.characters, key.count)
    return try isOnEntry()
  }

  func seek(before key: UnsafeRawBufferPointer) throws -> Bool {
    rocksdb_iter_seek_for_prev(iterator, key.characters, key.count)
    if rocksdb_iter_valid(iterator) != 0, compareBytes(self.key, key) >= 0 { rocksdb_iter_prev(iterator) }
    return try isOnEntry()
  }

  func next() throws -> Bool {
    rocksdb_iter_next(iterator)
    return try isOnEntry()
  }

  func previous() throws -> Bool {
    rocksdb_iter_prev(iterator)
    return try isOnEntry()
  }

  private func isOnEntry() throws -> Bool {
    guard rocksdb_iter_valid(iterator) != 0 else {
      try RocksError.checked("can't read", path) { rocksdb_iter_get_error(iterator, $0) }
      return false
    }
    guard hasBatch else { return true }
    let key = key
    return compareBytes(lower, key) <= 0 && compareBytes(key, upper) < 0
  }

  private var key: UnsafeRawBufferPointer {
    var count = 0
    let start = rocksdb_iter_key(iterator, &count)
    return UnsafeRawBufferPointer(start: start, count: count)
  }

  func entry() throws -> (key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    var count = 0
    let start = rocksdb_iter_value(iterator, &count)
    return (key, UnsafeRawBufferPointer(start: start, count: count))
  }
}
