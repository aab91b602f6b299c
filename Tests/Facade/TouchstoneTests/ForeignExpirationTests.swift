import TestSupport
import Testing

@testable import Touchstone

/// Expiration times that another process sets.
@Suite struct ForeignExpirationTests {
  private let databases = TestDatabases()

  @Test(
    "an expiration of which nobody has told is found by the look that a timer makes", arguments: someEngines)
  func noticed(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    try database.save("b", ["n": 2])
    let upkeep = try #require(database.open.upkeep)
    upkeep.lookForExpirations()
    // As from another process: this one isn't told.
    let store = try database.store
    store.upkeep = nil
    try database.setExpiration(of: "a", after: -1)
    store.upkeep = upkeep
    try expect(database.document("a") != nil)
    upkeep.lookForExpirations()
    try eventually { try database.document("a") == nil }
    try expect(database.document("b") != nil)
  }
}
