import CLMDB
import CSQLite
import Limits
import SQLiteLibrary
import Storage
import StorageSQLite

/// A file of an engine as the bare C loops open it: the same library, with the settings the engine has.
final class LimitDatabase {
  /// A keyspace of the file, by its name and its handle.
  struct Table {
    let name: String
    let keyspace: Keyspace
  }

  /// Why a loop couldn't run, in the library's words.
  struct Failure: Error, CustomStringConvertible {
    let code: Int
    let message: String
    var description: String { "\(message) (code \(code))" }
  }

  private enum Handle {
    case lmdb(OpaquePointer)
    case sqlite(OpaquePointer)
  }
  private let handle: Handle

  /// Opens the file at `path`, which `engine` has made and closed.
  init(_ engine: ProbedEngine, path: String, tables: [Table]) throws {
    let open = LimitOpening(engine, tables)
    var outcome = limit_outcome()
    if engine.isLMDB {
      let opened = open.withLMDB { options, tables in
        limit_lmdb_open(path, options, tables.baseAddress, tables.count, &outcome)
      }
      guard let opened else { throw LimitDatabase.failure(outcome) }
      handle = .lmdb(opened)
    } else {
      let opened = try open.withSQLite { options, tables in
        limit_sqlite_open(path, options, tables.baseAddress, tables.count, &outcome)
      }
      guard let opened else { throw LimitDatabase.failure(outcome) }
      handle = .sqlite(opened)
    }
  }

  deinit {
    switch handle {
    case .lmdb(let database): limit_lmdb_close(database)
    case .sqlite(let database): limit_sqlite_close(database)
    }
  }

  /// Puts all records, `batch` a transaction (0: all in one). `exist` says whether their keys are there.
  func put(_ records: Records, batch: Int, exist: Bool) throws -> limit_outcome {
    try Self.run {
      switch handle {
      case .lmdb(let database):
        limit_lmdb_put(database, records.baseAddress, records.count, batch, exist, &$0)
      case .sqlite(let database):
        limit_sqlite_put(database, records.baseAddress, records.count, batch, exist, &$0)
      }
    }
  }

  func delete(_ records: Records, batch: Int) throws -> limit_outcome {
    try Self.run {
      switch handle {
      case .lmdb(let database): limit_lmdb_delete(database, records.baseAddress, records.count, batch, &$0)
      case .sqlite(let database):
        limit_sqlite_delete(database, records.baseAddress, records.count, batch, &$0)
      }
    }
  }

  /// Gets the records' keys, all in one snapshot or in a snapshot each; copies the values into `buffer` if there is
  /// one.
  func get(
    _ records: Records, snapshotEach: Bool = false, copyInto buffer: UnsafeMutableRawBufferPointer? = nil
  ) throws -> limit_outcome {
    try Self.run {
      switch handle {
      case .lmdb(let database):
        limit_lmdb_get(
          database, records.baseAddress, records.count, snapshotEach, buffer?.baseAddress, buffer?.count ?? 0,
          &$0)
      case .sqlite(let database):
        limit_sqlite_get(
          database, records.baseAddress, records.count, snapshotEach, buffer?.baseAddress, buffer?.count ?? 0,
          &$0)
      }
    }
  }

  func scan(_ order: ScanOrder) throws -> limit_outcome {
    let order =
      switch order {
      case .ascending: Int32(LIMIT_ASCENDING)
      case .descending: Int32(LIMIT_DESCENDING)
      case .stored: Int32(LIMIT_STORED)
      }
    return try Self.run {
      switch handle {
      case .lmdb(let database): limit_lmdb_scan(database, order, &$0)
      case .sqlite(let database): limit_sqlite_scan(database, order, &$0)
      }
    }
  }

  /// From each record's key on, `length` entries.
  func ranges(_ records: Records, length: Int) throws -> limit_outcome {
    try Self.run {
      switch handle {
      case .lmdb(let database): limit_lmdb_ranges(database, records.baseAddress, records.count, length, &$0)
      case .sqlite(let database):
        limit_sqlite_ranges(database, records.baseAddress, records.count, length, &$0)
      }
    }
  }

  /// A transaction a record, by `threads` threads.
  func commits(_ records: Records, threads: Int) throws -> limit_outcome {
    try Self.run {
      switch handle {
      case .lmdb(let database):
        limit_lmdb_commits(database, records.baseAddress, records.count, UInt32(threads), &$0)
      case .sqlite(let database):
        limit_sqlite_commits(database, records.baseAddress, records.count, UInt32(threads), &$0)
      }
    }
  }

  /// Gets in a snapshot each while `writer`, on another thread, puts `writes` over and over, `batch` a
  /// transaction. LMDB writes through the same environment, and `writer` is not used.
  func readWhileWriting(
    _ records: Records, writer: LimitDatabase?, writes: Records, batch: Int
  ) throws -> limit_outcome {
    try Self.run {
      switch (handle, writer?.handle) {
      case (.lmdb(let database), _):
        limit_lmdb_read_while_writing(
          database, records.baseAddress, records.count, writes.baseAddress, writes.count, batch, &$0)
      case (.sqlite(let database), .sqlite(let writer)):
        limit_sqlite_read_while_writing(
          database, writer, records.baseAddress, records.count, writes.baseAddress, writes.count, batch, &$0)
      default: preconditionFailure("reading while writing on SQLite takes a second connection")
      }
    }
  }

  /// All steps, `batch` a transaction (0: all in one).
  func replay(
    _ steps: UnsafeBufferPointer<limit_step>, _ operations: UnsafeBufferPointer<limit_operation>, batch: Int
  ) throws -> limit_outcome {
    try Self.run {
      switch handle {
      case .lmdb(let database):
        limit_lmdb_replay(database, steps.baseAddress, steps.count, operations.baseAddress, batch, &$0)
      case .sqlite(let database):
        limit_sqlite_replay(database, steps.baseAddress, steps.count, operations.baseAddress, batch, &$0)
      }
    }
  }

  /// Empties the first table and gives unused space of the file at `path` back. Nothing else may follow.
  func compact(_ path: String) throws -> limit_outcome {
    try Self.run {
      switch handle {
      case .lmdb(let database): limit_lmdb_compact(database, path, path + ".copy", &$0)
      case .sqlite(let database): limit_sqlite_compact(database, &$0)
      }
    }
  }

  /// Opens the file, gets a record and closes it, `times` over.
  static func reopen(
    _ engine: ProbedEngine, path: String, table: Table, record: Records, times: Int
  ) throws -> limit_outcome {
    let open = LimitOpening(engine, [table])
    return try run { outcome in
      if engine.isLMDB {
        open.withLMDB { options, tables in
          limit_lmdb_reopen(path, options, tables.baseAddress, record.baseAddress, times, &outcome)
        }
      } else {
        try open.withSQLite { options, tables in
          limit_sqlite_reopen(path, options, tables.baseAddress, record.baseAddress, times, &outcome)
        }
      }
    }
  }

  /// What a bare loop measured. Throws what it failed with.
  static func run(_ loop: (inout limit_outcome) throws -> Void) throws -> limit_outcome {
    var outcome = limit_outcome()
    try loop(&outcome)
    if outcome.code != 0 { throw failure(outcome) }
    return outcome
  }

  static func failure(_ outcome: limit_outcome) -> Failure {
    let message = withUnsafeBytes(of: outcome.message) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    return Failure(code: Int(outcome.code), message: message)
  }
}

/// Records as the bare C loops and the engines' loops both read them.
typealias Records = UnsafeBufferPointer<limit_record>

extension limit_record {
  @inline(__always)
  var keyBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: key.bytes, count: key.count) }

  @inline(__always)
  var valueBytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: value.bytes, count: value.count) }
}
