import TestSupport

@testable import FullText
@testable import Query
@testable import Storage

/// What a search lends stays while other searches of the same snapshot go on.
@Suite struct FullTextLendingTests {
  @Test("an ID stays while other searches of the same reader go through other pages", arguments: someEngines)
  func nestedSearches(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let count = 3_000
      try database.saveBatch(0..<count) { number in
        ("document-\(number)", ["text": .string(number % 3 == 0 ? "apple pear" : "apple")])
      }
      try database.createFullTextIndex("words", on: ["text"])
      try database.read { snapshot in
        let record = try #require(try snapshot.indexes.first)
        let reader = try InvertedIndexReader(named: record.keyspaceName, in: snapshot.storage)
        let analyzer = try TextAnalyzer(TextAnalysisOptions())
        func search(_ text: String) throws -> MatchSearch {
          try MatchSearch(MatchQuery(parsing: text, columns: ["text"], analyzer: analyzer), in: reader)
        }
        var outer = 0
        try search("apple").forEach { id in
          outer += 1
          guard outer % 500 == 0 else { return true }
          let before = String(copying: id)
          var inner = 0
          try search("pear").forEachRanked { id, _ in
            inner += String(copying: id).hasPrefix("document-") ? 1 : 0
            return true
          }
          try search("app* pear").forEachBest(5) { _, _ in true }
          expect(inner, equals: count / 3)
          expect(String(copying: id), equals: before)
          return true
        }
        expect(outer, equals: count)
      }
    }
  }

  @Test("a search is gone through once") func onlyOnce() throws {
    try withDatabase(.sqlite) { database in
      try database.save("a", ["text": "apple"])
      try database.createFullTextIndex("words", on: ["text"])
      try database.read { snapshot in
        let record = try #require(try snapshot.indexes.first)
        let reader = try InvertedIndexReader(named: record.keyspaceName, in: snapshot.storage)
        let query = try MatchQuery(
          parsing: "apple", columns: ["text"], analyzer: TextAnalyzer(TextAnalysisOptions()))
        let search = try MatchSearch(query, in: reader)
        #expect(throws: StorageError.self) {
          try search.forEach { _ in
            try search.forEach { _ in true }
            return true
          }
        }
      }
    }
  }
}
