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
  static let compressions = ["none", "snappy", "zlib"]
  /// The environment variable that chooses the compression of new tables where an open doesn't.
  static let compressionVariable = "TOUCHSTONE_WIREDTIGER_COMPRESSION"

  static let table = "table:entries"
  static let tableFile = "entries.wt"

  let cacheBytes: Int
  /// The bytes of the log after which a checkpoint begins. Files of the log go after a checkpoint.
  let checkpointLogBytes: Int
  let isBulkLoad: Bool
  let sync: String
  /// Of the table, if it is there, and otherwise of a new one.
  var compression: String

  init(_ options: EngineOptions) throws {
    cacheBytes = max(Self.minimumCacheBytes, options.cacheBytes)
    checkpointLogBytes = min(max(256 << 10, options.cacheBytes / 4), 32 << 20)
    isBulkLoad = options.isBulkLoad
    sync =
      options.isBulkLoad
      ? "(enabled=false)"
      : "(enabled=true,method=\(options.durability == .full ? "fsync" : "none"))"
    compression = options.compression ?? EnvironmentVariable.value(Self.compressionVariable) ?? "none"
    guard Self.compressions.contains(compression) else {
      throw StorageError(
        .invalidArgument,
        "\(Self.compressionVariable) is \"\(compression)\"; it can be none, snappy or zlib")
    }
  }

  /// The file of the library that compresses; nil if nothing does.
  var extensionName: String? { compression == "none" ? nil : "libwiredtiger_\(compression).so" }

  var logFileBytes: Int { checkpointLogBytes / 2 }

  var logExtensionBytes: Int { min(256 << 10, logFileBytes) }

  /// A record of the log that is larger goes to the file without a buffer.
  var bufferedRecordBytes: Int { min(256 << 10, logFileBytes / 10) / 2 }

  /// The settings for people who compare engines.
  var listed: [(name: String, value: String)] {
    ofConnection + [("ignore_cache_size", "true"), ("isolation", "snapshot")] + ofTable
  }

  private var ofConnection: [(name: String, value: String)] {
    [
      ("cache_size", "\(cacheBytes)"), ("cache_max_wait_ms", "\(Self.cacheWait)"),
      ("eviction", "(threads_min=1,threads_max=2)"), ("session_max", "\(Self.sessions)"),
      ("transaction_sync", sync), ("log", "(enabled=true,file_max=\(logFileBytes),prealloc=false)"),
      // A new log file would otherwise take its whole size at once.
      ("file_extend", "(log=\(logExtensionBytes))"), ("checkpoint", "(log_size=\(checkpointLogBytes))"),
      ("statistics", "(fast)"), ("mmap", "false"), ("config_base", "false"),
    ] + (extensionName.map { [("extensions", "[\($0)]")] } ?? [])
  }

  /// Small pages: a document is read without thirty others.
  private var ofTable: [(name: String, value: String)] {
    [
      ("key_format", "u"), ("value_format", "u"), ("leaf_page_max", "16KB"), ("checksum", "on"),
      ("block_compressor", compression),
    ]
  }

  private static func text(_ settings: [(name: String, value: String)]) -> String {
    settings.map { "\($0.name)=\($0.value)" }.joined(separator: ",")
  }

  func connection(creates: Bool, isReadOnly: Bool) -> String {
    guard isReadOnly else { return Self.text([("create", "\(creates)")] + ofConnection) }
    // Without the log, commits that are only there would silently be left out.
    let ofWriters: Set<String> = ["log", "file_extend", "checkpoint"]
    return Self.text(
      ofConnection.filter { !ofWriters.contains($0.name) }
        + [("readonly", "true"), ("log", "(enabled=true,recover=error)")])
  }

  var tableSettings: String { Self.text(ofTable) }
}
