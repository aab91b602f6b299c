import BenchmarkKit
import Storage
import StorageFlat
import StorageSQLite

#if canImport(Glibc)
  import Glibc
#endif

/// What an engine's library does besides transactions, by the library's own numbers.
struct EngineActivity: Sendable {
  /// A number that the library counts: a total since the open, or the value now.
  typealias Value = (name: String, value: Int, isTotal: Bool)

  private let read: @Sendable () throws -> [Value]

  /// The numbers of an open engine with the file `path`.
  init(_ engine: any StorageEngine, _ type: EngineType, path: String) {
    if let flat = engine as? FlatEngine {
      read = { try flat.activity().map { ($0.name, $0.value, $0.isTotal) } }
    } else if SQLiteEngines.all.contains(where: { $0.name == type.name }) {
      read = { EngineActivity.log(path + "-wal") }
    } else if let maintained = engine as? any EngineMaintenance {
      read = {
        let statistics = try maintained.statistics()
        return [("pages", statistics.totalPages, false), ("free_pages", statistics.freePages, false)]
      }
    } else {
      read = { [] }
    }
  }

  /// The numbers now. Empty if they can't be read.
  func values() -> [Value] { (try? read()) ?? [] }

  /// The size of SQLite's write-ahead log, and how often it was begun anew: after each complete checkpoint. The header
  /// of the log counts that, in the big-endian number at byte 12.
  static func log(_ path: String) -> [Value] {
    var bytes = 0
    var checkpoints = 0
    let file = open(path, O_RDONLY | O_CLOEXEC)
    if file >= 0 {
      defer { close(file) }
      var count = [UInt8](repeating: 0, count: 4)
      if pread(file, &count, 4, 12) == 4 { checkpoints = count.reduce(0) { $0 << 8 | Int($1) } }
      bytes = max(0, lseek(file, 0, SEEK_END))
    }
    return [("checkpoints", checkpoints, true), ("wal_bytes", bytes, false)]
  }
}
