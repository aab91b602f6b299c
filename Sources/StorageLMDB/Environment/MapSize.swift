import CLMDB
import Glibc
import Storage

/// The address space of a map. The file itself is only as large as its data.
package enum MapSize {
  static let standard = 1 << 40
  static let smallest = 1 << 20
  /// For valgrind and other environments with little address space.
  package static let variable = "TOUCHSTONE_LMDB_MAP_BYTES"

  /// Returns the size to request when opening, in bytes: the variable's value, or 1 TiB.
  package static func wanted() -> Int {
    guard let text = EnvironmentVariable.value(variable), let bytes = Int(text), bytes > 0 else {
      return standard
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
