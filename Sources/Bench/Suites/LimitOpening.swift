import Bytes
import CLMDB
import CSQLite
import Limits
import SQLiteLibrary
import Storage
import StorageLMDB
import StorageSQLite
import Touchstone

extension ProbedEngine {
  /// The libraries that have bare C loops.
  enum LimitFamily {
    case lmdb, sqlite, rocksdb, wiredtiger, postgres
  }

  /// The library whose bare C loops fit the engine. Nil if there are none, as for encrypted LMDB.
  var limitFamily: LimitFamily? {
    switch type.name {
    case LMDBEngines.lmdb.name: .lmdb
    case EngineName.rocksdb.rawValue: .rocksdb
    case EngineName.wiredtiger.rawValue: .wiredtiger
    case EngineName.postgres.rawValue: .postgres
    default: SQLiteEngines.all.contains { $0.name == type.name } ? .sqlite : nil
    }
  }

  /// The name of its bare C loops. Nil if it has none.
  var limitName: String? { limitFamily == nil ? nil : "\(library), bare C" }
}

/// The settings with which the bare C loops open a file. They are the same as the engine's.
struct LimitOpening {
  let engine: ProbedEngine
  let tables: [LimitDatabase.Table]

  func withLMDB<Result>(
    _ body: (UnsafePointer<limit_lmdb_options>, UnsafeBufferPointer<limit_table>) throws -> Result
  ) rethrows -> Result {
    func number(_ name: String, _ fallback: Int) -> Int {
      engine.setting(name).flatMap { Int($0) } ?? fallback
    }
    var options = limit_lmdb_options(
      map_bytes: number("mapsize", 1 << 40), flags: lmdbFlags, readers: UInt32(number("maxreaders", 126)),
      databases: UInt32(number("maxdbs", 16)))
    return try withTables({ $0.name }) { tables in try body(&options, tables) }
  }

  private var lmdbFlags: UInt32 {
    let known: [Substring: Int32] = [
      "MDB_NOSUBDIR": MDB_NOSUBDIR, "MDB_NOTLS": MDB_NOTLS, "MDB_NOMETASYNC": MDB_NOMETASYNC,
      "MDB_NOSYNC": MDB_NOSYNC, "MDB_NORDAHEAD": MDB_NORDAHEAD, "MDB_NOMEMINIT": MDB_NOMEMINIT,
    ]
    let names = ["flags", "durability flag"].compactMap { engine.setting($0) }.flatMap {
      $0.split(separator: "|")
    }
    return names.reduce(0) { $0 | UInt32(known[$1] ?? 0) }
  }

  /// Gives the connection string of a location, and what the engine sets on its connections.
  func withPostgres<Result>(
    _ path: String,
    _ body: (
      _ location: UnsafePointer<CChar>, _ settings: UnsafePointer<CChar>, UnsafeBufferPointer<limit_table>
    ) throws -> Result
  ) rethrows -> Result {
    // Names of schemas in the bench are plain.
    let parts = path.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
    let settings =
      ["enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_hashjoin", "enable_mergejoin", "jit"].map
    {
      "\($0) = off"
    } + [
      "plan_cache_mode = force_generic_plan", "search_path = \(parts.last ?? "")",
      "synchronous_commit = \(engine.setting("synchronous_commit") ?? "on")",
    ]
    return try String(parts[0]).withCString { location in
      try settings.map { "SET \($0)" }.joined(separator: "; ").withCString { settings in
        try withTables({ $0.name }) { tables in try body(location, settings, tables) }
      }
    }
  }

  func withSQLite<Result>(
    _ body: (UnsafePointer<limit_sqlite_options>, UnsafeBufferPointer<limit_table>) throws -> Result
  ) throws -> Result {
    let library = try Library.load(
      engine.type.name == "sqlite" ? Library.sqlitePath : Library.sqlcipherPath)
    let key = engine.options.key.map { "x'\(Hex.text($0))'" } ?? ""
    return try Array(key.utf8).withUnsafeBytes { key in
      try pragmas.withCString { pragmas in
        var options = limit_sqlite_options(
          functions: library.functions, key: limit_bytes(bytes: key.baseAddress, count: key.count),
          pragmas: pragmas)
        return try withTables({ "k\($0.keyspace.number)" }) { tables in try body(&options, tables) }
      }
    }
  }

  /// The engine's settings, in the order that SQLCipher needs: page size before anything is read.
  private var pragmas: String {
    let names = [
      "cache_size", "mmap_size", "temp_store", "synchronous", "secure_delete", "journal_size_limit",
      "wal_autocheckpoint",
    ]
    var lines = ["PRAGMA busy_timeout = 60000"]
    if let pageSize = engine.setting("page_size") {
      lines.append("PRAGMA \(engine.options.key == nil ? "page_size" : "cipher_page_size") = \(pageSize)")
    }
    for name in names {
      if let value = engine.setting(name) { lines.append("PRAGMA \(name) = \(value)") }
    }
    return lines.joined(separator: ";")
  }

  func withRocksDB<Result>(
    _ body: (UnsafePointer<limit_rocksdb_options>, UnsafeBufferPointer<limit_table>) throws -> Result
  ) rethrows -> Result {
    try rocksDBSettings.withCString { settings in
      var options = limit_rocksdb_options(
        settings: settings, sync: engine.setting("WriteOptions.sync") == "true",
        disable_log: engine.setting("WriteOptions.disableWAL") == "true")
      return try withTables({ $0.name }) { tables in try body(&options, tables) }
    }
  }

  /// The engine's settings in the format of RocksDB's option strings. Those of tables stand in braces.
  var rocksDBSettings: String {
    let ofTables: Set<String> = [
      "block_cache", "block_size", "block_restart_interval", "cache_index_and_filter_blocks", "filter_policy",
      "format_version", "index_type", "data_block_index_type", "pin_l0_filter_and_index_blocks_in_cache",
      "cache_index_and_filter_blocks_with_high_priority", "partition_filters", "whole_key_filtering",
      "optimize_filters_for_memory", "metadata_block_size", "checksum",
    ]
    // Options have the names of the C++ interface, where compressions are constants.
    let constants = [
      "none": "kNoCompression", "lz4": "kLZ4Compression", "zstd": "kZSTD", "snappy": "kSnappyCompression",
    ]
    let settings = engine.settings.filter { !$0.name.hasPrefix("WriteOptions.") }.map { name, value in
      (name, name.hasSuffix("compression") ? constants[value] ?? value : value)
    }
    func text(_ settings: [(String, String)]) -> String {
      settings.map { "\($0)=\($1)" }.joined(separator: ";")
    }
    let tables = text(settings.filter { ofTables.contains($0.0) })
    let others = text(settings.filter { !ofTables.contains($0.0) })
    return "\(others);block_based_table_factory={\(tables)}"
  }

  func withWiredTiger<Result>(
    _ body: (UnsafePointer<limit_wiredtiger_options>, UnsafeBufferPointer<limit_table>) throws -> Result
  ) rethrows -> Result {
    let settings = wiredTigerSettings
    return try settings.connection.withCString { connection in
      try settings.session.withCString { session in
        try settings.transaction.withCString { transaction in
          try settings.table.withCString { table in
            var options = limit_wiredtiger_options(
              connection: connection, session: session, transaction: transaction, table: table)
            return try withTables({ $0.name }) { tables in try body(&options, tables) }
          }
        }
      }
    }
  }

  /// The engine's settings in the format of WiredTiger's configuration strings.
  var wiredTigerSettings: (connection: String, session: String, transaction: String, table: String) {
    let ofSessions: Set<String> = ["ignore_cache_size"]
    let ofTransactions: Set<String> = ["isolation"]
    let ofTables: Set<String> = [
      "key_format", "value_format", "leaf_page_max", "internal_page_max", "leaf_value_max", "memory_page_max",
      "checksum", "block_compressor", "prefix_compression", "allocation_size",
    ]
    func text(_ isWanted: (String) -> Bool) -> String {
      engine.settings.filter { isWanted($0.name) }.map { "\($0.name)=\($0.value)" }.joined(separator: ",")
    }
    return (
      text { !ofSessions.contains($0) && !ofTransactions.contains($0) && !ofTables.contains($0) },
      text(ofSessions.contains), text(ofTransactions.contains), text(ofTables.contains)
    )
  }

  private func withTables<Result>(
    _ name: (LimitDatabase.Table) -> String, _ body: (UnsafeBufferPointer<limit_table>) throws -> Result
  ) rethrows -> Result {
    let names = tables.map { Array(name($0).utf8CString) }
    return try withNames(names, 0, []) { pointers in
      let converted = zip(pointers, tables).map { pointer, table in
        limit_table(
          name: pointer, shape: Int32(table.keyspace.shape.rawValue), number: UInt32(table.keyspace.number))
      }
      return try converted.withUnsafeBufferPointer(body)
    }
  }

  /// Calls `body` with pointers to all names.
  private func withNames<Result>(
    _ names: [[CChar]], _ index: Int, _ pointers: [UnsafePointer<CChar>?],
    _ body: ([UnsafePointer<CChar>?]) throws -> Result
  ) rethrows -> Result {
    guard index < names.count else { return try body(pointers) }
    return try names[index].withUnsafeBufferPointer {
      try withNames(names, index + 1, pointers + [$0.baseAddress], body)
    }
  }
}
