import Query
import TestSupport

// Windows by their definition: for each row, the frame is the list of rows that belong to it.

/// Adds the results of all windows to rows.
func naiveWindows(_ query: SelectStatement, _ rows: [NaiveRow]) throws -> [NaiveRow] {
  var windows: [FunctionCall: [JSONValue?]] = [:]
  for expression in query.results.map(\.expression) + query.orderBy.map(\.expression) {
    var calls: [FunctionCall] = []
    expression.forEach { if case .call(let call) = $0, call.window != nil { calls.append(call) } }
    for call in calls where windows[call] == nil {
      let named = try call.window.map { try naiveDefinition($0.definition, query.windows) }
      windows[call] = try rows.indices.map { try naiveWindow(call, named, $0, rows) }
    }
  }
  return rows.enumerated().map { number, row in
    var row = row
    row.windows = windows
    row.number = number
    return row
  }
}

/// A window with all that the named ones give it.
private func naiveDefinition(_ own: WindowDefinition, _ named: [NamedWindow]) throws -> WindowDefinition {
  guard let base = own.base else { return own }
  guard let found = named.first(where: { $0.name == base }) else {
    throw NaiveError.unsupported("a window without a name")
  }
  var definition = try naiveDefinition(found.definition, named)
  if !own.orderBy.isEmpty { definition.orderBy = own.orderBy }
  if let frame = own.frame { definition.frame = frame }
  return definition
}

private func naiveWindow(
  _ call: FunctionCall, _ definition: WindowDefinition?, _ current: Int, _ rows: [NaiveRow]
) throws -> JSONValue? {
  guard let window = call.window, let definition else { throw NaiveError.unsupported("no window") }
  func keys(_ number: Int) throws -> [JSONValue?] {
    try definition.partitionBy.map { try naive($0, rows[number]) }
  }
  func values(_ number: Int) throws -> [JSONValue?] {
    try definition.orderBy.map { try naive($0.expression, rows[number]) }
  }
  func compare(_ left: [JSONValue?], _ right: [JSONValue?]) -> Int {
    for (index, ordering) in definition.orderBy.enumerated() {
      if let nulls = ordering.nulls {
        let unknown = [left[index], right[index]].map { $0?.isNull ?? true }
        if unknown[0] != unknown[1] { return (unknown[0] == (nulls == .first)) ? -1 : 1 }
      }
      let order = naiveCompare(left[index], right[index], foldsCase: false)
      if order != 0 { return ordering.isDescending ? -order : order }
    }
    return 0
  }
  let own = try keys(current)
  var partition: [(number: Int, values: [JSONValue?])] = []
  for number in rows.indices {
    let other = try keys(number)
    if zip(own, other).allSatisfy({ naiveCompare($0, $1, foldsCase: false) == 0 }) {
      partition.append((number, try values(number)))
    }
  }
  partition.sort {
    compare($0.values, $1.values) < 0 || compare($0.values, $1.values) == 0 && $0.number < $1.number
  }
  let mine = try values(current)
  let before = partition.filter { compare($0.values, mine) < 0 }
  let peers = partition.filter { compare($0.values, mine) == 0 }
  guard let place = partition.firstIndex(where: { $0.number == current }) else {
    throw NaiveError.unsupported("a row outside of its partition")
  }
  var groups: [Int] = []
  for (index, row) in partition.enumerated() {
    let isPeer = index > 0 && compare(partition[index - 1].values, row.values) == 0
    groups.append((groups.last ?? -1) + (isPeer ? 0 : 1))
  }
  // Which of several peers comes first is open.
  let hasPeers = groups.count > (groups.last ?? 0) + 1
  if hasPeers, orderSensitive.contains(call.name) || definition.frame?.unit == .rows {
    throw NaiveError.open("the order of peers")
  }
  func argument(_ index: Int, _ number: Int) throws -> JSONValue? {
    try naive(call.arguments[index], rows[number])
  }
  let count = partition.count
  switch call.name {
  case "ROW_NUMBER": return JSONValue(place + 1)
  case "RANK": return JSONValue(before.count + 1)
  case "DENSE_RANK": return JSONValue(groups[place] + 1)
  case "PERCENT_RANK": return .double(count > 1 ? Double(before.count) / Double(count - 1) : 0)
  case "CUME_DIST": return .double(Double(before.count + peers.count) / Double(count))
  case "NTILE":
    guard let tiles = try argument(0, partition[0].number)?.int, tiles >= 1 else { return .null }
    let wanted = min(Int(tiles), count)
    // Each row goes to the first tile that isn't full.
    var sizes = Array(repeating: count / wanted, count: wanted)
    for index in 0..<(count % wanted) { sizes[index] += 1 }
    var left = place
    for (index, size) in sizes.enumerated() {
      if left < size { return JSONValue(index + 1) }
      left -= size
    }
    return .null
  case "LAG", "LEAD":
    var others = call.name == "LAG" ? Array(partition[..<place].reversed()) : Array(partition[(place + 1)...])
    if window.ignoresNulls { others = try others.filter { !(try argument(0, $0.number)?.isNull ?? true) } }
    let distance = try call.arguments.count > 1 ? argument(1, current)?.int ?? 1 : 1
    guard distance > 0 else { throw NaiveError.unsupported("LAG by 0") }
    guard others.count >= distance else {
      return try call.arguments.count > 2 ? argument(2, current) ?? .null : .null
    }
    return try argument(0, others[Int(distance) - 1].number) ?? .null
  default: break
  }
  var frame = WindowFrame(.range, from: .unboundedPreceding)
  if definition.orderBy.isEmpty || call.name == "RATIO_TO_REPORT" { frame.end = .unboundedFollowing }
  if let given = definition.frame { frame = given }
  let descends = definition.orderBy.last?.isDescending ?? false
  var members: [Int] = []
  for (index, other) in partition.enumerated() {
    /// How far the row is behind a bound, in the frame's unit. Nil when that can't be measured.
    func distance(from bound: WindowFrame.Bound) throws -> Double? {
      let steps: Double
      switch bound {
      case .unboundedPreceding: return .infinity
      case .unboundedFollowing: return -.infinity
      case .currentRow: steps = 0
      case .preceding(let offset): steps = -(try naive(offset, rows[current])?.double ?? .nan)
      case .following(let offset): steps = try naive(offset, rows[current])?.double ?? .nan
      }
      switch frame.unit {
      case .rows: return Double(index - place) - steps
      case .groups: return Double(groups[index] - groups[place]) - steps
      case .range:
        let order = Double(compare(other.values, mine))
        if bound == .currentRow { return order }
        guard let own = mine[0]?.double else { return nil }
        guard let its = other.values[0]?.double else { return order * .infinity }
        if max(abs(own), abs(its)) > 0x1p52 { throw NaiveError.open("the difference of large numbers") }
        return descends ? own - steps - its : its - (own + steps)
      }
    }
    guard let behindStart = try distance(from: frame.start), let behindEnd = try distance(from: frame.end),
      behindStart >= 0, behindEnd <= 0
    else { continue }
    let isPeer = groups[index] == groups[place]
    switch frame.exclusion {
    case .currentRow where index == place: continue
    case .group where isPeer: continue
    case .ties where isPeer && index != place: continue
    default: members.append(other.number)
    }
  }
  if orderSensitive.contains(call.name) {
    if window.ignoresNulls { members = try members.filter { !(try argument(0, $0)?.isNull ?? true) } }
    if call.name == "LAST_VALUE" || window.countsFromLast { members.reverse() }
    let wanted = try call.name == "NTH_VALUE" ? Int(argument(1, current)?.int ?? 1) : 1
    return members.count < wanted ? .null : try argument(0, members[wanted - 1]) ?? .null
  }
  let framed = members.map { rows[$0] }
  var plain = FunctionCall(call.name, call.arguments, isDistinct: call.isDistinct, filter: call.filter)
  if call.name == "RATIO_TO_REPORT" {
    plain.name = "SUM"
    guard let sum = try naiveAggregate(plain, framed, rows[current])?.double, sum != 0,
      let value = try argument(0, current)?.double
    else { return .null }
    return naiveNumber(value / sum)
  }
  return try naiveAggregate(plain, framed, rows[current]) ?? .null
}

/// The functions whose result depends on the order of peers.
private let orderSensitive: Set<String> = [
  "ROW_NUMBER", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE",
]
