import Query
import TestSupport

/// Two processes with one database's indexes, and processes that are killed while they make one.
@Suite("Indexes and several processes", .serialized) struct IndexProcessTests {
  private let directory = TemporaryDirectory()

  private func fill(_ database: Database, _ count: Int) throws {
    try database.fill(
      (0..<count).map { number in
        let text = String(repeating: "t\(number % 97)", count: 1 + number % 9)
        return ("d\(number)", #"{"type":"t\#(number % 4)","n":\#(number % 100),"text":"\#(text)"}"#)
      })
  }

  @Test("a killed creation leaves an index whole, or none", arguments: someEngines)
  func kills(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    let path = directory.path
    let options = try options(engine, durability: .normal)
    let count = isLong ? 20_000 : 4_000
    var database = try Database.open("test", in: path, options: options)
    try fill(database, count)
    try database.close()
    var (whole, none) = (0, 0)
    for round in 0..<(isLong ? 60 : 5) {
      let child = try startChild(.database, "query", "make", "\(engine)", path)
      try child.waitForOutput()
      usleep(UInt32.random(in: 0..<40_000, using: &random))
      child.kill()
      try child.wait()
      expect(!child.outputText.contains("failed"), "\(child.outputText.suffix(300))")
      database = try Database.open("test", in: path, options: options)
      let context = "round \(round), TOUCHSTONE_SEED=\(testSeed)"
      try expect(database.check(), equals: [], "\(context)")
      let names = try database.indexes.map(\.name)
      expect(names == [] || names == ["byN"], "\(context)")
      if names.isEmpty { none += 1 } else { whole += 1 }
      // What was said to be committed is: one step may have followed.
      let said = child.wholeLines
      let steps = said.filter { $0 == "made" || $0 == "removed" }
      if let last = steps.last, names.isEmpty == (last == "made") {
        // Its successor was committed, and not said any more.
        expect(steps.count >= 1, "\(context)")
      }
      let query = try database.query("SELECT META().id FROM _ WHERE n = 7 ORDER BY META().id")
      try expect(query.run().count, equals: count / 100, "\(context)")
      try expect(query.explain().description.contains("byN"), equals: !names.isEmpty, "\(context)")
      // It takes what comes.
      try database.save("new", ["n": 7])
      try expect(query.run().count, equals: count / 100 + 1, "\(context)")
      try database.purge("new")
      try database.close()
    }
    expect(whole + none > 0)
  }

  @Test("a killed writer leaves a full-text index that says what the documents say", arguments: someEngines)
  func killedTexts(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    let path = directory.path
    let options = try options(engine, durability: .normal)
    var database = try Database.open("test", in: path, options: options)
    try database.createFullTextIndex("words", on: ["text"], options: .init(language: .english))
    try database.close()
    var next = 0
    var total = 0
    for round in 0..<(isLong ? 200 : 8) {
      let child = try startChild(.database, "query", "texts", "\(engine)", path, "\(next)")
      // Some batches, however slow the disk is, and a part of one.
      try child.waitForOutput(lines: Int.random(in: 2..<12, using: &random))
      usleep(UInt32.random(in: 0..<10_000, using: &random))
      child.kill()
      try child.wait()
      expect(!child.outputText.contains("failed"), "\(child.outputText.suffix(300))")
      let said = child.wholeLines
      database = try Database.open("test", in: path, options: options)
      let context = "round \(round), TOUCHSTONE_SEED=\(testSeed)"
      let last = try database.document("counter")?["n"].int.map { Int($0) } ?? -1
      if let acknowledged = said.compactMap({ Int($0) }).last { expect(last >= acknowledged, "\(context)") }
      try expect(database.check(deep: true), equals: [], "\(context)")
      // What the index finds, against the documents themselves.
      let query = try database.query("SELECT META().id FROM _ WHERE MATCH(words, $text) ORDER BY META().id")
      for word in ["mark\(last)", "mark\(last - 1)", "mark\(last + 1)", "w1", "\"w0 w1\"", "w7 NEAR/3 w2"] {
        let under = try database.query(
          "SELECT META().id FROM _ WHERE MATCH(words, $text) OR n < -1 ORDER BY META().id")
        let found = try query.run(["text": .string(word)])
        try expect(found, equals: (try under.run(["text": .string(word)])), "\(word), \(context)")
      }
      let marked = try query.run(["text": .string("mark\(last)")]).count
      let live = try database.query("SELECT COUNT(*) FROM _ WHERE text LIKE $text")
      let written = try live.run(["text": .string("mark\(last) %")])[0][0].int ?? -1
      expect(marked, equals: Int(written), "\(context)")
      try expect(query.run(["text": .string("mark\(last + 1)")]).isEmpty, "\(context)")
      try database.close()
      total += last + 1 - next
      next = last + 1
    }
    expect(total > 8, "only \(total) batches: nothing was tested")
  }

  @Test("queries are right while another process makes and removes indexes", arguments: sharedEngines)
  func changes(_ engine: EngineName) throws {
    let path = directory.path
    let options = try options(engine)
    let database = try Database.open("test", in: path, options: options)
    try fill(database, 600)
    let texts = [
      "SELECT META().id FROM _ WHERE type = 't1' AND n = 13 ORDER BY META().id",
      "SELECT n FROM _ WHERE n >= 90 ORDER BY n, META().id",
      "SELECT META().id FROM _ WHERE text = 't7t7t7t7t7t7t7t7' ORDER BY META().id",
      "SELECT type, COUNT(*) AS c FROM _ WHERE n >= 0 GROUP BY type ORDER BY type",
    ]
    let expected = try texts.map { try database.rows($0, usesIndexes: false) }
    expect(expected.allSatisfy { !$0.isEmpty })
    let prepared = try texts.map { try database.query($0) }
    let child = try startChild(.database, "query", "change", "\(engine)", path)
    var plans: Set<String> = []
    var rounds = 0
    // Until plans were seen to change, and for some rounds more; a child that does nothing isn't waited for.
    let enough = isLong ? 1_000 : 25
    while rounds < enough || plans.count <= texts.count, rounds < 5_000, child.outputSoFar.isEmpty {
      for (number, query) in prepared.enumerated() {
        try expect(query.run().map { try $0.json() }, equals: expected[number], "\(texts[number])")
        plans.insert(try query.explain().description)
        // One that nobody has prepared yet.
        try expect(database.rows(texts[number]), equals: expected[number], "\(texts[number])")
      }
      // In a batch the writer's own view is planned for.
      try database.inBatch {
        try expect(prepared[rounds % 4].run().map { try $0.json() }, equals: expected[rounds % 4])
        try database.save("ours", ["type": "ours", "n": .int(Int64(-2 - rounds))])
      }
      rounds += 1
    }
    try database.save("stop", [:])
    try expect(child.wait(), equals: .exited(0), "\(child.outputText) \(child.errorText)")
    expect(child.outputText, equals: "done\n")
    expect(plans.count > texts.count, "the plans never changed in \(rounds) rounds")
    try expect(database.check(), equals: [])
    try database.close()
  }

  @Test("what was planned in a batch that is undone is forgotten", arguments: someEngines)
  func undone(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try fill(database, 400)
      let query = try database.query("SELECT META().id FROM _ WHERE n = 7 ORDER BY META().id")
      let expected = try query.run().map { try $0.json() }
      try database.inUndoneBatch {
        try database.createIndex("x", on: ["n"])
        try expect(query.run().map { try $0.json() }, equals: expected)
        try expect(query.explain().description.contains("Index x"))
      }
      try expect(query.explain().description.contains("Scan"))
      // The next index takes the numbers of the one that never was.
      try database.createIndex("y", on: ["text", "n"])
      try expect(query.run().map { try $0.json() }, equals: expected)
      try database.deleteIndex("y")
      try database.inBatch {
        try database.createIndex("x", on: ["text"])
        try expect(query.run().map { try $0.json() }, equals: expected)
        try database.createIndex("x", on: ["n"])
        try expect(query.run().map { try $0.json() }, equals: expected)
        try expect(query.explain().description.contains("Index x"))
      }
      try expect(query.run().map { try $0.json() }, equals: expected)
      // A compaction may give every keyspace another number.
      try database.compact()
      try expect(query.run().map { try $0.json() }, equals: expected)
      try expect(query.explain().description.contains("Index x"))
    }
  }
}
