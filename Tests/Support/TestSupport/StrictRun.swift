// A run of the tests with strict engines: TOUCHSTONE_STRICT=1.

import Foundation
import StorageConformance
import Touchstone

/// Whether every database of this run is on a strict engine (`StrictEngine`).
///
/// The library isn't changed for that. Strict engines are registered under the names of the engines below
/// them, as an external engine is. Child processes open the same files with the original engines.
package let isStrict = getenv("TOUCHSTONE_STRICT").map { String(cString: $0) } == "1"

/// Called before `main` (Tests/Support/AtLoad), so that it comes before every test.
@_cdecl("touchstone_tests_at_load")
func registerStrictEngines() {
  guard isStrict else { return }
  // One of this many writes conflicts, if the variable is set.
  let conflicts = getenv("TOUCHSTONE_STRICT_CONFLICTS").flatMap { Int(String(cString: $0)) }
  // Another process commits between any two write transactions, if the variable is set.
  let hasStrangers = getenv("TOUCHSTONE_STRICT_STRANGERS") != nil
  let strictness = Strictness(conflicts: conflicts, strangers: hasStrangers ? Strictness.idleStranger : nil)
  // A run on some engines may name those that aren't registered yet.
  _ = onlyEngines
  for name in Engines.names {
    if let type = try? Engines.type(name) {
      Engines.register(StrictEngine.type(over: type, strictness: strictness))
    }
  }
}
