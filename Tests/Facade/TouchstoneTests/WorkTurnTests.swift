import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

/// Of all that have a database open, one at a time does some work for it.
@Suite struct WorkTurnTests {
  private let databases = TestDatabases()

  @Test(arguments: someEngines) func oneHasTheTurnUntilItGivesItBack(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let (one, two) = (try database.workTurn(for: "work"), try database.workTurn(for: "work"))
    try expect(database.take(one) && database.take(one) && one.isStillHeld())
    try expect(!database.take(two) && !two.isStillHeld())
    let other = try database.workTurn(for: "other")
    try expect(database.take(other))
    one.giveBack()
    try expect(database.take(two) && two.isStillHeld() && !one.isStillHeld())
    two.giveBack()
    other.giveBack()
  }

  /// Who restores a copy under an open database has made another one, whose turn is for those that have that one open.
  @Test(arguments: someEngines) func theTurnOfAnotherDirectoryIsNotTaken(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let (path, old) = (database.path, database.path + ".old")
    let turn = try database.workTurn(for: "work")
    try expect(database.take(turn))
    try FileManager.default.moveItem(atPath: path, toPath: old)
    try FileManager.default.copyItem(atPath: old, toPath: path)
    try expect(!turn.isStillHeld())
    turn.giveBack()
    let next = try database.workTurn(for: "work")
    try expect(storageCode { _ = try database.take(next) }, equals: .notFound)
    try expect(!next.isStillHeld())
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: old, toPath: path)
    try expect(database.take(next) && next.isStillHeld())
    next.giveBack()
  }
}
