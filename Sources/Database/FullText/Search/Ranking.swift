#if canImport(Glibc)
  import Glibc
#endif

/// Ranks documents by BM25. docs/fulltext.md has the formula.
final class Ranking {
  static let k1 = 1.2
  static let b = 0.75

  private let reader: InvertedIndexReader
  private let leaves: [SearchBuilder.Leaf]
  private let weights: [Double]?
  private let averageLength: Double
  private let highestWeight: Double

  init(_ reader: InvertedIndexReader, _ leaves: [SearchBuilder.Leaf], _ weights: [Double]?) {
    self.reader = reader
    self.leaves = leaves
    self.weights = weights
    averageLength = reader.averageLength
    highestWeight = weights?.max() ?? 1
  }

  /// Whether the columns have different weights.
  var isWeighted: Bool { weights != nil }
  /// Whether more occurrences never make a rank lower: no weight is negative.
  var canPrune: Bool { weights?.allSatisfy { $0 >= 0 } ?? true }

  static func idf(_ documents: Int, of all: Int) -> Double {
    log(1 + (Double(all) - Double(documents) + 0.5) / (Double(documents) + 0.5))
  }

  @inline(__always)
  private func score(_ idf: Double, _ frequency: Double, _ length: UInt32) -> Double {
    let norm = Ranking.k1 * (1 - Ranking.b + Ranking.b * Double(length) / averageLength)
    return idf * frequency * (Ranking.k1 + 1) / (frequency + norm)
  }

  /// Returns the highest contribution of a phrase to a document with at most `frequency` occurrences and at
  /// least `length` tokens.
  func bound(_ leaf: Int, _ frequency: UInt32, _ length: UInt32) -> Double {
    score(leaves[leaf].idf, max(0, highestWeight) * Double(frequency), length)
  }

  /// Returns the contribution of a phrase to its current document.
  func contribution(_ leaf: Int, _ document: UInt32) throws -> Double {
    score(
      leaves[leaf].idf, try leaves[leaf].iterator.frequency(weights), try reader.length(of: document))
  }

  /// Returns the rank of a document. Iterators before the document are moved to it. No iterator may be past
  /// the document if the document has its phrase.
  func rank(of document: UInt32) throws -> Double {
    let length = try reader.length(of: document)
    var rank = 0.0
    for leaf in leaves {
      if leaf.iterator.document < document || document == 0 { try leaf.iterator.advance(to: document) }
      if leaf.iterator.document == document {
        rank += score(leaf.idf, try leaf.iterator.frequency(weights), length)
      }
    }
    return rank
  }
}

/// A heap of the documents with the highest ranks so far. The worst of them is on top.
final class BestDocuments {
  private final class Item {
    let rank: Double
    let document: UInt32
    var id: [UInt8]?

    init(_ rank: Double, _ document: UInt32) {
      self.rank = rank
      self.document = document
    }
  }

  private let count: Int
  private let reader: InvertedIndexReader
  private let identifiers: DocumentIdentifiers
  private var items: [Item] = []
  /// Whether all document numbers are in the order of the IDs.
  private let isSorted: Bool
  private var threshold = -Double.infinity
  /// The approximate memory of an item with its ID, in bytes.
  private static let itemBytes = 160

  init(_ count: Int, _ reader: InvertedIndexReader, _ identifiers: DocumentIdentifiers) {
    self.count = count
    self.reader = reader
    self.identifiers = identifiers
    isSorted = reader.state.sortedDocuments == reader.state.nextDocument
  }

  /// Whether a document that comes later can be among the best if its rank is at most `bound`.
  @inline(__always)
  func canTake(_ bound: Double) -> Bool {
    // Of documents with equal rank, the one with the lower ID is better.
    bound > threshold || (bound == threshold && !isSorted) || items.count < count
  }

  /// Adds a document if it is among the best. Document numbers must ascend.
  @inline(__always)
  func offer(_ document: UInt32, _ rank: Double) throws {
    if items.count == count, rank < threshold { return }
    try take(Item(rank, document))
  }

  private func take(_ item: Item) throws {
    if items.count < count {
      items.append(item)
      try reader.take(BestDocuments.itemBytes)
      var child = items.count - 1
      while child > 0 {
        let parent = (child - 1) / 2
        guard try precedes(items[parent], items[child]) else { break }
        items.swapAt(parent, child)
        child = parent
      }
    } else {
      guard try precedes(item, items[0]) else { return }
      items[0] = item
      var parent = 0
      while true {
        var worst = parent
        for child in [2 * parent + 1, 2 * parent + 2] where child < items.count {
          if try precedes(items[worst], items[child]) { worst = child }
        }
        guard worst != parent else { break }
        items.swapAt(parent, worst)
        parent = worst
      }
    }
    if items.count == count { threshold = items[0].rank }
  }

  /// Whether a document comes before another one in the result.
  private func precedes(_ left: Item, _ right: Item) throws -> Bool {
    if left.rank != right.rank { return left.rank > right.rank }
    if isSorted || max(left.document, right.document) < reader.state.sortedDocuments {
      return left.document < right.document
    }
    return try id(left).lexicographicallyPrecedes(try id(right))
  }

  private func id(_ item: Item) throws -> [UInt8] {
    if let id = item.id { return id }
    let id = [UInt8](try identifiers.id(of: item.document, in: reader))
    item.id = id
    return id
  }

  /// Calls `body` with each document, the best first, until `body` returns false.
  func forEach(_ body: (RawSpan, Double) throws -> Bool) throws {
    // Reading IDs is cheapest in the order of the numbers.
    items.sort { $0.document < $1.document }
    for item in items { _ = try id(item) }
    items.sort {
      $0.rank != $1.rank
        ? $0.rank > $1.rank : ($0.id ?? []).lexicographicallyPrecedes($1.id ?? [])
    }
    for item in items {
      let id = item.id ?? []
      guard try body(id.span.bytes, item.rank) else { return }
    }
  }
}
