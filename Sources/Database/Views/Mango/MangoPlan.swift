import Fleece

// Which index a query uses is decided as CouchDB does: of the indexes that can be used, the one with the fewest ranges of the selector
// that it doesn't begin with, then the one with the fewest columns, then the first by its names. The list of all documents is used if no
// index can be.

/// How a query finds its documents.
package struct MangoPlan: Sendable {
  package let query: MangoQuery
  /// What is read; nil, of `_explain` only, if nothing can be.
  package let index: MangoIndex?
  /// The ranges of the index's first columns.
  let ranges: [MangoRange]
  /// Whether no document can be chosen.
  let isEmpty: Bool
  /// What `_explain` says of the other indexes.
  package let candidates: [OrderedJSON]
  /// Whether the database has partitions.
  let isInPartitionedDatabase: Bool

  /// Whether all that is asked for is in the index.
  package var isCovered: Bool { index?.covers(Self.fields(of: query)) ?? false }

  /// The fields of the answer and of the selector; nil for all.
  private static func fields(of query: MangoQuery) -> [String]? {
    query.fields.map { $0 + query.selector.fields.map(\.joined) }
  }

  /// Chooses among the indexes of a database, with the list of all documents. Throws CouchDB's errors if none can be used; with
  /// `explains`, that is a plan, too.
  package init(
    _ query: MangoQuery, _ indexes: [MangoIndex], inPartitionedDatabase: Bool = false, explains: Bool = false
  ) throws {
    guard query.partition.isEmpty || inPartitionedDatabase else {
      throw CouchDBError.query("`partition` parameter is not supported on this db")
    }
    self.query = query
    isInPartitionedDatabase = inPartitionedDatabase
    let collation = try MangoCollation()
    var chooser = MangoChooser(query, indexes)
    let usable = chooser.usable
    guard explains || !usable.isEmpty else {
      let kind = !inPartitionedDatabase ? "" : query.partition.isEmpty ? "global " : "partitioned "
      throw CouchDBError(
        400, "no_usable_index", "No \(kind)index exists for this sort, try indexing by the sort fields.")
    }
    var filtered = usable.filter { chooser.isNamed($0) }
    if query.useIndex.isEmpty { filtered = [] }
    if filtered.isEmpty {
      guard query.allowsFallback || query.useIndex.isEmpty && usable.count > 1 else {
        throw Self.noFallback(query)
      }
      filtered = usable
    }
    let ofType =
      filtered.contains { !$0.isOfAllDocuments } ? filtered.filter { !$0.isOfAllDocuments } : filtered
    var fields = query.selector.indexableFields
    if ofType.first?.isOfAllDocuments ?? false, let id = ofType.first?.columns.first?.field,
      !fields.contains(id)
    {
      fields.append(id)
    }
    let sorted = chooser.sort(ofType, by: fields)
    index = sorted.first?.index
    ranges = (sorted.first?.prefix ?? []).map { query.selector.range(of: $0, collation) }
    isEmpty = Self.isEmpty(query.selector) || ranges.contains { $0.isEmpty }
    candidates = explains ? chooser.candidates(sorted, filtered: filtered, all: indexes) : []
  }

  private static func noFallback(_ query: MangoQuery) -> CouchDBError {
    let reason: String
    switch query.useIndex.count {
    case 0: reason = "You must specify an index with the `use_index` parameter."
    case 1:
      reason =
        "_design/\(query.useIndex[0]) specified by `use_index` could not be found or it is not suitable."
    default:
      reason =
        "_design/\(query.useIndex[0]), \(query.useIndex[1]) specified by `use_index` could not be found or it is not suitable."
    }
    return CouchDBError(400, "invalid_index", reason)
  }

  /// `{"$or": []}` alone chooses nothing, and as a part of another selector everything.
  private static func isEmpty(_ selector: MangoSelector) -> Bool {
    switch selector {
    case .and(let parts), .or(let parts): parts.isEmpty
    default: false
    }
  }

  // MARK: Keys

  /// The JSON of the lowest key: the bounds of the columns as far as there are some.
  var startKey: [JSONValue] {
    var key: [JSONValue] = []
    for range in ranges {
      guard let bound = range.lower else { break }
      key.append(bound.operand.value)
    }
    return key
  }

  /// The values of the highest key. Others may follow behind them.
  var endKey: [JSONValue] {
    var key: [JSONValue] = []
    for range in ranges {
      guard let bound = range.upper else { break }
      key.append(bound.operand.value)
    }
    return key
  }

  /// What a client is told of the choice.
  package func warnings(documents: Int, results: Int) -> [String] {
    var warnings: [String] = []
    if let name = query.useIndex.first, let index {
      let isUsed =
        index.designID != nil && index.design.utf8.elementsEqual(name.utf8)
        && (query.useIndex.count < 2 || index.name.utf8.elementsEqual(query.useIndex[1].utf8))
      if !isUsed {
        warnings.append(
          query.useIndex.count < 2
            ? "_design/\(name) was not used because it does not contain a valid index for this query."
            : "_design/\(name), \(query.useIndex[1]) was not used because it is not a valid index for this query."
        )
      }
    }
    if index?.isOfAllDocuments ?? false {
      warnings.append("No matching index found, create an index to optimize query time.")
    }
    if results == 0 ? documents > 10 : documents > 10 * results {
      warnings.append(
        "The number of documents examined is high in proportion to the number of results returned. Consider adding a more specific index to improve this."
      )
    }
    return warnings
  }
}
