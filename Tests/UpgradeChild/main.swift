// The process that the tests of upgrades start beside their own, and kill.
//
//   upgrade-child SOURCE TARGET ENGINE      prints "begun", upgrades and verifies, prints "done"

import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

func say(_ text: String) {
  let bytes = Array((text + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

do {
  let words = Array(CommandLine.arguments.dropFirst())
  guard words.count == 3 else { throw DatabaseError(.notFound, "SOURCE TARGET ENGINE") }
  let engine = EngineName(rawValue: words[2])
  let key = try Engines.type(engine).encrypts ? UserKey.raw([UInt8](repeating: 7, count: 32)) : nil
  say("begun")
  try Database.upgrade(
    words[0], to: words[1], engine: engine, key: key, options: UpgradeOptions(verifies: true))
  say("done")
} catch {
  say("failed: \(error)")
  exit(1)
}
