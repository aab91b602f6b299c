// A full-text index that is a list of documents' terms: each query looks at each of them, literally as docs/fulltext.md
// has it. It shares the analysis and the syntax tree with what it is compared with, nothing else.

import Foundation
import FullText

/// A full-text index in memory.
package struct ReferenceIndex {
  /// A document that matches.
  package struct Result: Equatable, Sendable {
    /// The document's name.
    package var id: String
    /// Its rank by BM25.
    package var rank: Double
  }

  /// The terms of each column of each document with any term; a term's place is its position.
  package private(set) var documents: [String: [[[UInt8]]]] = [:]
  private let analyzer: TextAnalyzer
  private let columns: [String]
  private let weights: [Double]

  /// An empty index; a column without a weight has 1.
  package init(columns: [String], options: TextAnalysisOptions, weights: [Double] = []) throws {
    analyzer = try TextAnalyzer(options)
    self.columns = columns
    self.weights = columns.indices.map { $0 < weights.count ? weights[$0] : 1 }
  }

  /// Puts a document's texts, one a column, in place of those that it had.
  package mutating func set(_ id: String, _ texts: [String]) {
    let terms = texts.map { text in
      var terms: [[UInt8]] = []
      var text = text
      text.withUTF8 { analyzer.analyze(UnsafeRawBufferPointer($0)) { term, _ in terms.append(Array(term)) } }
      return terms
    }
    documents[id] = terms.allSatisfy(\.isEmpty) ? nil : terms
  }

  /// Takes a document out.
  package mutating func remove(_ id: String) { documents[id] = nil }

  /// The documents that match, the highest ranks first and equal ones by their IDs.
  package func search(_ text: String) throws -> [Result] {
    try search(MatchQuery(parsing: text, columns: columns, analyzer: analyzer))
  }

  /// The documents that match, the highest ranks first and equal ones by their IDs.
  package func search(_ query: MatchQuery) -> [Result] {
    guard let expression = query.expression else { return [] }
    let statistics = query.rankedPhrases.map { inverseFrequency($0) }
    let length = documents.values.reduce(0) { $0 + self.length($1) }
    let average = Double(length) / Double(max(documents.count, 1))
    return documents.filter { matches(expression, $0.value) }
      .map { id, terms in
        var rank = 0.0
        for (phrase, inverse) in zip(query.rankedPhrases, statistics) {
          rank += self.rank(phrase, terms, inverse, average)
        }
        return Result(id: id, rank: rank)
      }
      .sorted { $0.rank != $1.rank ? $0.rank > $1.rank : $0.id < $1.id }
  }

  // MARK: Matching

  private func matches(_ expression: MatchExpression, _ document: [[[UInt8]]]) -> Bool {
    switch expression {
    case .phrase(let phrase):
      return document.indices.contains { !starts(phrase, document, $0).isEmpty }
    case .and(let operands): return operands.allSatisfy { matches($0, document) }
    case .or(let operands): return operands.contains { matches($0, document) }
    case .not(let kept, let removed): return matches(kept, document) && !matches(removed, document)
    case .near(let phrases, let distances):
      return document.indices.contains { column in
        isNear(phrases[...], distances[...], document, column, previous: nil)
      }
    }
  }

  /// Tries each occurrence of the first phrase beside the one before it, and goes on with the rest.
  private func isNear(
    _ phrases: ArraySlice<MatchPhrase>, _ distances: ArraySlice<Int>, _ document: [[[UInt8]]], _ column: Int,
    previous: (start: Int, length: Int)?
  ) -> Bool {
    guard let phrase = phrases.first else { return true }
    return starts(phrase, document, column).contains { start in
      var rest = distances
      if let previous, let distance = rest.popFirst() {
        let between =
          start > previous.start
          ? start - (previous.start + previous.length) : previous.start - (start + phrase.terms.count)
        guard between >= 0, between <= distance else { return false }
      }
      return isNear(phrases.dropFirst(), rest, document, column, previous: (start, phrase.terms.count))
    }
  }

  /// Where a phrase begins in a column.
  private func starts(_ phrase: MatchPhrase, _ document: [[[UInt8]]], _ column: Int) -> [Int] {
    guard phrase.column == nil || phrase.column == column else { return [] }
    let terms = document[column]
    return terms.indices.filter { start in
      start + phrase.terms.count <= terms.count
        && phrase.terms.indices.allSatisfy { index in
          let term = phrase.terms[index]
          return (!term.isFirst || start + index == 0) && matches(term, terms[start + index])
        }
    }
  }

  private func matches(_ term: MatchTerm, _ bytes: [UInt8]) -> Bool {
    term.isPrefix ? bytes.starts(with: term.bytes) : bytes == term.bytes
  }

  // MARK: Ranking

  private func length(_ document: [[[UInt8]]]) -> Int { document.reduce(0) { $0 + $1.count } }

  private func inverseFrequency(_ phrase: MatchPhrase) -> Double {
    let count = Double(documents.count)
    return phrase.terms.reduce(0) { sum, term in
      var holders: [[UInt8]: Int] = [:]
      for document in documents.values {
        for distinct in Set(document.flatMap(\.self)) where matches(term, distinct) {
          holders[distinct, default: 0] += 1
        }
      }
      let found = min(count, Double(holders.values.reduce(0, +)))
      return sum + log(1 + (count - found + 0.5) / (found + 0.5))
    }
  }

  private func rank(
    _ phrase: MatchPhrase, _ document: [[[UInt8]]], _ inverse: Double, _ average: Double
  ) -> Double {
    var frequency = 0.0
    for column in document.indices {
      frequency += weights[column] * Double(starts(phrase, document, column).count)
    }
    guard frequency != 0 else { return 0 }
    let norm = 1.2 * (1 - 0.75 + 0.75 * Double(length(document)) / average)
    return inverse * frequency * (1.2 + 1) / (frequency + norm)
  }
}
