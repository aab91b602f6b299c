import CSQLite
import SQLiteLibrary
import Storage

extension Connection {
  /// Opens a file of the system's SQLite with the settings of `engine`, to compare the engine with. Creates the
  /// file if needed.
  convenience init(_ path: String, like engine: ProbedEngine?, _ durability: Durability) throws {
    try self.init(
      path, library: try Library.load(Library.sqlitePath), flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    let pageSize = engine?.setting("page_size") ?? "4096"
    let cache = engine?.setting("cache_size") ?? "-16384"
    let map = engine?.setting("mmap_size") ?? "0"
    try execute(
      "PRAGMA page_size = \(pageSize); PRAGMA journal_mode = WAL; PRAGMA synchronous = \(durability.synchronous); "
        + "PRAGMA cache_size = \(cache); PRAGMA mmap_size = \(map);")
  }
}

extension Durability {
  /// The value of `PRAGMA synchronous`.
  var synchronous: String {
    switch self {
    case .full: "FULL"
    case .normal: "NORMAL"
    case .none: "OFF"
    }
  }
}
