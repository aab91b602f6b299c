import Datasets
import Documents
import FullTextReference
import TestSupport

@testable import FullText
@testable import Query
@testable import Storage
@testable import Touchstone

/// Full-text indexes against an evaluator that looks at each document literally.
@Suite struct FullTextIndexTests {
  static let columns = ["title", "text"]
  /// Few words, so that they meet; one beyond any key, and ones that share what keys are cut to.
  static let words: [String] =
    [
      "linux", "kernel", "database", "databases", "engine", "couch", "couchbase", "quick", "the", "of", "run",
      "running", "naïve", "straße", "日本語", "a1", "b2", "C3", "longer", "longest", "long",
    ] + ["x", "y", "z"].map { String(repeating: "w", count: 600) + $0 }

  struct Random {
    var generator: SeededGenerator

    mutating func word() -> String {
      // The first words are much more frequent.
      let place = Double.random(in: 0..<1, using: &generator)
      return FullTextIndexTests.words[Int(place * place * Double(FullTextIndexTests.words.count))]
    }

    mutating func text(_ most: Int) -> String {
      (0..<Int.random(in: 0...most, using: &generator)).map { _ in word() }.joined(separator: " ")
    }

    mutating func item(_ inPhrase: Bool = false) -> String {
      var word = word()
      if word.utf8.count > 100, Bool.random(using: &generator) { word = String(word.prefix(550)) + "*" }
      switch Int.random(in: 0..<8, using: &generator) {
      case 0: return String(word.prefix(3)) + "*"
      case 1 where !inPhrase: return "^" + word
      case 2 where !inPhrase: return "title:" + word
      default: return word
      }
    }

    mutating func phrase() -> String {
      if Int.random(in: 0..<3, using: &generator) > 0 { return item() }
      let items = (0..<Int.random(in: 2...3, using: &generator)).map { _ in item(true) }
      let column = Int.random(in: 0..<4, using: &generator) == 0 ? "text:" : ""
      return column + "\"" + items.joined(separator: " ") + "\""
    }

    mutating func query(_ depth: Int = 0) -> String {
      switch Int.random(in: 0..<(depth > 2 ? 2 : 8), using: &generator) {
      case 0, 1: return phrase()
      case 2: return phrase() + " NEAR/\(Int.random(in: 0...4, using: &generator)) " + phrase()
      case 3: return "(" + query(depth + 1) + " NOT " + query(depth + 1) + ")"
      case 4, 5: return "(" + query(depth + 1) + " OR " + query(depth + 1) + ")"
      default: return "(" + query(depth + 1) + " " + query(depth + 1) + ")"
      }
    }
  }

  /// Holds what the index finds against the reference, for random queries.
  private func compare(
    _ database: Database, _ reference: ReferenceIndex, _ random: inout Random, _ count: Int, _ context: String
  ) throws {
    let all = try database.query(
      "SELECT META().id, RANK(words) FROM _ WHERE MATCH(words, $text) ORDER BY RANK(words) DESC")
    let best = try database.query(
      "SELECT META().id, RANK(words) FROM _ WHERE MATCH(words, $text) ORDER BY RANK(words) DESC LIMIT 5")
    let plain = try database.query("SELECT META().id FROM _ WHERE MATCH(words, $text)")
    let under = try database.query(
      "SELECT META().id, RANK(words) FROM _ WHERE MATCH(words, $text) OR n < 0 ORDER BY RANK(words) DESC")
    for _ in 0..<count {
      let text = random.query()
      let expected = try reference.search(text)
      let note = "\(text) \(context), TOUCHSTONE_SEED=\(testSeed)"
      func rows(_ query: Query) throws -> [String] {
        try query.run(["text": .string(text)]).map { row in
          "\(row[0].string ?? "-") \(row[1].double ?? -1)"
        }
      }
      let wanted = expected.map { "\($0.id) \($0.rank)" }
      let found = try rows(all)
      expect(found, equals: wanted, Comment(rawValue: note))
      try expect(rows(best), equals: Array(wanted.prefix(5)), Comment(rawValue: "best: " + note))
      try expect(rows(under), equals: wanted, Comment(rawValue: "under OR: " + note))
      let ids = try plain.run(["text": .string(text)]).map { $0[0].string ?? "-" }
      expect(ids.sorted(), equals: expected.map(\.id).sorted(), Comment(rawValue: "plain: " + note))
      if found != wanted { return }
    }
  }

  @Test("random texts, writes and queries against the reference", arguments: someEngines)
  func random(_ engine: EngineName) throws {
    var random = Random(generator: SeededGenerator(seed: testSeed))
    let options: [TextAnalysisOptions] = [
      .init(), .init(language: .english), .init(language: .german, ignoresAccents: true),
    ]
    // All engines keep the same bytes: two of them go through all options.
    let isWhole = isLong || engine == .lmdb || engine == .sqlite
    for (round, options) in options.enumerated() where isWhole || round == 1 {
      let weights: [Double]? = round == 2 ? [2.5, 0.5] : nil
      var reference = try ReferenceIndex(columns: Self.columns, options: options, weights: weights ?? [])
      try withDatabase(engine) { database in
        func write(_ id: String, _ database: Database) throws {
          let texts = [random.text(4), random.text(30)]
          try database.save(id, ["title": .string(texts[0]), "text": .string(texts[1]), "n": 1])
          reference.set(id, texts)
        }
        try database.inBatch {
          for number in 0..<(isLong ? 400 : 150) { try write("doc\(number)", database) }
        }
        try database.createFullTextIndex("words", on: Self.columns, options: options, weights: weights)
        try compare(database, reference, &random, isLong ? 300 : 10, "after the build")
        for step in 0..<(isLong ? 40 : 6) {
          try database.inBatch {
            for _ in 0..<(step % 3 == 0 ? 1 : 60) {
              let id = "doc\(Int.random(in: 0..<(isLong ? 500 : 190), using: &random.generator))"
              switch Int.random(in: 0..<6, using: &random.generator) {
              case 0:
                _ = try? database.delete(id)
                reference.remove(id)
              case 1:
                try? database.purge(id)
                reference.remove(id)
              default: try write(id, database)
              }
            }
            if step == 1 { try compare(database, reference, &random, 3, "in a batch") }
          }
          if step == 4 { try database.compact() }
          try compare(database, reference, &random, isLong ? 50 : 4, "after step \(step)")
        }
        try expect(database.check(), equals: [])
        for number in 0..<500 where number % 50 != 0 {
          _ = try? database.delete("doc\(number)")
          reference.remove("doc\(number)")
        }
        try compare(database, reference, &random, 5, "when most are gone")
        try expect(database.check(), equals: [])
      }
    }
  }

  @Test("words that stand far apart, or far into long texts", arguments: someEngines)
  func distances(_ engine: EngineName) throws {
    // A step between two places takes one byte up to 127, two up to 16,383, and three beyond.
    let gaps = [1, 2, 3, 63, 126, 127, 128, 129, 255, 16_382, 16_383, 16_384, 20_000]
    func filler(_ count: Int) -> [String] { (0..<max(0, count)).map { "w\($0 % 13)" } }
    for columns in [["text"], Self.columns] {
      try withDatabase(engine) { database in
        try database.inBatch {
          for gap in gaps {
            let between = filler(gap - 1)
            let ahead = (["alpha"] + between + ["beta"]).joined(separator: " ")
            let behind = (filler(gap) + ["beta"] + between + ["alpha"]).joined(separator: " ")
            try database.save("ahead\(gap)", ["text": .string(ahead), "title": "alpha"])
            try database.save("behind\(gap)", ["text": .string(behind), "title": "beta beta"])
            // In other columns they are never near each other.
            try database.save("apart\(gap)", ["text": .string(behind + " gamma"), "title": "delta"])
          }
        }
        try database.createFullTextIndex("words", on: columns)
        func found(_ text: String) throws -> Set<String> {
          let query = try database.query("SELECT META().id FROM _ WHERE MATCH(words, $text)")
          return Set(try query.run(["text": .string(text)]).map { $0[0].string ?? "-" })
        }
        try expect(found("\"alpha beta\""), equals: ["ahead1"])
        try expect(found("\"beta alpha\""), equals: ["behind1", "apart1"])
        try expect(found("\"w0 alpha\"").isEmpty, equals: false)
        if columns.count > 1 { try expect(found("gamma NEAR/30000 delta").isEmpty) }
        for gap in gaps {
          let near = Set(gaps.filter { $0 <= gap }.flatMap { ["ahead\($0)", "behind\($0)", "apart\($0)"] })
          try expect(found("alpha NEAR/\(gap - 1) beta"), equals: near, "alpha before, \(gap)")
          try expect(found("beta NEAR/\(gap - 1) alpha"), equals: near, "beta before, \(gap)")
        }
        try expect(found("alpha NEAR/5 alpha").isEmpty)
        try expect(database.check(), equals: [])
      }
    }
  }

  @Test("an index of another ICU or libstemmer is made anew at the opening", arguments: someEngines)
  func otherAnalysis(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let path = directory.path
    var options = try options(engine)
    func open() throws -> Database { try Database.open("test", in: path, options: options) }
    var database = try open()
    let analysis = TextAnalysisOptions(language: .english)
    try database.save("a", ["text": "running databases"])
    try database.createFullTextIndex("words", on: ["text"], options: analysis)
    func state() throws -> (number: UInt32, state: InvertedIndexState) {
      try database.read { snapshot in
        let record = try #require(try snapshot.indexes.first)
        let reader = try InvertedIndexReader(named: record.keyspaceName, in: snapshot.storage)
        return (record.number, reader.state)
      }
    }
    let made = try state()
    expect(String(decoding: made.state.analysis, as: UTF8.self), equals: AnalysisVersion.text(of: analysis))
    // The same libraries: nothing happens.
    try database.close()
    database = try open()
    try expect(state().number, equals: made.number)
    // Others; and the postings of nothing.
    let keyspace = try database.read { try #require(try $0.indexes.first).keyspaceName }
    try database.engine.write { transaction in
      let keyspaces = try InvertedIndexKeyspaces(named: keyspace, in: transaction)
      var state = made.state
      state.analysis = Array("rules 1, icu 4.2, english 00".utf8)
      try state.store(keyspaces.terms, transaction)
    }
    let query = "SELECT META().id FROM _ WHERE MATCH(words, 'run')"
    try expect(database.check(), equals: [])
    try database.close()
    options.isReadOnly = true
    database = try open()
    try expect(state().state.analysis != made.state.analysis)
    try expect(database.query(query).run().count, equals: 1)
    try database.close()
    options.isReadOnly = false
    database = try open()
    let renewed = try state()
    expect(renewed.number > made.number)
    expect(renewed.state.analysis, equals: made.state.analysis)
    try expect(database.query(query).run().count, equals: 1)
    try expect(database.check(), equals: [])
    try database.save("b", ["text": "a run"])
    try expect(database.query(query).run().count, equals: 2)
    try database.close()
  }
}
