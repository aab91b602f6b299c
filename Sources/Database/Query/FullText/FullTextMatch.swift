import Documents
import Fleece
import FullText
import Storage

/// The results of a MATCH in one run of a query, on the snapshot of the run. Use it from one thread at a
/// time.
final class FullTextMatch {
  let compiled: CompiledMatch
  private let snapshot: DocumentSnapshot
  /// The rank of the current row, when rows come from this MATCH.
  @exclusivity(unchecked) var rank = 0.0
  private var parsed: MatchQuery??
  private var found: MatchedDocuments?
  private var rows: FoundDocuments?

  init(_ compiled: CompiledMatch, _ snapshot: DocumentSnapshot) {
    self.compiled = compiled
    self.snapshot = snapshot
  }

  /// The parsed query. Nil when the text is null or missing.
  func query(_ context: EvaluationContext) throws -> MatchQuery? {
    if let query = compiled.query { return query }
    if let parsed { return parsed }
    let value = compiled.text.evaluate(context)
    try context.check()
    var query: MatchQuery?
    switch value {
    case .string(let text): query = try compiled.index.query(text.string, compiled.match.index, in: nil)
    case .missing, .null: break
    default:
      throw QueryError(
        .evaluation,
        "the text of MATCH(\(compiled.index.record.name), …) must be a string, not of type"
          + " \(value.type.name)")
    }
    parsed = .some(query)
    return query
  }

  /// A search on the snapshot. Nil when the text is null or missing.
  func search(_ context: EvaluationContext) throws -> MatchSearch? {
    guard let query = try query(context) else { return nil }
    let reader = try compiled.index.reader(in: try snapshot.storage, context.cancellation, context.budget)
    return try MatchSearch(query, in: reader, weights: compiled.index.definition.weights)
  }

  /// All documents that it finds, in the order of the index. They are collected once, for a step that repeats
  /// them for each row of the previous steps. Ranks are included with `isRanked`.
  func rows(_ context: EvaluationContext, isRanked: Bool) throws -> FoundDocuments {
    if let rows { return rows }
    let found = FoundDocuments(context.budget)
    if let search = try search(context) {
      try snapshot.withoutWrites {
        if isRanked {
          try search.forEachRanked { id, rank in
            try found.append(id, rank)
            return true
          }
        } else {
          try search.forEach { id in
            try found.append(id, nil)
            return true
          }
        }
      }
    }
    rows = found
    return found
  }

  /// All documents that it finds, for rows that come from elsewhere.
  func documents(_ context: EvaluationContext) throws -> MatchedDocuments {
    if let found { return found }
    let documents = MatchedDocuments(context.budget)
    if let search = try search(context) {
      try snapshot.withoutWrites {
        try search.forEachRanked { id, rank in
          try documents.insert(id, rank)
          return true
        }
      }
    }
    found = documents
    return documents
  }
}

extension FullTextIndexInfo {
  /// A reader whose searches can be cancelled, and whose memory counts towards a budget.
  func reader(
    in transaction: any ReadTransaction, _ cancellation: QueryCancellation, _ budget: QueryMemoryBudget
  ) throws -> InvertedIndexReader {
    let reader = try reader(in: transaction)
    let memory = SearchMemory(budget)
    reader.check = { try cancellation.check() }
    reader.take = { try memory.take($0) }
    return reader
  }
}

/// The memory that a search has taken from a budget. It is given back when the search ends.
private final class SearchMemory {
  private let budget: QueryMemoryBudget
  private var bytes = 0

  init(_ budget: QueryMemoryBudget) { self.budget = budget }

  deinit { budget.giveBack(bytes) }

  /// Takes more memory, in bytes.
  ///
  /// - Throws: `memoryLimit`.
  func take(_ more: Int) throws {
    bytes += more
    budget.take(more)
    try budget.check(.match)
  }
}

/// A list of document IDs with their ranks, in order.
final class FoundDocuments {
  private let arena: EvaluationArena
  private(set) var ids: [TextSlice] = []
  /// The ranks: one for each ID, or none at all.
  private(set) var ranks: [Double] = []
  private let budget: QueryMemoryBudget
  private static let documentBytes = MemoryLayout<TextSlice>.stride + MemoryLayout<Double>.stride

  init(_ budget: QueryMemoryBudget) {
    self.budget = budget
    arena = EvaluationArena(capacity: 4_096, budget)
  }

  deinit { budget.giveBack(ids.count * Self.documentBytes) }

  /// Adds a document. Its ID is copied.
  ///
  /// - Throws: `memoryLimit`.
  func append(_ id: RawSpan, _ rank: Double?) throws {
    ids.append(id.withUnsafeBytes { arena.copy(TextSlice($0)) })
    if let rank { ranks.append(rank) }
    budget.take(Self.documentBytes)
    try budget.check(.match)
  }
}

/// The ranks of documents, by document ID.
final class MatchedDocuments {
  private let ids: IdentifierSet
  private var ranks: [Double] = []
  private let budget: QueryMemoryBudget

  init(_ budget: QueryMemoryBudget) {
    self.budget = budget
    ids = IdentifierSet(budget, .match)
  }

  deinit { budget.giveBack(ranks.count * MemoryLayout<Double>.stride) }

  /// Adds an ID, which must not be in the table yet.
  ///
  /// - Throws: `memoryLimit`.
  func insert(_ id: RawSpan, _ rank: Double) throws {
    budget.take(MemoryLayout<Double>.stride)
    ranks.append(rank)
    try id.withUnsafeBytes { _ = try ids.insert($0) }
  }

  /// The rank of a document. Nil when the document wasn't found.
  func rank(of id: TextSlice) -> Double? { ids.number(of: id).map { ranks[$0] } }
}
