// Commands of the child process that the tests of upgrades start, and kill.
//
//   upgrade SOURCE TARGET ENGINE      prints "begun", upgrades and verifies, prints "done"

import ChildSupport
import TestSupport

enum UpgradeCommands: ChildCommands {
  static let name = "upgrade"
  static let usage = "SOURCE TARGET ENGINE"

  static func run(_ words: [String]) throws {
    guard words.count == 3 else { throw WrongUsage() }
    let engine = EngineName(rawValue: words[2])
    let key = try key(of: engine)
    say("begun")
    try Database.upgrade(
      words[0], to: words[1], engine: engine, key: key, options: UpgradeOptions(verifies: true))
    say("done")
  }
}
