import CLMDB
import CSQLite
import Limits
import SQLiteLibrary
import Storage
import StorageSQLite

/// A database file that the bare C loops open, with the engine's library and settings.
final class LimitDatabase {
  /// A keyspace of the file: its name and its handle.
  struct Table {
    let name: String
    let keyspace: Keyspace
  }

  /// The failure of a loop, with the library's message.
  struct Failure: Error, CustomStringConvertible {
    let code: Int
    let message: String
    var description: String { "\(message) (code \(code))" }
  }

  private let family: ProbedEngine.LimitFamily
  private let database: OpaquePointer

  /// Opens the file at `path`. `engine` has made and closed it.
  init(_ engine: ProbedEngine, path: String, tables: [Table]) throws {
    let open = LimitOpening(engine: engine, tables: tables)
    guard let family = engine.limitFamily else {
      throw StorageError(.unsupported, "there is no bare loop for the engine \(engine.type.name)", path: path)
    }
    self.family = family
    var outcome = limit_outcome()
    let opened =
      switch family {
      case .lmdb: open.withLMDB { limit_lmdb_open(path, $0, $1.baseAddress, $1.count, &outcome) }
      case .sqlite: try open.withSQLite { limit_sqlite_open(path, $0, $1.baseAddress, $1.count, &outcome) }
      case .rocksdb: open.withRocksDB { limit_rocksdb_open(path, $0, $1.baseAddress, $1.count, &outcome) }
      case .wiredtiger:
        open.withWiredTiger { limit_wiredtiger_open(path, $0, $1.baseAddress, $1.count, &outcome) }
      case .postgres:
        open.withPostgres(path) { limit_postgres_open($0, $1, $2.baseAddress, $2.count, &outcome) }
      }
    guard let opened else { throw LimitDatabase.failure(outcome) }
    database = opened
  }

  deinit {
    switch family {
    case .lmdb: limit_lmdb_close(database)
    case .sqlite: limit_sqlite_close(database)
    case .rocksdb: limit_rocksdb_close(database)
    case .wiredtiger: limit_wiredtiger_close(database)
    case .postgres: limit_postgres_close(database)
    }
  }

  /// Calls the loop of the database's library. Returns what it measured. Throws `unsupported` if that has none.
  private func run<Loop>(
    _ lmdb: Loop, _ sqlite: Loop, _ rocksdb: Loop, _ wiredtiger: Loop, _ postgres: Loop?,
    _ call: (Loop, inout limit_outcome) -> Void
  ) throws -> limit_outcome {
    let loop: Loop? =
      switch family {
      case .lmdb: lmdb
      case .sqlite: sqlite
      case .rocksdb: rocksdb
      case .wiredtiger: wiredtiger
      case .postgres: postgres
      }
    guard let loop else { throw Self.missing }
    return try Self.run { call(loop, &$0) }
  }

  /// Puts all records, `batch` per transaction (0: all in one). `exist` says whether their keys exist
  /// already.
  func put(_ records: Records, batch: Int, exist: Bool) throws -> limit_outcome {
    try run(
      limit_lmdb_put, limit_sqlite_put, limit_rocksdb_put, limit_wiredtiger_put, limit_postgres_put
    ) {
      $0(database, records.baseAddress, records.count, batch, exist, &$1)
    }
  }

  func delete(_ records: Records, batch: Int) throws -> limit_outcome {
    try run(
      limit_lmdb_delete, limit_sqlite_delete, limit_rocksdb_delete, limit_wiredtiger_delete,
      limit_postgres_delete
    ) {
      $0(database, records.baseAddress, records.count, batch, &$1)
    }
  }

  /// Gets the records' keys, in one snapshot or each in its own. Copies the values into `buffer` if there is
  /// one.
  func get(
    _ records: Records, snapshotEach: Bool = false, copyInto buffer: UnsafeMutableRawBufferPointer? = nil
  ) throws -> limit_outcome {
    try run(
      limit_lmdb_get, limit_sqlite_get, limit_rocksdb_get, limit_wiredtiger_get, limit_postgres_get
    ) {
      $0(
        database, records.baseAddress, records.count, snapshotEach, buffer?.baseAddress, buffer?.count ?? 0,
        &$1)
    }
  }

  func scan(_ order: ScanOrder) throws -> limit_outcome {
    let order =
      switch order {
      case .ascending: Int32(LIMIT_ASCENDING)
      case .descending: Int32(LIMIT_DESCENDING)
      case .stored: Int32(LIMIT_STORED)
      }
    return try run(
      limit_lmdb_scan, limit_sqlite_scan, limit_rocksdb_scan, limit_wiredtiger_scan, limit_postgres_scan
    ) {
      $0(database, order, &$1)
    }
  }

  /// Reads `length` entries from each record's key on.
  func ranges(_ records: Records, length: Int) throws -> limit_outcome {
    try run(
      limit_lmdb_ranges, limit_sqlite_ranges, limit_rocksdb_ranges, limit_wiredtiger_ranges,
      limit_postgres_ranges
    ) {
      $0(database, records.baseAddress, records.count, length, &$1)
    }
  }

  /// Puts each record in its own transaction, by `threads` threads.
  func commits(_ records: Records, threads: Int) throws -> limit_outcome {
    try run(
      limit_lmdb_commits, limit_sqlite_commits, limit_rocksdb_commits, limit_wiredtiger_commits,
      limit_postgres_commits
    ) {
      $0(database, records.baseAddress, records.count, UInt32(threads), &$1)
    }
  }

  /// Gets each record in its own snapshot, while `writer` puts `writes` again and again on another thread,
  /// `batch` per transaction. Only SQLite uses `writer`: the others write through the same handle.
  func readWhileWriting(
    _ records: Records, writer: LimitDatabase?, writes: Records, batch: Int
  ) throws -> limit_outcome {
    try Self.run {
      switch family {
      case .lmdb:
        limit_lmdb_read_while_writing(
          database, records.baseAddress, records.count, writes.baseAddress, writes.count, batch, &$0)
      case .rocksdb:
        limit_rocksdb_read_while_writing(
          database, records.baseAddress, records.count, writes.baseAddress, writes.count, batch, &$0)
      case .wiredtiger:
        limit_wiredtiger_read_while_writing(
          database, records.baseAddress, records.count, writes.baseAddress, writes.count, batch, &$0)
      case .postgres:
        limit_postgres_read_while_writing(
          database, records.baseAddress, records.count, writes.baseAddress, writes.count, batch, &$0)
      case .sqlite:
        guard let writer else {
          preconditionFailure("reading while writing on SQLite takes a second connection")
        }
        limit_sqlite_read_while_writing(
          database, writer.database, records.baseAddress, records.count, writes.baseAddress, writes.count,
          batch,
          &$0)
      }
    }
  }

  /// Runs all steps, `batch` per transaction (0: all in one).
  func replay(
    _ steps: UnsafeBufferPointer<limit_step>, _ operations: UnsafeBufferPointer<limit_operation>, batch: Int
  ) throws -> limit_outcome {
    try run(
      limit_lmdb_replay, limit_sqlite_replay, limit_rocksdb_replay, limit_wiredtiger_replay, nil
    ) {
      $0(database, steps.baseAddress, steps.count, operations.baseAddress, batch, &$1)
    }
  }

  /// Empties the first table and returns unused space of the file at `path` to the file system. It must be
  /// the last call.
  func compact(_ path: String) throws -> limit_outcome {
    try Self.run {
      switch family {
      case .lmdb: limit_lmdb_compact(database, path, path + ".copy", &$0)
      case .sqlite: limit_sqlite_compact(database, &$0)
      case .rocksdb: limit_rocksdb_compact(database, &$0)
      case .wiredtiger: limit_wiredtiger_compact(database, path, path + ".copy", &$0)
      case .postgres: throw Self.missing
      }
    }
  }

  /// Opens the file, gets one record and closes the file, `times` times.
  static func reopen(
    _ engine: ProbedEngine, path: String, table: Table, record: Records, times: Int
  ) throws -> limit_outcome {
    let open = LimitOpening(engine: engine, tables: [table])
    return try run { outcome in
      switch engine.limitFamily {
      case .lmdb:
        open.withLMDB { options, tables in
          limit_lmdb_reopen(path, options, tables.baseAddress, record.baseAddress, times, &outcome)
        }
      case .rocksdb:
        open.withRocksDB { options, tables in
          limit_rocksdb_reopen(path, options, tables.baseAddress, record.baseAddress, times, &outcome)
        }
      case .wiredtiger:
        open.withWiredTiger { options, tables in
          limit_wiredtiger_reopen(path, options, tables.baseAddress, record.baseAddress, times, &outcome)
        }
      case .postgres:
        open.withPostgres(path) { location, settings, tables in
          limit_postgres_reopen(
            location, settings, tables.baseAddress, record.baseAddress, times, &outcome)
        }
      case .sqlite, nil:
        try open.withSQLite { options, tables in
          limit_sqlite_reopen(path, options, tables.baseAddress, record.baseAddress, times, &outcome)
        }
      }
    }
  }

  /// Runs a bare loop and returns what it measured. Throws its failure.
  static func run(_ loop: (inout limit_outcome) throws -> Void) throws -> limit_outcome {
    var outcome = limit_outcome()
    try loop(&outcome)
    if outcome.code != 0 { throw failure(outcome) }
    return outcome
  }

  private static var missing: StorageError {
    StorageError(.unsupported, "there is no bare loop of this kind over the library")
  }

  static func failure(_ outcome: limit_outcome) -> Failure {
    let message = withUnsafeBytes(of: outcome.message) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    return Failure(code: Int(outcome.code), message: message)
  }
}

/// Records, in the format that the bare C loops and the engines' loops both read.
typealias Records = UnsafeBufferPointer<limit_record>

extension limit_record {
  @inline(__always)
  var keyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: key.bytes, count: key.count) }

  @inline(__always)
  var valueBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: value.bytes, count: value.count) }
}
