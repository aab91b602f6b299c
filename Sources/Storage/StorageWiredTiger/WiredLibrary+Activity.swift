import CWiredTiger
import StorageFlat

/// What WiredTiger counts of its checkpoints and its cache.
extension WiredLibrary: ActiveLibrary {
  func activity() throws -> [LibraryActivity] {
    let session = try session()
    defer { giveBack(session) }
    let values = try session.statistics([
      WT_STAT_CONN_TXN_CHECKPOINT, WT_STAT_CONN_CACHE_EVICTION_DIRTY, WT_STAT_CONN_CACHE_BYTES_DIRTY,
      WT_STAT_CONN_CACHE_BYTES_INUSE,
    ])
    return [
      LibraryActivity("checkpoints", values[0], isTotal: true),
      LibraryActivity("evictions", values[1], isTotal: true),
      LibraryActivity("dirty_cache_bytes", values[2]),
      LibraryActivity("cache_bytes", values[3]),
    ]
  }
}
