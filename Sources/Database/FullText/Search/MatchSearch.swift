import Storage

/// A search of an index for a match query, with ranking (docs/fulltext.md).
///
/// One thread at a time, within the reader's transaction. Call only one of `forEach`, `forEachRanked` and
/// `forEachBest`, and only once: a second call throws. The bytes of an ID are valid until the closure
/// returns. The closure can use other searches of the same reader.
package final class MatchSearch {
  let reader: InvertedIndexReader
  let root: MatchIterator?
  let ranking: Ranking
  private let plan: RankPlan
  /// The postings of a query that is a single term.
  private let term: TermPostings?
  private let identifiers = DocumentIdentifiers()
  @exclusivity(unchecked) private var isBegun = false

  /// How the best documents are found.
  enum RankPlan {
    /// All terms must match. Blocks whose bound is too low are skipped.
    case allOf([TermIterator])
    /// Any term is enough. Terms with a low contribution are read only for documents that other terms find.
    case anyOf([TermIterator])
    /// Every document is ranked.
    case everything
  }

  /// Creates a search.
  ///
  /// - Parameters:
  ///   - query: a query with the columns of the index.
  ///   - weights: the weight of an occurrence in each column. Nil means 1 for each column.
  /// - Throws: `StorageError` if the index can't be read.
  package init(_ query: MatchQuery, in reader: InvertedIndexReader, weights: [Double]? = nil) throws {
    self.reader = reader
    var builder = SearchBuilder(reader)
    let plain = weights.flatMap { $0.allSatisfy { $0 == 1 } ? nil : $0 }
    guard let expression = query.expression else {
      root = nil
      ranking = Ranking(reader, [], plain)
      plan = .everything
      term = nil
      return
    }
    let root = try builder.iterator(expression)
    self.root = root
    term = (root as? TermIterator)?.plain
    var leaves = builder.leaves
    let shares = SearchBuilder.sharesLeaves(expression)
    if !shares {
      // Some parts of the query can be past a document that they don't match. Ranking then uses its own
      // iterators.
      var own = SearchBuilder(reader)
      leaves = []
      for phrase in expression.rankedPhrases {
        _ = try own.iterator(.phrase(phrase))
        leaves = own.leaves
      }
    }
    ranking = Ranking(reader, leaves, plain)
    let terms = leaves.compactMap { $0.iterator as? TermIterator }
    var plan = RankPlan.everything
    if shares, terms.count == leaves.count, terms.allSatisfy({ $0.plain != nil }), ranking.canPrune {
      switch expression {
      case .phrase: plan = .allOf(terms)
      case .and(let parts) where parts.allSatisfy(\.isPhrase): plan = .allOf(terms)
      case .or(let parts) where parts.allSatisfy(\.isPhrase): plan = .anyOf(terms)
      default: break
      }
    }
    self.plan = plan
  }

  /// The approximate number of matching documents.
  package var estimate: Int { min(root?.estimate ?? 0, reader.documentCount) }

  private func begin() throws {
    guard !isBegun else {
      throw StorageError(.invalidArgument, "a full-text search can be read only once; make another one")
    }
    isBegun = true
  }

  /// Calls `body` with the ID of each matching document until `body` returns false. The order is that of the
  /// index's document numbers.
  ///
  /// - Throws: `StorageError` with the code `damaged`, `invalidArgument` for a second call, and errors of
  ///   `body`.
  package func forEach(_ body: (_ documentID: RawSpan) throws -> Bool) throws {
    try begin()
    guard let root else { return }
    if let term {
      // A single word needs no other iterator.
      try term.advance(to: 0)
      while term.document != PostingSource.end {
        guard try body(try identifiers.id(of: term.document, in: reader).bytes) else { return }
        try term.next()
      }
      return
    }
    try root.advance(to: 0)
    while root.document != PostingSource.end {
      guard try body(try identifiers.id(of: root.document, in: reader).bytes) else { return }
      try root.next()
    }
  }

  /// Calls `body` with the ID and the rank of each matching document until `body` returns false. The order is
  /// that of the index's document numbers.
  package func forEachRanked(_ body: (_ documentID: RawSpan, _ rank: Double) throws -> Bool) throws {
    try begin()
    guard let root else { return }
    try root.advance(to: 0)
    while root.document != PostingSource.end {
      let rank = try ranking.rank(of: root.document)
      guard try body(try identifiers.id(of: root.document, in: reader).bytes, rank) else { return }
      try root.next()
    }
  }

  /// Calls `body` with the `count` documents of the highest rank until `body` returns false.
  ///
  /// The best document is first. Documents of equal rank are ordered by ID. Documents that can't be among the
  /// best may be skipped without ranking.
  package func forEachBest(
    _ count: Int, _ body: (_ documentID: RawSpan, _ rank: Double) throws -> Bool
  ) throws {
    try begin()
    guard let root, count > 0 else { return }
    let best = BestDocuments(count, reader, identifiers)
    switch plan {
    case .allOf(let terms): try collect(allOf: terms, root, best)
    case .anyOf(let terms): try collect(anyOf: terms, best)
    case .everything:
      try root.advance(to: 0)
      while root.document != PostingSource.end {
        try best.offer(root.document, try ranking.rank(of: root.document))
        try root.next()
      }
    }
    try best.forEach(body)
  }

  // MARK: Best documents

  private func collect(allOf terms: [TermIterator], _ root: MatchIterator, _ best: BestDocuments) throws {
    let postings = terms.compactMap(\.plain)
    var target: UInt32 = 0
    // All documents up to this number are in the blocks whose bound was good enough.
    var upper: UInt32 = 0
    var isBounded = false
    while true {
      if !isBounded || target > upper {
        var bound = 0.0
        upper = .max
        for (index, term) in postings.enumerated() {
          guard try term.seekBlock(target) else { return }
          upper = min(upper, term.blockUpper)
          bound += ranking.bound(index, term.blockMaximum, term.blockShortest)
        }
        isBounded = true
        if !best.canTake(ranking.isWeighted ? bound * (1 + 1e-9) : bound) {
          guard upper < InvertedIndexFormat.lastDocument else { return }
          target = upper + 1
          continue
        }
      }
      try root.advance(to: target)
      let document = root.document
      if document == PostingSource.end { return }
      if document > upper {
        target = document
        continue
      }
      try best.offer(document, try ranking.rank(of: document))
      target = document + 1
    }
  }

  private func collect(anyOf terms: [TermIterator], _ best: BestDocuments) throws {
    let bounds = terms.indices.map { ranking.bound($0, .max, 0) }
    // The terms ordered by their highest possible contribution, lowest first. The first `spared` terms
    // together can't reach the required rank.
    let order = terms.indices.sorted { bounds[$0] < bounds[$1] }
    let sums = order.reduce(into: [0.0]) { $0.append($0[$0.count - 1] + bounds[$1]) }
    var spared = 0
    for term in terms { try term.advance(to: 0) }
    while true {
      while spared < order.count, !best.canTake(sums[spared + 1] * (1 + 1e-9)) { spared += 1 }
      var document = PostingSource.end
      for place in order[spared...] { document = min(document, terms[place].document) }
      if document == PostingSource.end { return }
      var known = sums[spared]
      for place in order[spared...] where terms[place].document == document {
        known += try ranking.contribution(place, document)
      }
      if best.canTake(known * (1 + 1e-9)) {
        for place in order[..<spared] where terms[place].document < document {
          try terms[place].advance(to: document)
        }
        try best.offer(document, try ranking.rank(of: document))
      }
      for place in order[spared...] where terms[place].document == document { try terms[place].next() }
    }
  }
}

extension MatchExpression {
  fileprivate var isPhrase: Bool { if case .phrase = self { true } else { false } }
}

/// Creates the iterators for the parts of a query.
struct SearchBuilder {
  /// A phrase that counts for the rank.
  struct Leaf {
    var iterator: OccurrenceIterator
    var idf: Double
  }

  private let reader: InvertedIndexReader
  private(set) var leaves: [Leaf] = []

  init(_ reader: InvertedIndexReader) { self.reader = reader }

  /// Returns whether ranking can use the iterators of the query itself. They must not be past the query's
  /// current document if this document has their phrase.
  static func sharesLeaves(_ expression: MatchExpression) -> Bool {
    switch expression {
    case .phrase, .near: return true
    case .and(let parts): return parts.allSatisfy(sharesLeaves)
    case .not(let kept, _): return sharesLeaves(kept)
    case .or(let parts):
      return parts.allSatisfy {
        switch $0 {
        case .phrase: true
        case .or: sharesLeaves($0)
        default: false
        }
      }
    }
  }

  mutating func iterator(_ expression: MatchExpression) throws -> MatchIterator {
    switch expression {
    case .phrase(let phrase): return try leaf(phrase)
    case .near(let phrases, let distances):
      var iterators: [OccurrenceIterator] = []
      for phrase in phrases { iterators.append(try leaf(phrase)) }
      return NearIterator(iterators, distances: distances)
    case .and(let parts): return AndIterator(try parts.map { try iterator($0) })
    case .or(let parts): return OrIterator(try parts.map { try iterator($0) })
    case .not(let kept, let excluded):
      let first = try iterator(kept)
      // The excluded part doesn't count for the rank.
      var other = SearchBuilder(reader)
      return NotIterator(first, try other.iterator(excluded))
    }
  }

  private mutating func leaf(_ phrase: MatchPhrase) throws -> OccurrenceIterator {
    var sources: [PostingSource] = []
    var idf = 0.0
    var isFound = true
    for term in phrase.terms {
      var documents = 0
      var source: PostingSource?
      try term.bytes.withUnsafeBytes { bytes in
        if term.isPrefix {
          let terms = try reader.postings(ofPrefix: bytes)
          documents = min(reader.documentCount, terms.reduce(0) { $0 + $1.documentCount })
          source = terms.isEmpty ? nil : terms.count == 1 ? terms[0] : PrefixPostings(terms)
        } else if let found = try reader.postings(of: bytes) {
          documents = found.documentCount
          source = found
        }
      }
      idf += Ranking.idf(documents, of: reader.documentCount)
      if let source { sources.append(source) } else { isFound = false }
    }
    let isFirst = phrase.terms.first?.isFirst ?? false
    let iterator: OccurrenceIterator
    if !isFound || sources.isEmpty {
      iterator = OccurrenceIterator()
    } else if sources.count == 1, !isFirst {
      iterator = TermIterator(sources[0], column: phrase.column)
    } else {
      iterator = PhraseIterator(sources, column: phrase.column, isFirst: isFirst)
    }
    leaves.append(Leaf(iterator: iterator, idf: idf))
    return iterator
  }
}
