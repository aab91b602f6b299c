import Query
import TestSupport

// The naive evaluator's part for queries inside queries, sets, WITH and LET.

/// The row with which a query begins: the names of the queries around it, and of its WITH.
func naiveStart(_ query: SelectStatement, _ data: NaiveData, _ outer: NaiveRow?) throws -> NaiveRow {
  var start = NaiveRow(data)
  if let outer {
    if outer.group != nil { throw NaiveError.open("a query inside a group") }
    start.values = outer.values
    start.outerDocuments = outer.outerDocuments.merging(outer.documents) { _, inner in inner }
  }
  for binding in query.with {
    if query.isRecursive, let rows = try naiveRecursion(binding, start) {
      start.values[binding.name] = .some(.array(rows.map { $0 ?? .null }))
      continue
    }
    start.values[binding.name] = .some(try naive(binding.value, start))
  }
  return start
}

/// The rows of a query that reads its own rows. Nil for one that isn't a union.
private func naiveRecursion(_ binding: WithBinding, _ start: NaiveRow) throws -> [JSONValue?]? {
  guard case .subquery(let statement) = binding.value,
    case .combined(let first, .union, let isAll, let next)? = statement.combination
  else { return nil }
  var levels = 1_000
  if case .literal(.int(let given))? = binding.levels { levels = Int(given) }
  var seen: Set<ByteString> = []
  func new(_ rows: [JSONValue?]) -> [JSONValue?] {
    isAll ? rows : rows.filter { seen.insert(naiveKey([$0], .byValue)).inserted }
  }
  var last = new(try naiveRows(first, start))
  var all = last
  var level = 0
  while !last.isEmpty, level < levels {
    level += 1
    var inner = start
    inner.values[binding.name] = .some(.array(last.map { $0 ?? .null }))
    last = new(try naiveRows(next, inner))
    all += last
    if all.count > 20_000 { throw NaiveError.unsupported("a recursion without an end") }
  }
  // Which rows come is open then.
  if case .literal(.int(let most))? = binding.rows, all.count >= most {
    throw NaiveError.open("the first rows of a recursion")
  }
  return all
}

/// The rows of a query inside another one.
func naiveRows(_ query: SelectStatement, _ row: NaiveRow) throws -> [JSONValue?] {
  let answer = try naiveAnswer(query, row.data, in: row)
  let all = answer.rows
  let first = min(answer.offset, all.count)
  let end = min(answer.limit.map { first + $0 } ?? all.count, all.count)
  // The rows of a run can come in any order.
  var place = 0
  for run in answer.runs {
    let range = place..<(place + run.count)
    place = range.upperBound
    guard run.count > 1 else { continue }
    if range.contains(first) && first > range.lowerBound || range.contains(end) && end > range.lowerBound {
      throw NaiveError.open("which rows of equal order a query inside gives")
    }
  }
  let names = try query.columnNames()
  return all[first..<end].map { columns in query.isRawAtAll ? columns[0] : naiveObject(names, columns) }
}

private func naiveObject(_ names: [String], _ columns: [JSONValue?]) -> JSONValue {
  var object = JSONObject()
  for (name, value) in zip(names, columns) { if let value { object[name] = value } }
  return .object(object)
}

/// The rows that a set operator makes, ordered.
func naiveSets(_ combination: SetCombination, _ query: SelectStatement, _ start: NaiveRow) throws
  -> NaiveAnswer
{
  let names = try query.columnNames()
  let isRaw = query.isRawAtAll
  let values = try naiveCombined(combination, start)
  let rows = try values.map { value in
    var row = start
    row.add(value: value, as: "\u{1}rows")
    return (
      columns: isRaw ? [value] : names.map { value?.object?[$0] },
      keys: try query.orderBy.map { try naive($0.expression, row) }
    )
  }
  func compare(_ a: [JSONValue?], _ b: [JSONValue?]) -> Int {
    for (index, ordering) in query.orderBy.enumerated() {
      if let nulls = ordering.nulls {
        let unknown = [a[index], b[index]].map { $0?.isNull ?? true }
        if unknown[0] != unknown[1] { return (unknown[0] == (nulls == .first)) ? -1 : 1 }
      }
      let order = naiveCompare(a[index], b[index], foldsCase: false)
      if order != 0 { return ordering.isDescending ? -order : order }
    }
    return 0
  }
  var answer = NaiveAnswer(runs: [])
  let sorted = rows.sorted { compare($0.keys, $1.keys) < 0 }
  for (index, result) in sorted.enumerated() {
    if index > 0, compare(sorted[index - 1].keys, result.keys) == 0 {
      answer.runs[answer.runs.count - 1].append(result.columns)
    } else {
      answer.runs.append([result.columns])
    }
  }
  answer.strictness = .byValue
  func number(_ expression: QueryExpression) throws -> Int {
    guard let number = try naive(expression, start)?.int else {
      throw NaiveError.unsupported("LIMIT of another type")
    }
    return max(0, Int(number))
  }
  answer.offset = try query.offset.map { try number($0) } ?? 0
  answer.limit = try query.limit.map { try number($0) }
  return answer
}

private func naiveCombined(_ combination: SetCombination, _ start: NaiveRow) throws -> [JSONValue?] {
  guard case .combined(let left, let operation, let isAll, let right) = combination else { return [] }
  func key(_ value: JSONValue?) -> ByteString { naiveKey([value], .byValue) }
  let first = try naiveRows(left, start)
  let second = try naiveRows(right, start)
  var rows: [JSONValue?] = []
  var others: [ByteString: Int] = [:]
  for value in second { others[key(value), default: 0] += 1 }
  switch operation {
  case .union: rows = first + second
  case .intersect, .except:
    for value in first {
      let count = others[key(value)] ?? 0
      if isAll, count > 0 { others[key(value)] = count - 1 }
      if (count > 0) == (operation == .intersect) { rows.append(value) }
    }
  }
  var seen: Set<ByteString> = []
  return isAll ? rows : rows.filter { seen.insert(key($0)).inserted }
}

/// The items of a source that isn't the documents of the database.
func naiveItems(_ source: DataSource, _ row: NaiveRow) throws -> [JSONValue?]? {
  var plain = row
  plain.aliases = [:]
  let value: JSONValue?
  switch source.content {
  case .items(let items): value = try naive(items, plain)
  case .named:
    if let rows = try row.data.system(source.name) { return rows }
    guard source.name != "_", let known = row.values[source.name], row.documents[source.name] == nil else {
      return nil
    }
    value = known
  }
  guard let value, !value.isNull else { return [] }
  return value.array ?? [value]
}

/// Whether USE KEYS names a document.
func naiveHasKey(_ document: NaiveDocument, _ source: DataSource, _ row: NaiveRow) throws -> Bool {
  guard let keys = source.keys else { return true }
  let value = try naive(keys, row)
  return (value?.array ?? [value ?? .null]).contains {
    $0.string.map { ByteString($0) } == ByteString(document.id)
  }
}

/// The row with the names of LET.
func naiveLets(_ query: SelectStatement, _ row: NaiveRow) throws -> NaiveRow {
  var row = row
  let aliases = row.aliases
  row.aliases = [:]
  for binding in query.lets { row.values[binding.name] = .some(try naive(binding.value, row)) }
  row.aliases = aliases
  return row
}

extension SelectStatement {
  /// Whether its rows are values.
  var isRawAtAll: Bool {
    if case .combined(let left, _, _, let right)? = combination { return left.isRawAtAll || right.isRawAtAll }
    return isRaw
  }

  /// Whether there are queries inside.
  var hasQueries: Bool {
    if combination != nil || !with.isEmpty { return true }
    let sources =
      [source].compactMap { $0 }
      + joins.compactMap { join in
        switch join {
        case .join(_, let source, _), .nest(let source, _, _): source
        case .unnest: nil
        }
      }
    if sources.contains(where: { $0.content != .named }) { return true }
    return contains { if case .subquery = $0 { true } else { false } }
  }

  /// The sources before the one with a name.
  func namesBefore(_ name: ByteString) -> [ByteString] {
    var names = [source].compactMap { $0?.alias ?? $0?.name }
    for join in joins {
      let own: ByteString
      switch join {
      case .join(_, let source, _), .nest(let source, _, _): own = source.alias ?? source.name
      case .unnest(_, let alias, _): own = alias
      }
      if own == name { break }
      names.append(own)
    }
    return names
  }
}
