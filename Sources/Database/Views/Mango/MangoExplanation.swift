import Fleece

extension MangoPlan {
  /// The answer to `_explain`.
  package func explanation(database: String) -> OrderedJSON {
    let fields = OrderedJSON.array((query.fields ?? []).map { .scalar(.string($0)) })
    var members: [OrderedJSON.Member] = [
      .init(name: "dbname", value: .scalar(.string(database))),
      .init(name: "index", value: index?.json ?? nil),
      .init(name: "partitioned", value: .scalar(.bool(isInPartitionedDatabase))),
      .init(name: "selector", value: query.selector.json),
      .init(name: "opts", value: options(fields)),
      .init(name: "limit", value: .scalar(.int(Int64(query.limit)))),
      .init(name: "skip", value: .scalar(.int(Int64(query.skip)))),
      .init(name: "fields", value: fields),
      .init(name: "index_candidates", value: .array(candidates)),
      .init(name: "selector_hints", value: [hints]),
    ]
    if index != nil {
      members.append(.init(name: "mrargs", value: arguments))
      members.append(.init(name: "covering", value: .scalar(.bool(isCovered))))
    }
    return .object(members)
  }

  private func options(_ fields: OrderedJSON) -> OrderedJSON {
    [
      "use_index": .array(query.useIndex.map { .scalar(.string($0)) }),
      "bookmark": .scalar(.string(query.bookmarkText ?? "nil")),
      "limit": .scalar(.int(Int64(query.limit))), "skip": .scalar(.int(Int64(query.skip))),
      "sort": .object(query.sort.map { .init(name: $0.name, value: .scalar(.string($0.direction))) }),
      "fields": fields, "partition": .scalar(.string(query.partition)),
      "r": .scalar(.int(query.readQuorum)), "conflicts": .scalar(.bool(query.includesConflicts)),
      "stale": query.allowsStale ? "ok" : false, "update": .scalar(.bool(query.updates)),
      "stable": .scalar(.bool(query.isStable)),
      "execution_stats": .scalar(.bool(query.includesStatistics)),
      "allow_fallback": .scalar(.bool(query.allowsFallback)),
    ]
  }

  /// Which fields of the selector an index may be used for.
  private var hints: OrderedJSON {
    let indexable = query.selector.indexableFields.map(\.joined).sortedByBytes()
    var others: [String] = []
    for name in query.selector.fields.map(\.joined).sortedByBytes() {
      guard !(indexable + others).contains(where: { $0.utf8.elementsEqual(name.utf8) }) else { continue }
      others.append(name)
    }
    return [
      "type": "json", "indexable_fields": .array(indexable.map { .scalar(.string($0)) }),
      "unindexable_fields": .array(others.map { .scalar(.string($0)) }),
    ]
  }

  private var arguments: OrderedJSON {
    var (start, end) = (startJSON, endJSON)
    if isEmpty { (start, end) = (nil, nil) }
    if query.isDescending { swap(&start, &end) }
    let conflicts: OrderedJSON = query.includesConflicts ? true : "undefined"
    return [
      "include_docs": .scalar(.bool(query.readQuorum == 1 && !isCovered)), "view_type": "map",
      "reduce": false,
      "partition": query.partition.isEmpty ? nil : .scalar(.string(query.partition)), "start_key": start,
      "end_key": end,
      "direction": query.isDescending ? "rev" : "fwd",
      "stable": .scalar(.bool(query.isStable || query.allowsStale)),
      "update": .scalar(.bool(query.updates && !query.allowsStale)), "conflicts": conflicts,
    ]
  }

  private var startJSON: OrderedJSON {
    let values = startKey.map { OrderedJSON(sorting: $0) }
    guard let index, index.isOfAllDocuments else { return .array(values) }
    // Without any range of IDs, the list begins before all of them.
    let hasRange = query.selector.indexableFields.contains(index.columns[0].field)
    return values.first ?? (hasRange ? "" : nil)
  }

  private var endJSON: OrderedJSON {
    let values = endKey.map { OrderedJSON(sorting: $0) }
    guard index?.isOfAllDocuments ?? false else { return .array(values + ["<MAX>"]) }
    return values.first ?? "<MAX>"
  }
}
