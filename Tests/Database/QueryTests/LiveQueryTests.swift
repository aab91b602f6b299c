import Query
import TestSupport

@testable import Touchstone

/// Queries that tell their rows again when commits change them.
@Suite struct LiveQueryTests {
  private let databases = TestDatabases()

  private let directory = TemporaryDirectory()

  @Test(arguments: someEngines)
  func theFirstResultComesAndThenEachChangedOne(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill([("a", #"{"n":1}"#)])
    let query = try database.query("SELECT n FROM _ WHERE n < 10 ORDER BY n")
    let told = ToldResults()
    let live = try database.observe(query) { told.append($0) }
    expect(told.next(), equals: [#"{"n":1}"#])
    // Another document that isn't of the result: nothing is told for it, and the next result comes.
    try database.fill([("b", #"{"n":99}"#)])
    try database.fill([("c", #"{"n":2}"#)])
    expect(told.next(), equals: [#"{"n":1}"#, #"{"n":2}"#])
    expect(told.results.withLock { $0.count }, equals: 2)
    live.cancel()
  }

  @Test(arguments: someEngines)
  func theLastResultAlwaysComes(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let query = try database.query("SELECT COUNT(*) AS n FROM _")
    let told = ToldResults()
    let live = try database.observe(query) { told.append($0) }
    for number in 1...100 { try database.fill([("d\(number)", "{}")]) }
    while told.last != [#"{"n":100}"#] { told.wait() }
    let counts = told.results.withLock { $0 }
    expect(counts.count <= 101)
    expect(Set(counts).count, equals: counts.count)
    live.cancel()
  }

  @Test(arguments: someEngines)
  func aCommitThatCannotMatterRunsNothing(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill([("a", #"{"type":"hotel","n":1}"#), ("z", #"{"type":"route"}"#)])
    let told = ToldResults()
    let live = try database.observe(
      try database.query("SELECT n FROM _ WHERE type = 'hotel' AND n < 10 ORDER BY n")
    ) { told.append($0) }
    told.wait()
    // With the first commit it is found out what can matter.
    try database.fill([("b", #"{"type":"hotel","n":7}"#)])
    told.wait()
    let runs = live.runCount
    for number in 0..<20 { try database.fill([("r\(number)", #"{"type":"route","n":1}"#)]) }
    try database.fill([("h", #"{"type":"hotel","n":50}"#)])
    try database.delete("z")
    try database.purge("r1")
    // All of them were looked at when this one's result is told.
    try database.delete("b")
    told.wait()
    expect(live.runCount, equals: runs + 1)
    // One comes, one changes, one leaves, one is deleted, one is purged.
    func expectRows(_ expected: [String], after change: () throws -> Void) throws {
      try change()
      expect(told.next(), equals: expected)
    }
    try expectRows([#"{"n":1}"#, #"{"n":2}"#]) { try database.fill([("r3", #"{"type":"hotel","n":2}"#)]) }
    try expectRows([#"{"n":1}"#, #"{"n":3}"#]) { try database.fill([("r3", #"{"type":"hotel","n":3}"#)]) }
    try expectRows([#"{"n":3}"#]) { try database.fill([("a", #"{"type":"route","n":1}"#)]) }
    try expectRows([]) { try database.delete("r3") }
    try expectRows([#"{"n":4}"#]) { try database.fill([("p", #"{"type":"hotel","n":4}"#)]) }
    try expectRows([]) { try database.purge("p") }
    live.cancel()
  }

  /// What a query reads of the database itself is told with each commit that changes documents or indexes.
  @Test(arguments: someEngines)
  func sourcesAboutTheDatabaseAreLive(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill([("a", #"{"n":1}"#)])
    func observed(_ text: String) throws -> (told: ToldResults, live: LiveQuery) {
      let told = ToldResults()
      return (told, try database.observe(database.query(text)) { told.append($0) })
    }
    let count = try observed("SELECT RAW k.count FROM system:keyspaces AS k")
    let indexes = try observed("SELECT RAW i.name FROM system:indexes AS i ORDER BY i.name")
    let inner = try observed("SELECT RAW (SELECT RAW i.name FROM system:indexes AS i) FROM _ WHERE n = 1")
    let schema = try observed("SELECT RAW s.`#docs` FROM system:schema AS s")
    let prepared = try observed("SELECT RAW p.name FROM system:prepareds AS p")
    let dual = try observed("SELECT 1 AS one FROM system:dual")
    expect(count.told.next(), equals: ["1"])
    expect(indexes.told.next(), equals: [])
    expect(inner.told.next(), equals: ["[]"])
    expect(schema.told.next(), equals: ["1"])
    expect(prepared.told.next(), equals: [])
    expect(dual.told.next(), equals: [#"{"one":1}"#])
    try database.createIndex("byN", on: ["n"])
    expect(indexes.told.next(), equals: [#""byN""#])
    expect(inner.told.next(), equals: [#"["byN"]"#])
    try database.fill([("b", #"{"n":2}"#)])
    expect(count.told.next(), equals: ["2"])
    expect(schema.told.next(), equals: ["2"])
    // PREPARE is no commit: its names are told with the next one.
    _ = try database.query("PREPARE p AS SELECT 1").run()
    try database.fill([("c", #"{"n":3}"#)])
    expect(prepared.told.next(), equals: [#""p""#])
    try database.deleteIndex("byN")
    expect(indexes.told.next(), equals: [])
    expect(inner.told.next(), equals: ["[]"])
    for (_, live) in [count, indexes, inner, schema, prepared, dual] { live.cancel() }
    expect(dual.told.results.withLock { $0.count }, equals: 1)
  }

  /// Random commits of every kind: the last result that is told is what the query gives then.
  @Test(arguments: someEngines)
  func noResultIsLost(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    try withDatabase(engine) { database in
      func body(_ random: inout SeededGenerator) -> String {
        let type = ["hotel", "route", "airline"].randomElement(using: &random) ?? ""
        let name = Bool.random(using: &random) ? #","name":"x""# : ""
        return
          #"{"type":"\#(type)","n":\#(Int.random(in: 0...9, using: &random)),"ref":"d\#(Int.random(in: 0..<30, using: &random))"\#(name)}"#
      }
      try database.fill((0..<30).map { ("d\($0)", body(&random)) })
      try database.createIndex("byType", on: ["type", "n"])
      let texts = [
        "SELECT META().id, n FROM _ WHERE type = 'hotel' AND n < $n ORDER BY META().id",
        "SELECT type, COUNT(*) AS c FROM _ WHERE n = 3 GROUP BY type ORDER BY type",
        "SELECT META(a).id AS a, META(b).id AS b FROM _ AS a JOIN _ AS b ON META(b).id = a.ref "
          + "WHERE a.type = 'route' AND b.type = 'airline' ORDER BY a, b",
        "SELECT META(a).id AS a, META(b).id AS b FROM _ AS a LEFT JOIN _ AS b ON META(b).id = a.ref AND b.n > 5 "
          + "WHERE a.type = 'route' AND b.name IS MISSING ORDER BY a, b",
        "SELECT COUNT(*) AS c FROM _ WHERE type = 'route' AND EXISTS (SELECT 1 FROM _ WHERE n = 9 AND type = 'hotel')",
        "SELECT META().id FROM _ WHERE META().id LIKE 'd1%' AND type != 'hotel' ORDER BY META().id",
        "SELECT COUNT(*) AS c FROM _",
      ]
      let queries = try texts.map { try database.query($0) }
      let told = texts.map { _ in ToldResults() }
      let live = try queries.indices.map { number in
        try database.observe(queries[number], parameters: ["n": 7]) { told[number].append($0) }
      }
      for round in 0..<(isLong ? 400 : 25) {
        for _ in 0..<Int.random(in: 1...4, using: &random) {
          try database.inBatch {
            for _ in 0..<Int.random(in: 1...3, using: &random) {
              let id = "d\(Int.random(in: 0..<30, using: &random))"
              switch Int.random(in: 0..<8, using: &random) {
              case 0: _ = try? database.delete(id)
              case 2:
                // A branch that wins, and below is gone again: the body is an older one.
                try database.apply(
                  PulledRevision(id: id, history: ["99-aa"], body: .json(Array(body(&random).utf8))))
              case 3:
                if let branch = RevisionID("99-aa") { _ = try? database.purge(id, branch: branch) }
              case 1: try? database.purge(id)
              default: try database.save(id, .json(Array(body(&random).utf8)))
              }
            }
          }
        }
        if round == 10 { try database.createIndex("byN", on: ["n"]) }
        if round == 15 { try database.deleteIndex("byType") }
        let expected = try queries.map { try $0.run(["n": 7]).map { try $0.json() } }
        let end = Date() + 20
        for number in texts.indices {
          // It comes, at whatever time; if it was lost, nothing does any more.
          while told[number].last != expected[number], Date() < end { told[number].wait(seconds: 0.05) }
          expect(
            told[number].last, equals: expected[number],
            "\(texts[number]) in round \(round), TOUCHSTONE_SEED=\(testSeed)")
        }
      }
      for live in live { live.cancel() }
    }
  }

  @Test(arguments: someEngines)
  func closingTheDatabaseWaitsForARunThatIsGoingOn(_ engine: EngineName) throws {
    let options = try options(engine)
    var database = try Database.open("test", in: directory.path, options: options)
    try database.fill((0..<2_000).map { ("d\($0)", #"{"n":\#($0 * 7_919 % 2_000)}"#) })
    for round in 0..<20 {
      let told = ToldResults()
      let live = try database.observe(try database.query("SELECT n FROM _ ORDER BY n")) { told.append($0) }
      // The first run may not have begun yet, or be anywhere.
      if round % 4 == 3 { told.wait() }
      try database.close()
      live.cancel()
      database = try Database.open("test", in: directory.path, options: options)
    }
    try database.close()
  }

  @Test(arguments: someEngines)
  func withAHandlerItEndsWithTheDatabase(_ engine: EngineName) throws {
    for _ in 0..<10 {
      let database = try databases.open(engine)
      let told = ToldResults()
      let live = try database.observe(try database.query("SELECT n FROM _")) { told.append($0) }
      told.wait()
      // A run may be waiting or going on while it closes.
      try database.fill([("a", #"{"n":1}"#)])
      // A run that reads right now keeps it open.
      while true {
        do {
          try database.close()
          break
        } catch let error as StorageError where error.code == .inUse {}
      }
      live.waitForRuns()
      let rows = told.results.withLock { $0 }
      expect(rows.first == [] && rows.count <= 2)
      expect(!rows.contains(["failed"]))
    }
  }

  @Test(arguments: someEngines)
  func asAStreamItEndsWithTheDatabase(_ engine: EngineName) async throws {
    let database = try databases.open(engine)
    let query = try database.query("SELECT n FROM _")
    let results = try database.results(of: query)
    var counts: [Int] = []
    for try await rows in results {
      counts.append(rows.count)
      if rows.count == 0 { try database.fill([("a", #"{"n":1}"#)]) }
      if rows.count == 1 {
        // Nothing changes any more: the stream goes on waiting until this.
        try database.close()
      }
    }
    expect(counts, equals: [0, 1])
  }
}
