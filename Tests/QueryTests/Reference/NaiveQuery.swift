import Fleece
import Query
import Storage

/// Answers a query over documents in memory, clause by clause as SQL explains itself: all rows, then those that WHERE
/// keeps, then groups, HAVING, DISTINCT, ORDER BY, OFFSET, LIMIT.
func naiveRows(_ query: SelectStatement, _ documents: [(id: String, body: JSONValue)]) throws
  -> [[JSONValue?]]
{
  var rows = [NaiveRow()]
  func adding(_ document: (id: String, body: JSONValue)?, as name: ByteString, to row: NaiveRow) -> NaiveRow {
    var row = row
    row.values[name] = .some(document?.body)
    row.ids[name] = document?.id
    return row
  }
  if let source = query.source {
    rows = documents.map { adding($0, as: source.alias ?? source.name, to: NaiveRow()) }
  }
  for join in query.joins {
    switch join {
    case .join(let kind, let source, let condition):
      let name = source.alias ?? source.name
      rows = try rows.flatMap { row -> [NaiveRow] in
        let matches = try documents.map { adding($0, as: name, to: row) }
          .filter { candidate in try condition.map { try naiveIsTrue($0, candidate) } ?? true }
        return matches.isEmpty && kind == .leftOuter ? [adding(nil, as: name, to: row)] : matches
      }
    case .unnest(let array, let name, let isLeftOuter):
      rows = try rows.flatMap { row -> [NaiveRow] in
        let items = try naive(array, row)?.array ?? []
        let matches = items.map { item -> NaiveRow in
          var row = row
          row.values[name] = .some(item)
          return row
        }
        if !matches.isEmpty || !isLeftOuter { return matches }
        var row = row
        row.values[name] = .some(nil)
        return [row]
      }
    }
  }
  if let condition = query.condition { rows = try rows.filter { try naiveIsTrue(condition, $0) } }
  if query.isGrouped {
    var groups: [(key: [JSONValue?], rows: [NaiveRow])] = query.groupBy.isEmpty ? [([], [])] : []
    for row in rows {
      let key = try query.groupBy.map { try naive($0, row) }
      if let place = groups.firstIndex(where: { naiveCompareRows($0.key, key) == 0 }) {
        groups[place].rows.append(row)
      } else {
        groups.append((key, [row]))
      }
    }
    rows = groups.map { group in
      var row = group.rows.first ?? NaiveRow()
      row.group = group.rows
      return row
    }
    if let having = query.having { rows = try rows.filter { try naiveIsTrue(having, $0) } }
  }
  var results = try rows.map { row in
    (
      columns: try query.results.map { try naive($0.expression, row) },
      keys: try query.orderBy.map { try naive($0.expression, row) }
    )
  }
  if query.isDistinct {
    var kept: [(columns: [JSONValue?], keys: [JSONValue?])] = []
    for result in results where !kept.contains(where: { naiveCompareRows($0.columns, result.columns) == 0 }) {
      kept.append(result)
    }
    results = kept
  }
  results.sort { a, b in
    for (index, ordering) in query.orderBy.enumerated() {
      let order = naiveCompare(a.keys[index], b.keys[index])
      if order != 0 { return (order < 0) != ordering.isDescending }
    }
    return false
  }
  func number(_ expression: Expression?) throws -> Int? {
    try expression.flatMap { try naive($0, NaiveRow())?.int }.map { max(0, Int($0)) }
  }
  var columns = results.map(\.columns)[...]
  if let offset = try number(query.offset) { columns = columns.dropFirst(offset) }
  if let limit = try number(query.limit) { columns = columns.prefix(limit) }
  return Array(columns)
}

func naiveCompareRows(_ a: [JSONValue?], _ b: [JSONValue?]) -> Int {
  for (left, right) in zip(a, b) {
    let order = naiveCompare(left, right)
    if order != 0 { return order }
  }
  return a.count - b.count
}

extension SelectStatement {
  /// Whether rows are grouped: by GROUP BY, or all of them by an aggregate.
  fileprivate var isGrouped: Bool {
    !groupBy.isEmpty || results.contains { $0.expression.description.contains("COUNT(") }
  }
}
