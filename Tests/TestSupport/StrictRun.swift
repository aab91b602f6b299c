// A run of the tests with strict engines: TOUCHSTONE_STRICT=1.

import StorageConformance
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// Whether every database of this run is on a strict engine (`StrictEngine`).
///
/// The library below doesn't know of it: the strict engines are registered under the names of those they are over, as an
/// engine from outside is. Child processes open the same files with the engines themselves.
public let isStrict = getenv("TOUCHSTONE_STRICT").map { String(cString: $0) } == "1"

/// Called before `main` (Tests/AtLoad), so that no test, whatever it opens its databases with, comes first.
@_cdecl("touchstone_tests_at_load")
func registerStrictEngines() {
  guard isStrict else { return }
  // One of so many writes conflicts, when that is asked for.
  let conflicts = getenv("TOUCHSTONE_STRICT_CONFLICTS").flatMap { Int(String(cString: $0)) }
  let strictness = Strictness(conflicts: conflicts)
  for name in Engines.names {
    if let type = try? Engines.type(name) {
      Engines.register(StrictEngine.type(over: type, strictness: strictness))
    }
  }
}
