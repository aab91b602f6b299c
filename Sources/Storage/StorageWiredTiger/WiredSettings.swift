import Storage

/// The settings of a connection, by WiredTiger's own names. docs/storage-wiredtiger.md gives the reasons.
struct WiredSettings {
  /// Each snapshot has a session.
  static let maximumReaders = 4_096
  /// The library's own threads and the writer have sessions too.
  static let sessions = maximumReaders + 64
  static let minimumCacheBytes = 16 << 20
  /// How long a read waits for room in the cache, in milliseconds.
  static let cacheWait = 10_000
  /// The environment variable that chooses the compression of new tables.
  static let compressionVariable = "TOUCHSTONE_WIREDTIGER_COMPRESSION"

  static let table = "table:entries"

  let cacheBytes: Int
  /// The bytes of the log after which a checkpoint begins. Files of the log go after a checkpoint.
  let checkpointLogBytes: Int
  let isBulkLoad: Bool
  let sync: String
  let compression: String

  init(_ options: EngineOptions) throws {
    cacheBytes = max(Self.minimumCacheBytes, options.cacheBytes)
    checkpointLogBytes = min(max(256 << 10, options.cacheBytes / 4), 32 << 20)
    isBulkLoad = options.isBulkLoad
    sync =
      options.isBulkLoad
      ? "(enabled=false)"
      : "(enabled=true,method=\(options.durability == .full ? "fsync" : "none"))"
    compression = EnvironmentVariable.value(Self.compressionVariable) ?? "none"
    guard ["none", "snappy", "zlib"].contains(compression) else {
      throw StorageError(
        .invalidArgument,
        "\(Self.compressionVariable) is \"\(compression)\"; it can be none, snappy or zlib")
    }
  }

  var logFileBytes: Int { checkpointLogBytes / 2 }

  var logExtensionBytes: Int { min(256 << 10, logFileBytes) }

  /// A record of the log that is larger goes to the file without a buffer.
  var bufferedRecordBytes: Int { min(256 << 10, logFileBytes / 10) / 2 }

  /// The settings for people who compare engines.
  var listed: [(name: String, value: String)] {
    [
      ("cache_size", "\(cacheBytes)"), ("transaction_sync", sync), ("log.file_max", "\(logFileBytes)"),
      ("file_extend.log", "\(logExtensionBytes)"), ("checkpoint.log_size", "\(checkpointLogBytes)"),
      ("cache_max_wait_ms", "\(Self.cacheWait)"), ("session_max", "\(Self.sessions)"),
      ("eviction", "(threads_min=1,threads_max=2)"), ("block_compressor", compression),
      ("leaf_page_max", "16KB"), ("checksum", "on"), ("isolation", "snapshot"),
    ]
  }

  func connection(creates: Bool, isReadOnly: Bool) -> String {
    var words = [
      "create=\(creates && !isReadOnly)", "cache_size=\(cacheBytes)", "session_max=\(Self.sessions)",
      "transaction_sync=\(sync)", "eviction=(threads_min=1,threads_max=2)", "config_base=false",
      "mmap=false", "statistics=(fast)", "cache_max_wait_ms=\(Self.cacheWait)",
    ]
    if isReadOnly {
      // Without the log, commits that are only there would silently be left out.
      words += ["readonly=true", "log=(enabled=true,recover=error)"]
    } else {
      words.append("log=(enabled=true,file_max=\(logFileBytes),prealloc=false)")
      // A new log file would otherwise take its whole size at once.
      words.append("file_extend=(log=\(logExtensionBytes))")
      words.append("checkpoint=(log_size=\(checkpointLogBytes))")
    }
    if compression != "none" { words.append("extensions=[libwiredtiger_\(compression).so]") }
    return words.joined(separator: ",")
  }

  /// Small pages: a document is read without thirty others.
  var tableSettings: String {
    "key_format=u,value_format=u,leaf_page_max=16KB,checksum=on"
      + (compression == "none" ? "" : ",block_compressor=\(compression)")
  }
}
