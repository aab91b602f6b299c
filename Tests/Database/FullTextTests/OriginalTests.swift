// The match language beside that of SQLite's FTS4 with the enhanced query syntax, which is what Couchbase Lite has.

import CSQLite
import FullText
import FullTextReference
import SQLiteLibrary
import TestTools

@Suite struct OriginalTests {
  private func texts(_ random: inout SeededGenerator) -> [[String]] {
    let words = ["a", "b", "c", "d", "e", "f", "ab", "ac", "abc", "be", "bed"]
    return (0..<40).map { _ in
      (0..<2).map { _ in
        (0..<Int.random(in: 0...9, using: &random)).map { _ in
          words[Int.random(in: 0..<words.count, using: &random)]
        }.joined(separator: " ")
      }
    }
  }

  private func table(_ documents: [[String]]) throws -> Connection {
    let connection = try Connection(
      ":memory:", library: try Library.load(Library.sqlitePath),
      flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    try connection.execute("CREATE VIRTUAL TABLE t USING fts4(title, body, tokenize=simple)")
    for (number, texts) in documents.enumerated() {
      let insert = try connection.prepare("INSERT INTO t (docid, title, body) VALUES (?1, ?2, ?3)")
      try insert.bind(1, number + 1)
      try insert.bind(2, texts[0])
      try insert.bind(3, texts[1])
      try insert.run()
      insert.finalize()
    }
    return connection
  }

  @Test func queriesMatchWhatTheOriginalMatches() throws {
    var random = SeededGenerator(seed: testSeed)
    var hits = 0
    for round in 0..<20 {
      let documents = texts(&random)
      let table = try table(documents)
      let index = try reference(documents, columns: ["title", "body"])
      let select = try table.prepare("SELECT docid FROM t WHERE t MATCH ?1 ORDER BY docid")
      for _ in 0..<100 {
        let query = randomQuery(&random, forOriginal: true)
        try select.bind(1, query)
        var expected: [String] = []
        while try select.step() { expected.append("\(select.integer(0))") }
        select.reset()
        let found = try index.search(query).map(\.id).sorted { (Int($0) ?? 0) < (Int($1) ?? 0) }
        hits += found.count
        if found != expected {
          Issue.record("seed \(testSeed), round \(round): \(query): \(found), the original \(expected)")
          return
        }
      }
    }
    expect(hits > 1_000)
  }

  @Test func hitsAreTheOriginalsOffsets() throws {
    var random = SeededGenerator(seed: testSeed)
    let documents = texts(&random)
    let table = try table(documents)
    let select = try table.prepare("SELECT docid, offsets(t) FROM t WHERE t MATCH ?1 ORDER BY docid")
    let analyzer = try analyzer()
    var count = 0
    for _ in 0..<500 {
      // Of NEAR and of what is on the right of NOT the original has other ones.
      let query = randomQuery(&random, forOriginal: true)
      if query.contains("NOT") || query.contains("NEAR") { continue }
      let highlighter = try Highlighter(
        MatchQuery(parsing: query, columns: ["title", "body"], analyzer: analyzer), analyzer: analyzer)
      try select.bind(1, query)
      while try select.step() {
        let numbers = (select.string(1) ?? "").split(separator: " ").compactMap { Int($0) }
        let expected = stride(from: 0, to: numbers.count, by: 4).map {
          MatchHit(
            column: numbers[$0], term: numbers[$0 + 1], start: numbers[$0 + 2], length: numbers[$0 + 3])
        }
        let found = highlighter.hits(inTexts: documents[select.integer(0) - 1])
        count += found.count
        if Set(found) != Set(expected) {
          Issue.record(
            "seed \(testSeed): \(query) in \(documents[select.integer(0) - 1]): \(found), \(expected)")
          return
        }
      }
      select.reset()
    }
    expect(count > 500)
  }
}
