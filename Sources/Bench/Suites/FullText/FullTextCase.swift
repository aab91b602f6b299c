/// A kind of query of the suite. The words are chosen from the texts by the number of documents that contain
/// them, so each data set has its own queries.
enum FullTextCase: String, CaseIterable, Sendable {
  case word, and, or, phrase, prefix, near
  /// The best 20 documents for one word.
  case ranked
  /// The best 20 documents for several words.
  case rankedOr = "ranked-or"

  /// A query, in our language and in FTS5's.
  struct Asked: Sendable {
    var ours: String
    var fts5: String

    init(_ text: String) {
      ours = text
      fts5 = text
    }

    init(near left: String, _ right: String, _ distance: Int) {
      ours = "\(left) NEAR/\(distance) \(right)"
      fts5 = "NEAR(\(left) \(right), \(distance))"
    }
  }

  var summary: String {
    switch self {
    case .word: "all documents with a word"
    case .and: "all documents with two words"
    case .or: "all documents with either word"
    case .phrase: "all documents with two words next to each other"
    case .prefix: "all documents with a word that begins so"
    case .near: "all documents with two words at most 5 words apart"
    case .ranked: "the 20 documents of the highest rank, one word"
    case .rankedOr: "the 20 documents of the highest rank, three words joined by OR"
    }
  }

  /// Whether the query returns only the best 20 documents.
  var isRanked: Bool { self == .ranked || self == .rankedOr }
  /// The number of times that a run makes each query.
  var repeats: Int { 5 }

  /// Chooses the queries, with words that are in a quarter, a tenth, a thirtieth and a hundredth of the
  /// documents.
  static func choose(_ documents: [TextDocuments.Document]) -> [FullTextCase: [Asked]] {
    var words: [Substring: Int] = [:]
    var pairs: [String: Int] = [:]
    for document in documents {
      var seenWords: Set<Substring> = []
      var seenPairs: Set<String> = []
      for text in document.texts {
        var last: Substring?
        for piece in text.split(separator: " ") {
          guard piece.utf8.count >= 3, piece.utf8.allSatisfy({ $0 &- 0x61 < 26 }) else {
            last = nil
            continue
          }
          seenWords.insert(piece)
          // FTS5 counts two words with the same stem as near each other.
          if let last, last.prefix(3) != piece.prefix(3) { seenPairs.insert("\(last) \(piece)") }
          last = piece
        }
      }
      for word in seenWords { words[word, default: 0] += 1 }
      for pair in seenPairs { pairs[pair, default: 0] += 1 }
    }

    // The words or pairs whose share of the documents is nearest to each of `shares`.
    func nearest(_ counts: [String: Int], _ shares: [Double], each: Int) -> [String] {
      shares.flatMap { share -> [String] in
        let asked = share * Double(documents.count)
        return counts.sorted {
          (abs(Double($0.value) - asked), $0.key) < (abs(Double($1.value) - asked), $1.key)
        }.prefix(each).map(\.key)
      }
    }
    let long = words.reduce(into: [String: Int]()) {
      if $1.key.utf8.count >= 4 { $0[String($1.key)] = $1.value }
    }
    let chosen = nearest(long, [0.25, 0.1, 0.033, 0.01], each: 3)
    let phrases = nearest(pairs, [0.2, 0.05, 0.02, 0.005], each: 3)
    guard chosen.count == 12, phrases.count == 12 else { return [:] }
    let twos = (0..<6).map { (chosen[$0], chosen[($0 * 5 + 4) % 12]) }
    return [
      .word: chosen.map { Asked($0) },
      .and: twos.map { Asked("\($0) AND \($1)") },
      .or: twos.map { Asked("\($0) OR \($1)") },
      .phrase: phrases.map { Asked("\"\($0)\"") },
      .prefix: chosen.map { Asked("\($0.prefix(3))*") },
      .near: phrases.map { pair in
        let words = pair.split(separator: " ").map(String.init)
        return Asked(near: words[1], words[0], 5)
      },
      .ranked: chosen.map { Asked($0) },
      .rankedOr: (0..<6).map { Asked("\(chosen[$0]) OR \(chosen[$0 + 3]) OR \(chosen[$0 + 6])") },
    ]
  }
}
