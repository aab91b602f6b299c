import CLMDB
import Glibc
import Storage
import Synchronization

/// The address space of a map. The file itself is only as large as its data.
package enum MapSize {
  /// The sizes by the number of environments that the process has open already. A process has 128 TiB of
  /// addresses for maps. The first ones get 1 TiB each. 7,000 take two thirds of it. A map that becomes full
  /// is doubled (`growMap`).
  private static let standards = [
    (below: 32, bytes: 1 << 40), (below: 288, bytes: 1 << 37), (below: .max, bytes: 1 << 32),
  ]
  static let smallest = 1 << 20
  /// For valgrind and other environments with little address space.
  package static let variable = "TOUCHSTONE_LMDB_MAP_BYTES"

  /// Returns the size to request when opening the file at `path`, in bytes: the variable's value, or a size for one more
  /// environment with room for the file to grow.
  package static func wanted(_ path: String = "") -> Int {
    guard let text = EnvironmentVariable.value(variable), let bytes = Int(text), bytes > 0 else {
      let open = EnvironmentRegistry.count
      let bytes = standards.first { open < $0.below }?.bytes ?? smallest
      var status = stat()
      guard stat(path, &status) == 0 else { return bytes }
      let needed = Int(status.st_size) * 4
      return needed <= bytes ? bytes : 1 << (Int.bitWidth - (needed - 1).leadingZeroBitCount)
    }
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    return max(smallest, bytes / page * page)
  }

  /// Returns whether the process can map this many more bytes. Asked before LMDB gives up its current map.
  static func isAvailable(_ bytes: Int) -> Bool {
    let probe = mmap(nil, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    guard let probe, probe != MAP_FAILED else { return false }
    munmap(probe, bytes)
    return true
  }

  static func current(of environment: OpaquePointer) -> Int {
    var info = MDB_envinfo()
    mdb_env_info(environment, &info)
    return info.me_mapsize
  }
}

// MARK: - Growth

extension Environment {
  /// Doubles the map between transactions. Does nothing while a snapshot is open, because the snapshot reads
  /// the old map.
  func growMap() {
    _ = pool.whenIdle {
      let size = MapSize.current(of: handle) * 2
      guard MapSize.isAvailable(size), mdb_env_set_mapsize(handle, size) == 0 else { return }
      wantsLargerMap.store(false, ordering: .relaxed)
    }
  }

  /// Adopts the map size that another process has set. The caller's slot counts as waiting.
  func adoptLargerMap() throws {
    do {
      try queue.exclusively { try adoptLargerMapWhileWriterIsOut() }
    } catch let error as StorageError where error.code == .nestedWrite {
      throw StorageError.lmdb(MDB_MAP_RESIZED, "a snapshot could not be started", path: path)
    }
  }

  /// Adopts the larger map size. Waits for open snapshots to end; new ones wait too. Throws `mapFull` if one
  /// stays open for longer than `patience`.
  func adoptLargerMapWhileWriterIsOut() throws {
    let start = ContinuousClock.now
    while mapIsTooSmall {
      let result = pool.whenNobodyReads { mdb_env_set_mapsize(handle, 0) }
      if let result {
        if result != 0 { throw StorageError.lmdb(result, "the map could not be enlarged", path: path) }
        continue
      }
      if ContinuousClock.now - start > patience {
        throw StorageError.lmdb(MDB_MAP_RESIZED, "the map could not be enlarged", path: path)
      }
      usleep(500)
    }
  }

  /// Whether the file has pages beyond the map.
  private var mapIsTooSmall: Bool {
    var info = MDB_envinfo()
    mdb_env_info(handle, &info)
    var statistics = MDB_stat()
    mdb_env_stat(handle, &statistics)
    return info.me_mapsize / Int(statistics.ms_psize) < info.me_last_pgno + 1
  }
}
