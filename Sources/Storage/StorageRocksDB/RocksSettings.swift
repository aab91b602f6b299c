import CRocksDB
import Storage

/// The settings of a database, by RocksDB's own names. docs/storage-rocksdb.md gives the reasons.
struct RocksSettings {
  let writeBufferBytes: Int
  let blockCacheBytes: Int
  let compression: Compression
  let synchronous: Bool
  let writesLog: Bool

  enum Compression: String, CaseIterable {
    case none, lz4, zstd

    var code: Int32 {
      switch self {
      case .none: Int32(rocksdb_no_compression)
      case .lz4: Int32(rocksdb_lz4_compression)
      case .zstd: Int32(rocksdb_zstd_compression)
      }
    }
  }

  static let blockBytes = 4_096
  static let bitsPerKey = 10.0
  static let backgroundJobs: Int32 = 2
  /// The environment variable that chooses the compression of new files where an open doesn't.
  static let compressionVariable = "TOUCHSTONE_ROCKSDB_COMPRESSION"

  init(_ options: EngineOptions) throws {
    // Two write buffers and the block cache share the bytes of the cache.
    writeBufferBytes = min(64 << 20, max(256 << 10, options.cacheBytes / 4))
    blockCacheBytes = max(256 << 10, options.cacheBytes / 2)
    synchronous = options.durability == .full && !options.isBulkLoad
    writesLog = !options.isBulkLoad
    let name =
      options.compression ?? EnvironmentVariable.value(Self.compressionVariable) ?? Compression.lz4.rawValue
    guard let compression = Compression(rawValue: name) else {
      throw StorageError(
        .invalidArgument, "\(Self.compressionVariable) is \"\(name)\"; it can be none, lz4 or zstd")
    }
    self.compression = compression
  }

  /// The settings for people who compare engines.
  var listed: [(name: String, value: String)] {
    [
      ("write_buffer_size", "\(writeBufferBytes)"), ("max_write_buffer_number", "2"),
      ("block_cache", "\(blockCacheBytes)"), ("cache_index_and_filter_blocks", "true"),
      ("block_size", "\(Self.blockBytes)"), ("filter_policy", "bloomfilter:\(Int(Self.bitsPerKey))"),
      ("compression", compression.rawValue), ("level_compaction_dynamic_level_bytes", "true"),
      ("max_background_jobs", "\(Self.backgroundJobs)"), ("wal_recovery_mode", "kPointInTimeRecovery"),
      ("WriteOptions.sync", "\(synchronous)"), ("WriteOptions.disableWAL", "\(!writesLog)"),
    ]
  }

  /// The options of an open. The caller destroys them.
  func makeOptions(creates: Bool) -> OpaquePointer? {
    let options = rocksdb_options_create()
    rocksdb_options_set_create_if_missing(options, creates ? 1 : 0)
    rocksdb_options_set_write_buffer_size(options, writeBufferBytes)
    rocksdb_options_set_max_background_jobs(options, Self.backgroundJobs)
    rocksdb_options_set_compression(options, compression.code)
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1)
    rocksdb_options_set_wal_recovery_mode(options, Int32(rocksdb_point_in_time_recovery))
    // Nothing goes to the library's own log. A library with assertions, as Debian's, ends the process at the second line that it can't
    // write, as on a full disk. Errors come with the calls.
    rocksdb_options_set_info_log_level(options, 5)
    rocksdb_options_set_keep_log_file_num(options, 1)
    rocksdb_options_set_stats_dump_period_sec(options, 0)
    rocksdb_options_set_stats_persist_period_sec(options, 0)
    let table = rocksdb_block_based_options_create()
    defer { rocksdb_block_based_options_destroy(table) }
    let cache = rocksdb_cache_create_lru(blockCacheBytes)
    // The table options keep the cache and own the filter.
    defer { rocksdb_cache_destroy(cache) }
    rocksdb_block_based_options_set_block_cache(table, cache)
    rocksdb_block_based_options_set_block_size(table, Self.blockBytes)
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1)
    rocksdb_block_based_options_set_filter_policy(
      table, rocksdb_filterpolicy_create_bloom_full(Self.bitsPerKey))
    rocksdb_options_set_block_based_table_factory(options, table)
    return options
  }
}
