import Storage

/// A readable description of how a query's rows are found. It is a tree with the last operation at the top.
public struct QueryExplanation: Sendable, CustomStringConvertible {
  /// The measurements of a run.
  struct Measured: Sendable {
    var steps: [QueryExecution.StepCounts]
    var rows: Int
    var nanoseconds: UInt64
    /// What went to temporary files, in bytes.
    var fileBytes: Int
  }

  /// The lines of the tree.
  public let lines: [String]

  /// The tree as text.
  public var description: String { lines.joined(separator: "\n") }

  init(_ compiled: CompiledQuery, _ measured: Measured?) {
    let plan = compiled.plan
    var lines: [String] = []
    func add(_ text: String) {
      lines.append(lines.isEmpty ? text : String(repeating: "   ", count: lines.count - 1) + "└─ " + text)
    }
    var output = "Project " + plan.query.columns.map(\.name.string).joined(separator: ", ")
    if let measured {
      let files = measured.fileBytes > 0 ? ", temporary files of \(measured.fileBytes) bytes" : ""
      output += " (rows \(measured.rows), \(QueryExplanation.time(measured.nanoseconds))\(files))"
    }
    add(output)
    if plan.query.limit != nil || plan.query.offset != nil {
      let limit = plan.query.limit.map { "Limit \($0.explained)" } ?? "No limit"
      add(limit + (plan.query.offset.map { " after \($0.explained)" } ?? ""))
    }
    if !plan.query.orderBy.isEmpty, !plan.isOrdered {
      let terms = plan.query.orderBy.map { $0.expression.explained + ($0.isDescending ? " DESC" : "") }
      let isTop = plan.query.limit != nil
      add((isTop ? "Top by " : "Sort by ") + terms.joined(separator: ", ") + (isTop ? ", in a heap" : ""))
    }
    if plan.query.isDistinct { add("Distinct rows, by hash") }
    if let windows = compiled.windows {
      var names: [String] = []
      for expression in plan.query.columns.map(\.expression) + plan.query.orderBy.map(\.expression) {
        expression.collectWindowTexts(into: &names)
      }
      add(
        "Window " + names.joined(separator: ", ")
          + (windows.isStreaming ? ", as rows come" : ", over kept rows"))
    }
    if let having = plan.query.having { add("Filter groups: \(having.explained)") }
    switch plan.grouping {
    case .documentCount: add("Count of all documents, which is known")
    case .hash, .streaming:
      let keys = (plan.query.groupBy ?? []).map(\.explained).joined(separator: ", ")
      add(
        keys.isEmpty
          ? "Aggregate all rows"
          : "Group by \(keys)" + (plan.isStreaming ? ", rows of a group in a row" : ", by hash"))
    case nil: break
    }
    if !plan.constantConditions.isEmpty {
      add("Only if " + plan.constantConditions.map(\.explained).joined(separator: " AND "))
    }
    for (number, step) in plan.steps.enumerated().reversed() {
      for line in step.explained(isFirst: number == 0, plan) { add(line) }
      var facts: [String] = ["estimated rows \(Int(step.estimatedRows.rounded()))"]
      if let measured {
        let counts = measured.steps[number]
        let after =
          measured.steps.indices.contains(number + 1) ? measured.steps[number + 1].nanoseconds : 0
        facts.append("looked at \(counts.examined), rows \(counts.passed)")
        facts.append(QueryExplanation.time(counts.nanoseconds &- min(counts.nanoseconds, after)))
      }
      lines[lines.count - 1] += " (" + facts.joined(separator: ", ") + ")"
    }
    for (number, subquery) in compiled.subqueries.enumerated() {
      lines += subquery.explained(number)
    }
    self.lines = lines
  }

  private static func time(_ nanoseconds: UInt64) -> String {
    let micros = Double(nanoseconds) / 1000
    func rounded(_ value: Double) -> String {
      let tenths = Int((value * 10).rounded())
      return tenths >= 1000 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }
    return micros < 1000 ? "\(rounded(micros)) µs" : "\(rounded(micros / 1000)) ms"
  }
}

extension QueryPlan {
  fileprivate var isStreaming: Bool { if case .streaming? = grouping { true } else { false } }
}

extension QueryExpression {
  /// Collects the texts of the calls over windows, each once.
  fileprivate func collectWindowTexts(into texts: inout [String]) {
    guard case .call(let call) = self, call.window != nil else {
      return forEachPart { $0.collectWindowTexts(into: &texts) }
    }
    if !texts.contains(explained) { texts.append(explained) }
  }

  /// The readable text of the expression.
  var explained: String {
    substitutingInternalNames.description
  }

  private var substitutingInternalNames: QueryExpression {
    switch self {
    case .property(var path):
      guard case .name(let name)? = path.steps.first else { return self }
      if InternalName.isSubquery(name) { return .property(PropertyReference([.name("EXISTS")])) }
      path.steps[0] = .name(InternalName.shown(name))
      return .property(path)
    case .parameter(let name) where InternalName.isCapture(name):
      return .property(PropertyReference([.name(ByteString(name.bytes.dropFirst()))]))
    case .call(let call):
      guard let number = InternalName.subqueryNumber(call.name) else { break }
      return .call(FunctionCall("QUERY\(number + 1)", call.arguments.map(\.substitutingInternalNames)))
    default: break
    }
    return mappingParts(\.substitutingInternalNames)
  }
}

extension InternalName {
  /// The name as plans show it.
  fileprivate static func shown(_ name: ByteString) -> ByteString {
    switch name {
    case combination: "rows"
    case groupingSet: "grouping_set"
    default: name
    }
  }
}

extension PlanStep {
  fileprivate func explained(isFirst: Bool, _ plan: QueryPlan) -> [String] {
    var lines: [String] = []
    if !outerFilter.isEmpty {
      lines.append("Filter: " + outerFilter.map(\.explained).joined(separator: " AND "))
    }
    var filterText = ""
    if !filter.isEmpty { filterText = ", filter: " + filter.map(\.explained).joined(separator: " AND ") }
    let join =
      switch kind {
      case _ where isFirst: ""
      case .leftOuter: "Left outer join, "
      case .rightOuter: "Right outer join, "
      case .fullOuter: "Full outer join, "
      case .inner, .cross: "Join, "
      }
    let record = source.isDocuments && !needsRecord && !access.isCovering ? ", IDs only" : ""
    lines.append(join + access.explained(InternalName.shown(source.name)) + record + filterText)
    return lines
  }
}

extension AccessPath {
  /// Whether an index covers the access.
  var isCovering: Bool { if case .index(let access) = self { access.isCovering } else { false } }

  fileprivate func explained(_ source: ByteString) -> String {
    switch self {
    case .documents(nil): return "Scan of all documents as \(source)"
    case .documents(let direction?):
      return "Scan of all documents as \(source) by ID\(direction == .backward ? ", descending" : "")"
    case .identifiers(let ranges, let direction):
      let isLookup = ranges.allSatisfy { $0.first?.isEquality ?? false }
      let text = ranges.map { $0.map { $0.explained("META(\(source)).id") }.joined() }.joined(
        separator: " OR ")
      return (isLookup ? "Document by ID as \(source): " : "Documents by ranges of ID as \(source): ") + text
        + (direction == .backward ? ", descending" : "")
    case .index(let access):
      let index = access.index
      let ranges = access.ranges.map { list in
        zip(list, index.keys).map { $0.explained($1.explained) }.joined(separator: ", ")
      }
      let text = ranges.allSatisfy(\.isEmpty) ? "all of it" : ranges.joined(separator: " OR ")
      return "Index \(index.name) as \(source): \(text)"
        + (access.direction == .backward ? ", descending" : "") + (access.isCovering ? ", covering" : "")
        + (access.entryFilter.isEmpty
          ? "" : ", entries with " + access.entryFilter.map(\.explained).joined(separator: " AND "))
    case .union(let paths):
      return "Union by ID of [" + paths.map { $0.explained(source) }.joined(separator: "] and [") + "]"
    case .hash(let build, let filter, let keys, let probes):
      let on = zip(keys, probes).map { "\($0.explained) = \($1.explained)" }.joined(separator: " AND ")
      return "by hash on \(on), of [" + build.explained(source)
        + (filter.isEmpty ? "" : ", filter: " + filter.map(\.explained).joined(separator: " AND ")) + "]"
    case .fullText(let access): return access.explained(source)
    case .unnest(let array): return "Unnest \(array.explained) as \(source)"
    case .items(let items):
      return "Rows of \(items.explained) as \(source)"
    case .value(let value): return "Value \(value.explained) as \(source)"
    }
  }
}

extension KeyCondition {
  fileprivate func explained(_ key: String) -> String {
    switch self {
    case .equal(let value): "\(key) = \(value.explained)"
    case .anyOf(let values): "\(key) IN \(values.explained)"
    case .range(let lower, let upper):
      [
        lower.map { "\(key) \($0.isInclusive ? ">=" : ">") \($0.value.explained)" },
        upper.map { "\(key) \($0.isInclusive ? "<=" : "<") \($0.value.explained)" },
      ].compactMap { $0 }.joined(separator: " AND ")
    case .like(let pattern): "\(key) LIKE \(pattern.explained), by its beginning"
    case .isNull: "\(key) IS NULL"
    case .isMissing: "\(key) IS MISSING"
    case .isValued: "\(key) IS VALUED"
    case .isThere: "\(key) IS NOT MISSING"
    }
  }
}
