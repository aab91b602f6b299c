import Query
import TestSupport

// Answers a query over documents in memory, clause by clause as SQL explains itself: all rows, then those that WHERE
// keeps, then groups, HAVING, DISTINCT, ORDER BY. LIMIT and OFFSET are left to who compares.

/// What a query gives.
struct NaiveAnswer {
  /// All rows, before OFFSET and LIMIT: those that ORDER BY doesn't tell apart are one run.
  var runs: [[[JSONValue?]]]
  var offset = 0
  var limit: Int?
  /// How rows are told apart.
  var strictness = KeyStrictness.exact

  /// All rows.
  var rows: [[JSONValue?]] { runs.flatMap { $0 } }
}

/// The answer to a query.
///
/// - Throws: `NaiveError` when there is none.
func naiveAnswer(
  _ query: SelectStatement, _ data: NaiveData, in outer: NaiveRow? = nil
) throws -> NaiveAnswer {
  var start = try naiveStart(query, data, outer)
  if let combination = query.combination { return try naiveSets(combination, query, start) }
  for result in query.results { if let alias = result.alias { start.aliases[alias] = result.expression } }
  query.forEachExpression { expression in
    if case .match(let index, let text) = expression {
      start.matches[IndexReference(index.name, source: nil)] =
        start.matches[
          IndexReference(index.name, source: nil), default: text]
    }
  }
  for (number, name) in query.groupNames { start.aliases[name] = query.groupBy[number] }
  for binding in query.letting { start.aliases[binding.name] = binding.value }
  var rows = try naiveSources(query, start)
  rows = try rows.map { try naiveLets(query, $0) }
  if let condition = query.condition { rows = try rows.filter { try naiveIsTrue(condition, $0) } }
  var answer = NaiveAnswer(runs: [])
  if query.hasAggregates || !query.groupBy.isEmpty {
    rows = try naiveGroups(query, rows, start)
    // Of texts that a COLLATE takes for equal, a key, MIN or MAX may be any.
    answer.strictness = query.contains { $0.isCollated } ? .withoutCase : .byValue
  }
  if query.hasWindows {
    rows = try naiveWindows(query, rows)
    answer.strictness = max(answer.strictness, .byValue)
  }
  if query.isDistinct || query.isApproximate || query.hasQueries {
    answer.strictness = max(answer.strictness, .byValue)
  }
  let folds = try query.orderBy.map { ordering -> Bool in
    guard case .collate(_, let collation) = ordering.expression else { return false }
    var row = start
    row.collation = collation
    return try row.foldsCase
  }
  if query.isDistinct {
    let columns =
      query.results.map(\.expression)
      + query.results.compactMap { $0.alias.map { .property(PropertyReference([.name($0)])) } }
    guard query.orderBy.allSatisfy({ columns.contains($0.expression) }) else {
      throw NaiveError.open("ORDER BY of a value that DISTINCT doesn't look at")
    }
  }
  var results = try rows.map { row in
    (
      columns: try query.results.map { try naive($0.expression, row) },
      keys: try query.orderBy.map { try naive($0.expression, row) }
    )
  }
  if query.isDistinct {
    var seen: Set<ByteString> = []
    results = results.filter { seen.insert(naiveKey($0.columns, .byValue)).inserted }
  }
  func compare(_ a: [JSONValue?], _ b: [JSONValue?]) -> Int {
    for (index, ordering) in query.orderBy.enumerated() {
      if let nulls = ordering.nulls {
        let unknown = [a[index], b[index]].map { $0?.isNull ?? true }
        if unknown[0] != unknown[1] { return (unknown[0] == (nulls == .first)) ? -1 : 1 }
        // Null and missing have an order of their own behind the others.
      }
      let order = naiveCompare(a[index], b[index], foldsCase: folds[index])
      if order != 0 { return ordering.isDescending ? -order : order }
    }
    return 0
  }
  if !query.excluded.isEmpty {
    let kept = try naiveExclusion(query)
    results = try results.map { result in (try kept(result.columns), result.keys) }
  }
  results.sort { compare($0.keys, $1.keys) < 0 }
  for (index, result) in results.enumerated() {
    if index > 0, compare(results[index - 1].keys, result.keys) == 0 {
      answer.runs[answer.runs.count - 1].append(result.columns)
    } else {
      answer.runs.append([result.columns])
    }
  }
  func number(_ expression: QueryExpression) throws -> Int {
    guard let value = try naive(expression, naiveStart(query, data, outer)), let number = value.int else {
      throw NaiveError.unsupported("LIMIT of another type")
    }
    return max(0, Int(number))
  }
  answer.offset = try query.offset.map { try number($0) } ?? 0
  answer.limit = try query.limit.map { try number($0) }
  return answer
}

/// The rows that FROM, JOIN and UNNEST make.
private func naiveSources(_ query: SelectStatement, _ start: NaiveRow) throws -> [NaiveRow] {
  var rows = [start]
  func documents(_ source: DataSource) -> [NaiveDocument] {
    let includesDeleted = query.mentionsDeleted(source.alias ?? source.name)
    return start.data.documents.filter { includesDeleted || !$0.isDeleted }
  }
  func adding(_ document: NaiveDocument?, as name: ByteString, to row: NaiveRow) -> NaiveRow {
    var row = row
    row.add(document, as: name)
    return row
  }
  /// A row for each row of a source.
  func found(_ source: DataSource, _ row: NaiveRow) throws -> [NaiveRow] {
    guard let items = try naiveItems(source, row) else {
      return try documents(source).filter { try naiveHasKey($0, source, row) }
        .map { adding($0, as: source.alias ?? source.name, to: row) }
    }
    return items.map { item in
      var row = row
      row.add(value: item, as: source.alias ?? source.name)
      return row
    }
  }
  if let source = query.source { rows = try found(source, start) }
  for join in query.joins {
    switch join {
    case .join(let kind, let source, let condition):
      let name = source.alias ?? source.name
      let before = rows
      // By their places among the rows of the source.
      var matched: Set<Int> = []
      func missingRow(_ row: NaiveRow) throws -> NaiveRow {
        var row = row
        if try naiveItems(source, row) == nil {
          row.add(nil, as: name)
        } else {
          row.add(value: nil, as: name)
        }
        return row
      }
      rows = try rows.flatMap { row -> [NaiveRow] in
        var row = row
        // Aliases mean nothing in ON.
        row.aliases = [:]
        var matches: [NaiveRow] = []
        for (place, candidate) in try found(source, row).enumerated()
        where try condition.map({ try naiveIsTrue($0, candidate) }) ?? true {
          matched.insert(place)
          matches.append(candidate)
        }
        if matches.isEmpty, kind == .leftOuter || kind == .fullOuter { matches = [try missingRow(row)] }
        return matches.map {
          var row = $0
          row.aliases = start.aliases
          return row
        }
      }
      if kind == .rightOuter || kind == .fullOuter {
        var nothing = start
        for other in query.namesBefore(name) {
          if before.first.map({ $0.documents[other] != nil }) ?? true {
            nothing.add(nil, as: other)
          } else {
            nothing.add(value: nil, as: other)
          }
        }
        for (place, row) in try found(source, nothing).enumerated() where !matched.contains(place) {
          rows.append(row)
        }
      }
    case .nest(let source, let condition, let isLeftOuter):
      let name = source.alias ?? source.name
      rows = try rows.compactMap { row -> NaiveRow? in
        var plain = row
        plain.aliases = [:]
        let matches = try found(source, plain).filter { try naiveIsTrue(condition, $0) }
          .map { $0.values[name] ?? missing }
        if matches.isEmpty, !isLeftOuter { return nil }
        var row = row
        row.values[name] = .some(.array(matches.map { $0 ?? .null }))
        return row
      }
    case .unnest(let array, let name, let isLeftOuter):
      rows = try rows.flatMap { row -> [NaiveRow] in
        var plain = row
        plain.aliases = [:]
        let items: [JSONValue?] = try naive(array, plain)?.array ?? []
        return (items.isEmpty && isLeftOuter ? [missing] : items).map { item in
          var row = row
          row.values[name] = .some(item)
          return row
        }
      }
    }
  }
  return rows
}

/// A row for each group that HAVING keeps.
private func naiveGroups(_ query: SelectStatement, _ rows: [NaiveRow], _ start: NaiveRow) throws -> [NaiveRow]
{
  if !query.groupingSets.isEmpty { return try naiveGroupingSets(query, rows, start) }
  var groups: [(key: [JSONValue?], rows: [NaiveRow])] = query.groupBy.isEmpty ? [([], [])] : []
  let folds = try query.groupBy.map { key -> Bool in
    guard case .collate(let plain, let collation) = key else { return false }
    // What is compared inside of the key may have another result in a column, where there is no COLLATE.
    if !plain.parts.isEmpty { throw NaiveError.open("a computed key under a COLLATE") }
    var row = start
    row.collation = collation
    return try row.foldsCase
  }
  var places: [ByteString: Int] = query.groupBy.isEmpty ? [ByteString(""): 0] : [:]
  for row in rows {
    let key = try query.groupBy.map { try naive($0, row) }
    var bytes: [UInt8] = []
    for (value, folds) in zip(key, folds) {
      bytes += naiveKey([value], folds ? .withoutCase : .byValue).bytes
    }
    if let place = places[ByteString(bytes)] {
      groups[place].rows.append(row)
    } else {
      places[ByteString(bytes)] = groups.count
      groups.append((key, [row]))
    }
  }
  let made = groups.map { group in
    var row = group.rows.first ?? start
    row.group = group.rows
    if let name = query.groupArray {
      // An object of the sources for each row, in no order.
      row.values[name] = .some(
        .array(
          group.rows.map { member in
            var object = JSONObject()
            for source in member.sources { object[source.string] = member.values[source] ?? missing }
            return .object(object)
          }))
    }
    for (expression, value) in zip(query.groupBy, group.key) {
      row.keys.append((expression, value))
      if case .collate(let plain, _) = expression { row.keys.append((plain, value)) }
    }
    return row
  }
  // What is computed of a key may differ between values that are equal: 1 and 1.0.
  for expression in query.results.map(\.expression) + query.orderBy.map(\.expression) {
    try checkKeys(expression, query.groupBy, isTop: true)
  }
  // Nor does it tell how a group comes to stand whose values are equal under its COLLATE, and not to ORDER BY.
  let equal = query.groupBy.compactMap { key -> QueryExpression? in
    if case .collate(let plain, _) = key { plain } else { nil }
  }
  for ordering in query.orderBy {
    var expression = ordering.expression
    for result in query.results {
      if let alias = result.alias, expression == .property(PropertyReference([.name(alias)])) {
        expression = result.expression
      }
    }
    if equal.contains(expression) { throw NaiveError.open("ORDER BY of one of a group's texts") }
  }
  return try query.having.map { having in try made.filter { try naiveIsTrue(having, $0) } } ?? made
}

/// The groups by each set in turn. An expression that isn't in the set is null.
private func naiveGroupingSets(
  _ query: SelectStatement, _ rows: [NaiveRow], _ start: NaiveRow
) throws -> [NaiveRow] {
  for expression in query.results.map(\.expression) + query.orderBy.map(\.expression) {
    try checkKeys(expression, query.groupBy, isTop: true)
  }
  var calls: [FunctionCall] = []
  query.forEachExpression { if case .call(let call) = $0, call.name == "GROUPING" { calls.append(call) } }
  let made = try query.groupingSets.flatMap { set -> [NaiveRow] in
    var part = query
    part.groupingSets = []
    part.groupBy = set.map { query.groupBy[$0] }
    part.having = nil
    return try naiveGroups(part, rows, start).map { group in
      var group = group
      for (number, expression) in query.groupBy.enumerated() where !set.contains(number) {
        group.keys.append((expression, .some(.null)))
        if case .collate(let plain, _) = expression { group.keys.append((plain, .some(.null))) }
      }
      for call in calls {
        let bits = call.arguments.map { argument in
          set.contains { query.groupBy[$0].withoutCollation == argument.withoutCollation } ? "0" : "1"
        }
        group.keys.append((.call(call), Int64(bits.joined(), radix: 2).map { .int($0) }))
      }
      return group
    }
  }
  return try query.having.map { having in try made.filter { try naiveIsTrue(having, $0) } } ?? made
}

private func checkKeys(_ expression: QueryExpression, _ keys: [QueryExpression], isTop: Bool) throws {
  if keys.contains(expression) {
    if !isTop, !expression.isConstantLiteral { throw NaiveError.open("what is computed of a group's key") }
    return
  }
  if case .call(let call) = expression,
    ["COUNT", "SUM", "AVG", "MIN", "MAX", "COUNTN", "MEDIAN", "GROUPING", "ARRAY_AGG"].contains(call.name)
      || call.name.hasPrefix("STDDEV")
      || call.name.hasPrefix("VARIANCE")
  {
    // Of 1 and 1.0 either can be the least.
    if !isTop, call.name == "MIN" || call.name == "MAX" {
      throw NaiveError.open("what is computed of MIN or MAX")
    }
    return
  }
  if case .collate(let inner, _) = expression { return try checkKeys(inner, keys, isTop: isTop) }
  for part in expression.parts { try checkKeys(part, keys, isTop: false) }
}

/// What EXCLUDE leaves of the columns of a row.
private func naiveExclusion(_ query: SelectStatement) throws -> ([JSONValue?]) throws -> [JSONValue?] {
  let names = try query.columnNames()
  var removed: Set<Int> = []
  var paths: [(column: Int, path: [String])] = []
  let sources = [query.source?.alias ?? query.source?.name].compactMap { $0 }
  guard query.joins.isEmpty, sources.count == 1 else { throw NaiveError.unsupported("EXCLUDE of a join") }
  for excluded in query.excluded {
    var steps = excluded.steps.compactMap { step in
      if case .name(let name) = step { name.string } else { nil }
    }
    if !query.isRaw, let column = names.firstIndex(of: steps[0]) {
      if steps.count == 1 { removed.insert(column) } else { paths.append((column, Array(steps.dropFirst()))) }
      continue
    }
    if ByteString(steps[0]) == sources[0] { steps.removeFirst() }
    for (column, result) in query.results.enumerated() {
      if case .star = result.expression { paths.append((column, steps)) }
    }
  }
  func without(_ value: JSONValue, _ path: ArraySlice<String>) -> JSONValue {
    guard let name = path.first, var object = value.object else { return value }
    if path.count == 1 {
      object.removeValue(forKey: name)
    } else if let member = object[name] {
      object[name] = without(member, path.dropFirst())
    }
    return .object(object)
  }
  return { columns in
    var columns = columns
    for (column, path) in paths { columns[column] = columns[column].map { without($0, path[...]) } }
    return columns.enumerated().filter { !removed.contains($0.offset) }.map(\.element)
  }
}

extension KeyStrictness: Comparable {
  static func < (left: KeyStrictness, right: KeyStrictness) -> Bool { left.order < right.order }
  private var order: Int {
    switch self {
    case .exact: 0
    case .byValue: 1
    case .withoutCase: 2
    }
  }
}

extension QueryExpression {
  fileprivate var isConstantLiteral: Bool { if case .literal = self { true } else { false } }
  fileprivate var isCollated: Bool { if case .collate = self { true } else { false } }
}
