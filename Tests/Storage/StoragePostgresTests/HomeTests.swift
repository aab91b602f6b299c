import Foundation
import TestTools

@testable import StoragePostgres

@Suite("What is beside the entries", .enabled(if: hasServer)) struct HomeTests {
  private func home(
    _ location: String, _ options: EngineOptions = EngineOptions()
  ) throws -> PostgresHome { try PostgresHome(location, options) }

  /// Makes a complete database without an engine.
  private func made(_ location: String) throws -> PostgresHome {
    let home = try home(location)
    try expect(home.takeAlone(seconds: 0) { false })
    try home.begin()
    try home.publish("{}")
    try expect(home.share(seconds: 0))
    home.giveUpAlone()
    return home
  }

  @Test func aDatabaseIsCompleteWhenItIsPublished() throws {
    let location = try newLocation()
    let home = try home(location)
    defer { home.close() }
    try expect(home.state(), equals: .missing)
    try home.begin()
    try expect(home.state(), equals: .unfinished)
    // What is left of an interrupted creation is made anew.
    try home.begin()
    try home.publish("it's \"here\"")
    try expect(home.state(), equals: .complete("it's \"here\""))
    try expect(storageCode { try home.begin() }, equals: .alreadyExists)
    try home.remove()
    try expect(home.state(), equals: .missing)
  }

  @Test func theLockIsSharedOrTakenAlone() throws {
    let location = try newLocation()
    let first = try made(location)
    let second = try home(location)
    try expect(second.share(seconds: 0))
    try expect(!first.takeAlone(seconds: 0) { false })
    try expect(!second.takeAlone(seconds: 0) { false })
    first.close()
    // Its own share is no hindrance, and stays when the lock isn't held alone any more.
    try expect(second.takeAlone(seconds: 0) { false })
    let third = try home(location)
    try expect(!third.share(seconds: 0))
    second.giveUpAlone()
    try expect(third.share(seconds: 0))
    try expect(!second.takeAlone(seconds: 0) { false })
    third.close()
    try second.remove()
    second.close()
    try expect(storageCode { try second.share(seconds: 0) }, equals: .closed)
  }

  @Test func workInTheBackgroundIsDoneByOneAtATime() throws {
    let location = try newLocation()
    let (first, second) = (try made(location), try home(location))
    struct Failed: Error {}
    var runs = 0
    try expect(
      first.inTurn {
        runs += 1
        try expect(!second.inTurn { runs += 1 })
      })
    expect(runs, equals: 1)
    // A failure ends the turn too.
    try expect(thrown(Failed.self) { try second.inTurn { throw Failed() } } != nil)
    try expect(first.inTurn { runs += 1 })
    expect(runs, equals: 2)
    first.close()
    second.close()
  }

  @Test func aTurnIsHeldUntilItIsGivenBackOrItsSessionEnds() throws {
    let server = try PostgresServer()
    let first = try made(server.location("turns"))
    let second = try home(server.location("turns"))
    defer {
      first.close()
      second.close()
    }
    let (one, two) = (first.workTurn(for: "work"), second.workTurn(for: "work"))
    try expect(one.take() && one.take() && one.isStillHeld())
    try expect(!two.take() && !two.isStillHeld())
    // Another one of the same home, and other work.
    try expect(!first.workTurn(for: "work").take())
    let other = second.workTurn(for: "other")
    try expect(other.take())
    other.giveBack()
    one.giveBack()
    try expect(storageCode { try one.take() }, equals: .closed)
    try expect(two.take())
    // It is lost with its session, and isn't taken again by itself.
    try expect(
      server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'"
      ), equals: ["t"])
    let three = first.workTurn(for: "work")
    try eventually { try three.take() }
    try expect(!two.isStillHeld())
    try expect(!two.take())
    three.giveBack()
    try expect(two.take() && two.isStillHeld())
    // A restart of the server ends it too.
    try server.stop(.fast)
    try expect(storageCode { try two.isStillHeld() } != nil)
    try server.start()
    try expect(!two.isStillHeld())
    try expect(two.take())
    two.giveBack()
  }

  @Test func aLostLockIsTakenAgain() throws {
    let server = try PostgresServer()
    let first = try made(server.location("lost"))
    try server.stop(.fast)
    try server.start()
    let second = try home(server.location("lost"))
    // The next call of the first one takes it.
    try expect(first.share(seconds: 0))
    try expect(!second.takeAlone(seconds: 0) { false })
    first.close()
    try expect(second.takeAlone(seconds: 0) { false })
    second.close()
  }

  @Test func commitsAreHeardWhileSomebodyListens() throws {
    let location = try newLocation()
    let home = try made(location)
    let engine = try open(location)
    try engine.closing { engine in
      let schema = try PostgresLocation(location).quotedSchema
      func listened() throws -> [String] {
        try PostgresServer.shared.get().sql("SELECT listened > now() FROM \(schema).touchstone")
      }
      try engine.fill(["a": "1"])
      try expect(listened(), equals: [])
      // What came before the listening may have been missed.
      expect(home.waitForCommit(seconds: 60), equals: true)
      try expect(listened(), equals: ["t"])
      expect(home.waitForCommit(seconds: 0.01), equals: false)
      try engine.fill(["b": "1"])
      expect(home.waitForCommit(seconds: 60), equals: true)
      home.wake()
      expect(home.waitForCommit(seconds: 60), equals: false)
    }
    home.close()
    expect(home.waitForCommit(seconds: 60) == nil)
  }

  @Test func aWaitEndsWithAWakeOfAnotherThread() throws {
    let home = try made(newLocation())
    let engine = try open(home.location)
    expect(home.waitForCommit(seconds: 60), equals: true)
    let thread = TestThreadResult { home.waitForCommit(seconds: 600) }
    home.wake()
    try expect(thread.value(), equals: false)
    try engine.close()
    home.close()
  }

  @Test func aStandbyTellsOfNoCommits() throws {
    let primary = try PostgresServer(options: ["wal_level=replica", "max_wal_senders=4"])
    let location = primary.location("standby")
    let made = try made(location)
    let engine = try open(location)
    try engine.fill(["a": "1"])
    let standby = try PostgresServer(standbyOf: primary)
    let home = try home(standby.location("standby"), EngineOptions(isReadOnly: true))
    try expect(home.state(), equals: .complete("{}"))
    try expect(home.share(seconds: 0))
    expect(home.waitForCommit(seconds: 60) == nil)
    home.close()
    try engine.close()
    made.close()
  }

  @Test func databasesAreListedByTheirSchemas() throws {
    let server = try PostgresServer()
    let base = String(server.location("").dropLast())
    try expect(PostgresNames(base).read(), equals: [])
    for name in ["b", "a%22%27", "c"] { try made(base + "#" + name).close() }
    try open(base + "#engine-alone").close()
    try server.sql("CREATE SCHEMA other; CREATE TABLE other.database (id integer)")
    try server.sql("UPDATE c.database SET description = NULL")
    try expect(PostgresNames(base).read(), equals: ["a\"'", "b"])
  }
}
