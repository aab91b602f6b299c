import CRocksDB
import Storage
import StorageFlat

#if canImport(Glibc)
  import Glibc
#endif

/// A RocksDB database, as a `FlatLibrary`.
///
/// `@unchecked Sendable`: RocksDB's functions may be called from any thread. What changes here changes only in
/// `renew` and `close`, while nobody else uses the library.
final class RocksLibrary: FlatLibrary, @unchecked Sendable {
  let path: String
  let writeSettings: OpaquePointer?
  private(set) var database: OpaquePointer?
  private(set) var family: OpaquePointer?
  private let closedSequence: UInt64
  private let rocks: RocksSettings
  private let isReadOnly: Bool
  private let readSettings = rocksdb_readoptions_create()
  /// For reads of a batch alone. Options take microseconds to make.
  let batchOptions = rocksdb_options_create()
  /// Why RocksDB refuses to write.
  private let failure = Lock(Failure.none)

  /// The number of forks before this process began to use RocksDB. All its databases share threads, which no forked child has.
  private static let forks = ForkCount.register()

  private enum Failure {
    case none
    /// A compaction failed, or a write whose record may stay in the log.
    case harmless
    /// A commit failed. It has to be undone if its record is in the log.
    case refused(RefusedCommit)
  }

  init(_ directory: EngineDirectory, _ options: EngineOptions) throws {
    path = directory.path
    isReadOnly = options.isReadOnly
    closedSequence = directory.closedSequence
    rocks = try RocksSettings(options)
    writeSettings = rocksdb_writeoptions_create()
    rocksdb_writeoptions_set_sync(writeSettings, rocks.synchronous ? 1 : 0)
    rocksdb_writeoptions_disable_WAL(writeSettings, rocks.writesLog ? 0 : 1)
    try open(forReading: isReadOnly)
  }

  deinit {
    rocksdb_writeoptions_destroy(writeSettings)
    rocksdb_readoptions_destroy(readSettings)
    rocksdb_options_destroy(batchOptions)
  }

  var library: String { "RocksDB 7.8" }
  var settings: [(name: String, value: String)] { rocks.listed }

  // MARK: Opening

  private func open(forReading: Bool) throws {
    guard Self.forks == ForkCount.now else {
      throw StorageError(
        .unsupported,
        "this process was forked from one that had used RocksDB, whose threads aren't here; start it anew, or use another engine",
        path: path)
    }
    // A database that has been closed once has a file CURRENT. Without it, a new one would hide a loss.
    let options = rocks.makeOptions(creates: closedSequence == 0)
    defer { rocksdb_options_destroy(options) }
    let name = "default"
    try name.withCString { name in
      var names: UnsafePointer<CChar>? = name
      var familyOptions = options
      var handle: OpaquePointer?
      database = try RocksError.checked("can't open the database", path, .damaged) { error in
        forReading
          ? rocksdb_open_for_read_only_column_families(
            options, path, 1, &names, &familyOptions, &handle, 0, error)
          : rocksdb_open_column_families(options, path, 1, &names, &familyOptions, &handle, error)
      }
      family = handle
    }
  }

  private func closeDatabase() {
    if let family { rocksdb_column_family_handle_destroy(family) }
    if let database { rocksdb_close(database) }
    family = nil
    database = nil
  }

  /// The open database. There is none after `renew` has failed entirely.
  func opened() throws -> OpaquePointer {
    guard let database else {
      throw StorageError(.ioError, "the database couldn't be opened anew after a failure", path: path)
    }
    return database
  }

  var needsRenewal: Bool {
    failure.withLock { if case .none = $0 { false } else { true } }
  }
  /// RocksDB writes tables in threads of its own, and refuses all writes after one of them has failed. Without a log, it goes on
  /// refusing: what isn't in tables yet would be lost if the database were opened anew.
  var hasFailedInBackground: Bool {
    guard rocks.writesLog, let database else { return false }
    return backgroundErrors(database) > 0
  }
  var isUnreadable: Bool { database == nil }

  /// Called when a commit or a compaction has failed: RocksDB refuses to write from then on.
  func noteFailure(_ commit: RefusedCommit? = nil) {
    failure.withLock { failure in
      if let commit {
        failure = .refused(commit)
      } else if case .none = failure {
        failure = .harmless
      }
    }
  }

  /// Opening reads the log again, and the log may have the record of a commit whose sync failed. That commit was refused, so
  /// it is undone before anybody sees it.
  func renew() throws {
    // Without a log, what isn't in tables yet would be lost.
    guard rocks.writesLog else { throw StorageError(.ioError, "a bulk load has failed", path: path) }
    let refused: RefusedCommit? = failure.withLock {
      if case .refused(let commit) = $0 { commit } else { nil }
    }
    if database != nil { try refused?.prepare() }
    closeDatabase()
    do {
      try open(forReading: false)
      if let database, let refused, refused.isIn(sequence) { try refused.undo(database, path) }
      failure.withLock { $0 = .none }
    } catch {
      noteFailure()
      closeDatabase()
      // The disk may still be full. What is there can be read, unless a refused commit is in it.
      try? open(forReading: true)
      if let refused, refused.isIn(sequence) { closeDatabase() }
      throw error
    }
  }

  func close() throws -> Bool {
    defer {
      closeDatabase()
      failure.withLock { $0 = .none }
    }
    guard !needsRenewal else {
      // The next open shall not find a refused commit.
      try? renew()
      return false
    }
    guard let database, !isReadOnly else { return false }
    // Everything in tables, whose blocks have checksums, and nothing in the log.
    let options = rocksdb_flushoptions_create()
    defer { rocksdb_flushoptions_destroy(options) }
    do {
      try RocksError.checked("can't write the last changes to a table", path) {
        rocksdb_flush(database, options, $0)
      }
      return true
    } catch {
      // They stay in the log, if there is one.
      if !rocks.writesLog { throw error }
      return false
    }
  }

  var sequence: UInt64 { database.map { rocksdb_get_latest_sequence_number($0) } ?? 0 }

  // MARK: Reading and writing

  func read(_ key: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
    try lend(key, readSettings, body)
  }

  /// Lends a value in RocksDB's memory, which stays while the slice does.
  func lend(
    _ key: UnsafeRawBufferPointer, _ settings: OpaquePointer?,
    _ body: (UnsafeRawBufferPointer) throws -> Void
  ) throws -> Bool {
    let database = try opened()
    let slice = try RocksError.checked("can't read", path) {
      rocksdb_get_pinned(database, settings, key.characters, key.count, $0)
    }
    guard let slice else { return false }
    defer { rocksdb_pinnableslice_destroy(slice) }
    try body(slice.value)
    return true
  }

  func beginRead() throws -> any FlatRead { RocksSnapshot(self, try opened()) }

  func beginWrite() throws -> any FlatWrite { RocksBatch(self, try opened()) }

  func removeRange(from lower: [UInt8], to upper: [UInt8], record: [UInt8]) throws {
    let database = try opened()
    let batch = rocksdb_writebatch_create()
    defer { rocksdb_writebatch_destroy(batch) }
    lower.withUnsafeBytes { lower in
      upper.withUnsafeBytes { upper in
        rocksdb_writebatch_delete_range(batch, lower.characters, lower.count, upper.characters, upper.count)
      }
    }
    record.withUnsafeBytes { rocksdb_writebatch_delete(batch, $0.characters, $0.count) }
    do {
      try RocksError.checked("can't remove a keyspace", path) {
        rocksdb_write(database, writeSettings, batch, $0)
      }
    } catch {
      noteFailure()
      throw error
    }
  }

  // MARK: Maintenance

  var compactsInPlace: Bool { true }

  func compact() throws {
    let database = try opened()
    let flush = rocksdb_flushoptions_create()
    defer { rocksdb_flushoptions_destroy(flush) }
    let failures = backgroundErrors(database)
    do { try RocksError.checked("can't compact", path) { rocksdb_flush(database, flush, $0) } } catch {
      noteFailure()
      throw error
    }
    let options = rocksdb_compactoptions_create()
    defer { rocksdb_compactoptions_destroy(options) }
    // The lowest level too (kForce), where deleted entries may be left.
    rocksdb_compactoptions_set_bottommost_level_compaction(options, 2)
    rocksdb_compact_range_opt(database, options, nil, 0, nil, 0)
    // The call itself doesn't say that it has failed.
    guard backgroundErrors(database) == failures else {
      noteFailure()
      throw StorageError(.ioError, "can't compact: a file couldn't be written", path: path)
    }
  }

  private func backgroundErrors(_ database: OpaquePointer) -> UInt64 {
    var count: UInt64 = 0
    rocksdb_property_int(database, "rocksdb.background-errors", &count)
    return count
  }

  /// Reads every block, whose checksum RocksDB compares.
  func checkFiles() throws -> [String] {
    let database = try opened()
    let settings = rocksdb_readoptions_create()
    defer { rocksdb_readoptions_destroy(settings) }
    rocksdb_readoptions_set_verify_checksums(settings, 1)
    rocksdb_readoptions_set_fill_cache(settings, 0)
    let iterator = rocksdb_create_iterator(database, settings)
    defer { rocksdb_iter_destroy(iterator) }
    rocksdb_iter_seek_to_first(iterator)
    while rocksdb_iter_valid(iterator) != 0 { rocksdb_iter_next(iterator) }
    do { try RocksError.checked("can't read", path) { rocksdb_iter_get_error(iterator, $0) } } catch {
      return ["\(error)"]
    }
    return []
  }

  /// An estimate. RocksDB has no unused blocks, but its files have values that were replaced or deleted since: as many as there are
  /// more values than entries. They are taken to be as long as the others.
  func size(entries: Int) throws -> (bytes: Int, unused: Int) {
    let bytes = FileSize.of(path)
    let values = try valueCount()
    let used = values > entries ? Double(entries) / Double(values) : values == 0 ? 0 : 1
    return (bytes, Int(Double(bytes) * (1 - used)))
  }
}

extension UnsafeRawBufferPointer {
  /// The bytes as RocksDB takes them. An empty buffer may have no address.
  var characters: UnsafePointer<CChar>? { baseAddress?.assumingMemoryBound(to: CChar.self) }
}

extension OpaquePointer {
  /// The bytes of a pinned slice.
  var value: UnsafeRawBufferPointer {
    var count = 0
    let start = rocksdb_pinnableslice_value(self, &count)
    return UnsafeRawBufferPointer(start: start, count: count)
  }
}
