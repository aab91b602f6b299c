import TestSupport

@testable import Documents
@testable import Query
@testable import Touchstone

/// What live queries tell of changes that a sequence, or Swift's comparison of strings, doesn't show.
@Suite struct LiveResultTests {
  private let databases = TestDatabases()

  @Test("setting and removing expirations is told to queries that read them", arguments: someEngines)
  func expirations(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill([("a", #"{"t":1}"#), ("b", #"{"t":1}"#)])
    let told = ToldResults()
    let live = try database.observe(
      try database.query(
        "SELECT META().id FROM _ WHERE t = 1 AND META().expiration IS NOT MISSING ORDER BY META().id")
    ) { told.append($0) }
    expect(told.next(), equals: [])
    try database.setExpiration(of: "a", after: 100_000)
    expect(told.next(), equals: [#"{"id":"a"}"#])
    try database.inBatch {
      try database.setExpiration(of: "b", after: 100_000)
      try database.setExpiration(of: "a", at: nil)
    }
    expect(told.next(), equals: [#"{"id":"b"}"#])
    try database.inBatch { try database.setExpiration(of: "b", after: 200_000) }
    try database.inUndoneBatch {
      try database.setExpiration(of: "a", after: 100_000)
    }
    try database.purge("b")
    expect(told.next(), equals: [])
    live.waitForRuns()
    expect(told.results.withLock { $0 }, equals: [[], [#"{"id":"a"}"#], [#"{"id":"b"}"#], []])
    live.cancel()
  }

  @Test("observers of documents aren't told of expirations", arguments: someEngines)
  func observers(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["t": 1])
    let told = Lock<[[String]]>([])
    let signal = CountingSemaphore()
    let token = try database.observe { change in
      told.withLock { $0.append(change.documentIDs) }
      signal.signal()
    }
    try database.setExpiration(of: "a", after: 100_000)
    try database.save("b", ["t": 2])
    signal.wait()
    expect(told.withLock { $0 }, equals: [["b"]])
    token.cancel()
  }

  @Test("documents whose IDs differ in normalization are different ones", arguments: someEngines)
  func identities(_ engine: EngineName) throws {
    let (nfc, nfd) = ("\u{E9}", "e\u{301}")
    try withDatabase(engine) { database in
      try database.save(nfc, ["t": 5])
      let told = ToldResults()
      let live = try database.observe(try database.query("SELECT COUNT(*) AS n FROM _ WHERE t = 5")) {
        told.append($0)
      }
      expect(told.next(), equals: [#"{"n":1}"#])
      for (change, count) in [
        ({ try database.save(nfd, ["t": 5]) }, 2), ({ try database.save(nfd, ["t": 6]) }, 1),
        ({ try database.save(nfd, ["t": 5]) }, 2), ({ try database.save(nfc, ["t": 6]) }, 1),
        ({ try database.purge(nfd) }, 0), ({ try database.save(nfc, ["t": 5]) }, 1),
        ({ try database.purge(nfc) }, 0),
      ] as [(() throws -> Void, Int)] {
        try change()
        expect(told.next(), equals: [#"{"n":\#(count)}"#])
      }
      live.cancel()
    }
  }

  /// The branch that was current goes: the other one gives the body, which was stored under an older sequence.
  @Test("a purged branch that leaves another body is told", arguments: someEngines)
  func branches(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.apply(PulledRevision(id: "d", history: ["2-bb", "1-aa"], body: ["t": 1, "n": 1]))
    try database.apply(PulledRevision(id: "d", history: ["2-cc", "1-aa"], body: ["t": 1, "n": 2]))
    let told = ToldResults()
    let live = try database.observe(try database.query("SELECT n FROM _ WHERE t = 1")) { told.append($0) }
    expect(told.next(), equals: [#"{"n":2}"#])
    // What could matter is known from the first commit on.
    try database.save("e", ["t": 1, "n": 0])
    expect(told.next().count, equals: 2)
    try database.purge("d", branch: #require(RevisionID("2-cc")))
    expect(told.next().contains(#"{"n":1}"#))
    live.cancel()
  }

  @Test("a value that stays equal is told with the next change only", arguments: someEngines)
  func equalValues(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill([("a", #"{"t":1,"v":1}"#)])
    let told = ToldResults()
    let live = try database.observe(try database.query("SELECT v FROM _ WHERE t = 1")) { told.append($0) }
    expect(told.next(), equals: [#"{"v":1}"#])
    try database.fill([("a", #"{"t":1,"v":1.0}"#)])
    live.waitForRuns()
    try database.fill([("a", #"{"t":1,"v":0.0}"#)])
    expect(told.next(), equals: [#"{"v":0.0}"#])
    try database.fill([("a", #"{"t":1,"v":-0.0}"#)])
    live.waitForRuns()
    try database.fill([("a", #"{"t":1,"v":null}"#)])
    expect(told.next(), equals: [#"{"v":null}"#])
    try database.fill([("a", #"{"t":1}"#)])
    expect(told.next(), equals: ["{}"])
    expect(told.results.withLock { $0.count }, equals: 4)
    live.cancel()
  }
}
