import Fleece

/// Weighs the indexes of a database for a query.
struct MangoChooser {
  /// An index with what it is chosen by.
  struct Ranked {
    let index: MangoIndex
    /// The columns that it begins with of which the selector has ranges.
    let prefix: [MangoField]
    /// How many ranges of the selector aren't among them.
    let distance: Int
  }

  private let query: MangoQuery
  /// Those that no filter makes partial, and those that the query names. In a partitioned database, those for queries like this one.
  private let offered: [MangoIndex]
  private let sortNames: [String]

  init(_ query: MangoQuery, _ indexes: [MangoIndex]) {
    self.query = query
    sortNames = query.sort.map(\.name)
    offered = indexes.filter { index in
      guard index.isOfAllDocuments || index.isPartitioned == !query.partition.isEmpty else { return false }
      return index.filter == nil || Self.isNamed(index, query.useIndex)
    }
  }

  func isNamed(_ index: MangoIndex) -> Bool { Self.isNamed(index, query.useIndex) }

  private static func isNamed(_ index: MangoIndex, _ names: [String]) -> Bool {
    guard let design = names.first, index.designID != nil, index.design.utf8.elementsEqual(design.utf8) else {
      return false
    }
    return names.count < 2 || index.name.utf8.elementsEqual(names[1].utf8)
  }

  /// Those that find all documents that the query chooses, in its order.
  private(set) lazy var usable: [MangoIndex] = offered.filter { reason(against: $0) == nil }

  /// Why an index can't be used; nil if it can.
  private func reason(against index: MangoIndex) -> String? {
    if index.isOfAllDocuments {
      guard !query.sort.isEmpty else { return nil }
      let isRequired = query.selector.indexableFields.contains(index.columns[0].field)
      if !isRequired { return "field_mismatch" }
      return canSort(index.columns[...], sortNames[...], seesConstants: false) ? nil : "sort_order_mismatch"
    }
    // The fields of the sort have to be there in any case.
    let required = index.columns.filter { column in
      column.name != "_id" && column.name != "_rev"
        && !sortNames.contains { $0.utf8.elementsEqual(column.name.utf8) }
    }
    if !required.allSatisfy({ query.selector.requires($0.field) }) { return "field_mismatch" }
    return canSort(index.columns[...], sortNames[...], seesConstants: true) ? nil : "sort_order_mismatch"
  }

  /// Whether the order of the columns is that of the sort. Columns before, whose value is always the same, don't matter.
  private func canSort(
    _ columns: ArraySlice<MangoIndex.Column>, _ sort: ArraySlice<String>, seesConstants: Bool
  ) -> Bool {
    guard !sort.isEmpty else { return true }
    let isPrefix =
      columns.count >= sort.count
      && zip(columns, sort).allSatisfy { $0.name.utf8.elementsEqual($1.utf8) }
    if isPrefix { return true }
    guard seesConstants, let first = columns.first,
      !first.name.utf8.elementsEqual(sort[sort.startIndex].utf8), query.selector.isConstant(first.field)
    else { return false }
    return canSort(columns.dropFirst(), sort, seesConstants: true)
  }

  /// The best one comes first.
  func sort(_ indexes: [MangoIndex], by fields: [MangoField]) -> [Ranked] {
    let ranked = indexes.map { index in
      let prefix = index.columns.map(\.field).prefix { field in
        fields.contains { $0.joined.utf8.elementsEqual(field.joined.utf8) }
      }
      return Ranked(index: index, prefix: Array(prefix), distance: fields.count - prefix.count)
    }
    return ranked.sorted { left, right in
      if left.distance != right.distance { return left.distance < right.distance }
      if left.index.columns.count != right.index.columns.count {
        return left.index.columns.count < right.index.columns.count
      }
      return Self.key(left.index).lexicographicallyPrecedes(Self.key(right.index))
    }
  }

  /// What orders indexes by their names.
  static func key(_ index: MangoIndex) -> [UInt8] {
    Array((index.designID ?? "").utf8) + [0] + Array(index.name.utf8)
  }

  // MARK: Explaining

  /// The indexes that weren't chosen, and why not.
  mutating func candidates(_ sorted: [Ranked], filtered: [MangoIndex], all: [MangoIndex]) -> [OrderedJSON] {
    let winner = sorted.first.map { Self.key($0.index) }
    let keys = (usable: Set(usable.map(Self.key)), filtered: Set(filtered.map(Self.key)))
    let offered = Set(self.offered.map(Self.key))
    let unusable = self.offered.contains { !keys.usable.contains(Self.key($0)) }
    let base = max(1, sorted.count)
    let excludedRank = base + (filtered.count > sorted.count ? 1 : 0)
    let unusableRank = excludedRank + (usable.count > filtered.count ? 1 : 0)
    let scopeRank = unusableRank + (unusable ? 1 : 0)
    let isOneElsewhere = all.contains { $0.filter == nil && !offered.contains(Self.key($0)) }
    let partialRank = scopeRank + (isOneElsewhere ? 1 : 0)
    var found: [OrderedJSON] = []
    // In CouchDB's order: from the last name to the first.
    let ordered = all.sorted { Self.key($1).lexicographicallyPrecedes(Self.key($0)) }
    for index in ordered where Self.key(index) != winner {
      let key = Self.key(index)
      let isUsable = keys.usable.contains(key)
      let (reason, rank): (String, Int)
      if let place = sorted.firstIndex(where: { Self.key($0.index) == key }) {
        let columns = sorted[0].index.columns.count
        reason =
          sorted[place].distance > 0
          ? "less_overlap" : index.columns.count > columns ? "too_many_fields" : "alphabetically_comes_after"
        rank = place
      } else if keys.filtered.contains(key) {
        (reason, rank) = ("unfavored_type", base)
      } else if isUsable {
        (reason, rank) = ("excluded_by_user", excludedRank)
      } else if offered.contains(key) {
        (reason, rank) = (self.reason(against: index) ?? "field_mismatch", unusableRank)
      } else if index.filter == nil {
        (reason, rank) = ("scope_mismatch", scopeRank)
      } else {
        (reason, rank) = ("is_partial", partialRank)
      }
      let covering: OrderedJSON = index.isOfAllDocuments ? nil : .scalar(.bool(index.covers(query.fields)))
      found.append([
        "index": index.json,
        "analysis": [
          "usable": .scalar(.bool(isUsable)), "reasons": [["name": .scalar(.string(reason))]],
          "ranking": .scalar(.int(Int64(rank))), "covering": covering,
        ],
      ])
    }
    return found
  }
}
