import Query
import TestSupport

// Functions of the naive evaluator. Those it doesn't know are compared between engines and plans only.

let naiveAggregates: Set<String> = [
  "COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG", "COUNTN", "MEDIAN", "STDDEV", "STDDEV_SAMP", "STDDEV_POP",
  "VARIANCE", "VARIANCE_SAMP", "VARIANCE_POP",
]

/// Functions that aren't always unknown when an argument is, and aren't evaluated here then.
private let seesUnknown: Set<String> = [
  "ARRAY_EXCEPT", "ARRAY_POSITION", "ARRAY_PREPEND", "ARRAY_UNION", "BASE64_ENCODE", "CONCAT2", "DECODE",
  "ENCODED_SIZE",
  "ENCODE_JSON", "OBJECT_PUT", "PAIRS", "TOKENS",
]

func naiveCall(_ call: FunctionCall, _ row: NaiveRow) throws -> JSONValue? {
  if call.name == "SNIPPET" || call.name == "OFFSETS" { return try naiveHighlight(call, row) }
  if call.window != nil {
    guard let windows = row.windows, let values = windows[call], let number = row.number else {
      throw NaiveError.unsupported("a window")
    }
    return values[number]
  }
  if naiveAggregates.contains(call.name) {
    guard let group = row.group else { throw NaiveError.unsupported("an aggregate without a group") }
    return try naiveAggregate(call, group, row)
  }
  var free = row
  free.isOrderFree = call.hidesOrder || row.isOrderFree && call.name == "CONCAT2"
  let arguments = try call.arguments.map { try naive($0, free) }
  var row = row
  for case .collate(_, let own) in call.arguments.reversed() { row.collation = own }
  let names = ["missing", "null", "boolean", "number", "string", "array", "object", "binary"]
  let foldsCase = try row.foldsCase
  switch call.name {
  case "TYPE": return .string(names[naiveRank(arguments[0])])
  case "IFMISSING": return arguments.first { $0 != nil } ?? .null
  case "IFNULL": return arguments.first { !($0?.isNull ?? false) } ?? .null
  case "IFMISSINGORNULL": return arguments.first { $0.map { !$0.isNull } ?? false } ?? .null
  case "ARRAY_OF": return .array(arguments.map { $0 ?? .null })
  case "NVL2": return arguments[0].map { $0.isNull ? arguments[2] : arguments[1] } ?? arguments[2]
  case "NVL": return arguments[0].map { $0.isNull ? arguments[1] : $0 } ?? arguments[1]
  default: break
  }
  if call.name == "CONCAT2", arguments.count == 2, let separator = arguments[0]?.string,
    let texts = arguments[1]?.array
  {
    let parts = texts.compactMap(\.string)
    return parts.count < texts.count ? .null : .string(parts.joined(separator: separator))
  }
  if seesUnknown.contains(call.name), arguments.contains(where: { $0?.isNull ?? true }) {
    throw NaiveError.unsupported("\(call.name) of an unknown value")
  }
  var values: [JSONValue] = []
  for argument in arguments {
    guard let argument else { return missing }
    values.append(argument)
  }
  if call.name == "CONCAT" { return .string(values.map { naiveText($0) }.joined()) }
  if values.contains(where: \.isNull) { return .null }
  guard let first = values.first else { throw NaiveError.unsupported(call.name) }
  switch call.name {
  case "ISARRAY", "ISBOOLEAN", "ISNUMBER", "ISOBJECT", "ISSTRING":
    return .bool(names[naiveRank(first)].uppercased() == call.name.dropFirst(2))
  case "ISATOM": return .bool((2...4).contains(naiveRank(first)))
  case "NULLIF": return naiveCompare(first, values[1], foldsCase: foldsCase) == 0 ? .null : first
  case "MISSINGIF": return naiveCompare(first, values[1], foldsCase: foldsCase) == 0 ? missing : first
  case "GREATEST":
    return values.dropFirst().reduce(first) { naiveCompare($1, $0, foldsCase: foldsCase) > 0 ? $1 : $0 }
  case "LEAST":
    return values.dropFirst().reduce(first) { naiveCompare($1, $0, foldsCase: foldsCase) < 0 ? $1 : $0 }
  case "TOARRAY": return first.array == nil ? .array([first]) : first
  case "TOOBJECT": return first.object == nil ? .object(JSONObject()) : first
  case "TOBOOLEAN":
    switch first {
    case .bool(let value): return .bool(value)
    case .string(let text): return .bool(!text.isEmpty)
    case .array, .object: return .bool(first.count > 0)
    default: return .bool(first.double != 0)
    }
  case "TOSTRING":
    return naiveRank(first) == 4 ? first : naiveRank(first) < 4 ? .string(naiveJSON(first)) : .null
  case "TONUMBER":
    switch first {
    case .bool(let value): return value ? 1 : 0
    case .int, .uint, .double: return first
    case .string: break
    default: return .null
    }
  case "VECTOR_DISTANCE": return try naiveDistance(first, values[1], values[2].string?.uppercased() ?? "")
  case "EUCLIDEAN_DISTANCE": return try naiveDistance(first, values[1], "L2")
  case "SQUARED_EUCLIDEAN_DISTANCE": return try naiveDistance(first, values[1], "L2_SQUARED")
  case "COSINE_DISTANCE": return try naiveDistance(first, values[1], "COSINE")
  default: break
  }
  if let text = first.string { return try naiveString(call.name, text, values, row) }
  if let items = first.array, let result = try naiveArray(call.name, items, values, foldsCase) {
    return result
  }
  if first.double != nil, let result = try naiveNumeric(call.name, first, values) { return result }
  if KnownNames.known.contains(call.name) { return .null }
  throw NaiveError.unsupported(call.name)
}

/// Names whose first argument, when it is of another type, makes them null.
private enum KnownNames {
  static let known: Set<String> = [
    "LOWER", "UPPER", "LENGTH", "SUBSTR", "CONTAINS", "REVERSE", "ARRAY_LENGTH", "ARRAY_COUNT",
    "ARRAY_CONTAINS",
    "ABS", "SIGN", "FLOOR", "CEIL", "POSITION", "REGEXP_LIKE", "REGEXP_CONTAINS",
  ]
}

extension FunctionCall {
  /// Whether the result doesn't tell in which order an ARRAY_AGG took its values.
  fileprivate var hidesOrder: Bool {
    guard case .call(let inner)? = arguments.first, inner.window == nil else { return false }
    switch name {
    case "ARRAY_LENGTH", "ARRAY_COUNT", "ARRAY_SORT": return inner.name == "ARRAY_AGG"
    case "LENGTH": return inner.name == "CONCAT2"
    default: return false
    }
  }
}

/// The distance of two arrays of as many numbers.
private func naiveDistance(_ left: JSONValue, _ right: JSONValue, _ metric: String) throws -> JSONValue? {
  func vector(_ value: JSONValue) -> [Double]? {
    guard let items = value.array, !items.isEmpty else { return nil }
    let numbers = items.compactMap(\.double)
    return numbers.count == items.count ? numbers : nil
  }
  guard let a = vector(left), let b = vector(right), a.count == b.count else { return .null }
  // Of large numbers the last digits depend on the order of operations.
  if (a + b).contains(where: { abs($0) > 1e9 }) {
    throw NaiveError.unsupported("the distance of large numbers")
  }
  func product(_ a: [Double], _ b: [Double]) -> Double { zip(a, b).map { $0 * $1 }.reduce(0, +) }
  let difference = zip(a, b).map { $0 - $1 }
  switch metric {
  case "L2", "EUCLIDEAN": return naiveNumber(product(difference, difference).squareRoot())
  case "L2_SQUARED", "EUCLIDEAN_SQUARED": return naiveNumber(product(difference, difference))
  case "DOT": return naiveNumber(0 - product(a, b))
  case "COSINE": return naiveNumber(1 - product(a, b) / (product(a, a) * product(b, b)).squareRoot())
  default: return .null
  }
}

private func naiveString(_ name: String, _ text: String, _ values: [JSONValue], _ row: NaiveRow) throws
  -> JSONValue?
{
  let scalars = Array(text.unicodeScalars)
  func string(_ scalars: some Sequence<Unicode.Scalar>) -> JSONValue {
    var view = String.UnicodeScalarView()
    view.append(contentsOf: scalars)
    return .string(String(view))
  }
  switch name {
  case "LOWER": return .string(scalars.map { $0.properties.lowercaseMapping }.joined())
  case "UPPER": return .string(scalars.map { $0.properties.uppercaseMapping }.joined())
  case "LENGTH": return JSONValue(scalars.count)
  case "REVERSE": return string(scalars.reversed())
  case "SUBSTR":
    guard let start = values[1].int.map({ Int(clamping: $0) }) else {
      if values[1].double == nil { return .null }
      throw NaiveError.unsupported("SUBSTR of a double")
    }
    let from = start < 0 ? scalars.count + start : start
    guard scalars.indices.contains(from) || from == scalars.count && from == 0 else {
      if from == scalars.count { throw NaiveError.unsupported("SUBSTR at the end") }
      return .null
    }
    guard values.count > 2 else { return string(scalars[from...]) }
    guard let length = values[2].int, length >= 0 else { throw NaiveError.unsupported("SUBSTR's length") }
    return string(scalars[from...].prefix(Int(clamping: length)))
  case "CONTAINS", "POSITION":
    if row.collation != nil { throw NaiveError.unsupported("CONTAINS under COLLATE") }
    guard let part = values[1].string else { return .null }
    let wanted = Array(part.unicodeScalars)
    let place =
      wanted.count > scalars.count
      ? nil
      : (0...(scalars.count - wanted.count)).first { Array(scalars[$0..<($0 + wanted.count)]) == wanted }
    return name == "CONTAINS" ? .bool(place != nil) : JSONValue(place ?? -1)
  case "REGEXP_LIKE", "REGEXP_CONTAINS":
    // The patterns of the generator, by what they mean.
    switch values[1].string {
    case "a": return .bool(text.utf8.contains(0x61))
    case "[aA]b?": return .bool(text.utf8.contains { $0 | 0x20 == 0x61 })
    case "^[aA]": return .bool(text.utf8.first.map { $0 | 0x20 == 0x61 } ?? false)
    case "^[^b]$" where !text.utf8.contains { $0 < 0x20 }: return .bool(scalars.count == 1 && text != "b")
    case "a*", "": return true
    default: throw NaiveError.unsupported("another pattern")
    }
  default:
    if KnownNames.known.contains(name) { return .null }
    throw NaiveError.unsupported(name)
  }
}

private func naiveArray(
  _ name: String, _ items: [JSONValue], _ values: [JSONValue], _ foldsCase: Bool
) throws -> JSONValue? {
  let numbers = items.compactMap(\.double)
  switch name {
  case "ARRAY_LENGTH": return JSONValue(items.count)
  case "ARRAY_SORT": return .array(items.sorted { naiveCompare($0, $1) < 0 })
  case "ARRAY_COUNT": return JSONValue(items.filter { !$0.isNull }.count)
  case "ARRAY_CONTAINS":
    return .bool(items.contains { naiveCompare($0, values[1], foldsCase: foldsCase) == 0 })
  case "ARRAY_IFNULL": return items.first { !$0.isNull } ?? .null
  case "ARRAY_SUM": return naiveNumber(numbers.reduce(0, +))
  case "ARRAY_AVG": return numbers.isEmpty ? .null : naiveNumber(numbers.reduce(0, +) / Double(numbers.count))
  case "ARRAY_MAX": return numbers.max().map { .double($0) } ?? .null
  case "ARRAY_MIN": return numbers.min().map { .double($0) } ?? .null
  default: return nil
  }
}

private func naiveNumeric(_ name: String, _ value: JSONValue, _ values: [JSONValue]) throws -> JSONValue? {
  guard let number = value.double else { return nil }
  switch name {
  case "ABS": return naiveInteger(value).flatMap { naiveNumber(abs($0)) } ?? .double(abs(number))
  case "SIGN": return .int(number > 0 ? 1 : number < 0 ? -1 : 0)
  case "FLOOR": return .double(number.rounded(.down))
  case "CEIL": return .double(number.rounded(.up))
  case "SQRT": return naiveNumber(number.squareRoot())
  case "DIV": return values[1].double.map { naiveNumber(number / $0) } ?? .null
  case "IDIV":
    // 64 bits hold both sides.
    func whole(_ value: JSONValue) -> Int128? {
      let integer = naiveInteger(value) ?? value.double.flatMap { Int128(exactly: $0.rounded(.towardZero)) }
      return integer.flatMap { naiveNumber($0) == nil ? nil : $0 }
    }
    guard let a = whole(value), let b = whole(values[1]), b != 0 else { return .null }
    return naiveNumber(a / b) ?? .null
  default: return nil
  }
}

func naiveAggregate(_ call: FunctionCall, _ group: [NaiveRow], _ row: NaiveRow) throws -> JSONValue? {
  var argument = call.arguments[0]
  var group = group
  if let filter = call.filter { group = try group.filter { try naiveIsTrue(filter, $0) } }
  if case .star(nil) = argument { return JSONValue(group.count) }
  var collation = row.collation
  if case .collate(let inner, let own) = argument {
    argument = inner
    collation = own
  }
  var collated = row
  collated.collation = collation
  let foldsCase = try collated.foldsCase
  var values: [JSONValue] = []
  for member in group {
    var member = member
    member.collation = collation
    if let value = try naive(argument, member), !value.isNull || call.name == "ARRAY_AGG" {
      values.append(value)
    }
  }
  // Of equal numbers any may be the one that counts: 1 or 1.0.
  let hasDouble = values.contains { $0.double != nil && naiveInteger($0) == nil }
  if call.isDistinct {
    var distinct: [JSONValue] = []
    for value in values
    where !distinct.contains(where: { naiveCompare($0, value, foldsCase: foldsCase) == 0 }) {
      distinct.append(value)
    }
    values = distinct
  }
  switch call.name {
  case "COUNT": return JSONValue(values.count)
  case "MIN": return values.min { naiveCompare($0, $1, foldsCase: foldsCase) < 0 }
  case "MAX": return values.max { naiveCompare($0, $1, foldsCase: foldsCase) < 0 }
  case "ARRAY_AGG":
    // In no order.
    if values.count > 1, !row.isOrderFree { throw NaiveError.open("the order of ARRAY_AGG") }
    return .array(values)
  default:
    let numbers = values.filter { $0.double != nil }
    if call.name == "COUNTN" { return JSONValue(numbers.count) }
    if call.name == "MEDIAN" || call.name.hasPrefix("STDDEV") || call.name.hasPrefix("VARIANCE") {
      return try naiveStatistic(call.name, numbers)
    }
    if numbers.isEmpty { return missing }
    func integer(_ number: JSONValue) -> Int128? {
      if let integer = naiveInteger(number) { return integer }
      guard call.isDistinct, let double = number.double, let whole = Int64(exactly: double) else {
        return nil
      }
      return Int128(whole)
    }
    let integers = numbers.compactMap { integer($0) }
    // Exact, in whatever order the numbers come.
    let doubles = numbers.filter { integer($0) == nil }.compactMap(\.double)
    let whole = integers.reduce(0, +)
    if doubles.contains(where: { abs($0) > 1e300 }) {
      throw NaiveError.open("sums beyond all doubles on the way")
    }
    let high = Double(whole)
    let sum = exactSum(doubles + [high, Double(whole - Int128(high))])
    if call.name == "AVG" {
      let exact = integers.count == numbers.count ? Double(integers.reduce(0, +)) : sum
      return naiveNumber(exact / Double(numbers.count))
    }
    if !hasDouble, integers.count == numbers.count, let exact = naiveNumber(integers.reduce(0, +)) {
      if Int64(exactly: integers.reduce(0, +)) != nil || integers.contains(where: { $0 > Int128(Int64.max) })
      {
        return exact
      }
    }
    return naiveNumber(sum)
  }
}

private func naiveStatistic(_ name: String, _ numbers: [JSONValue]) throws -> JSONValue? {
  let count = Double(numbers.count)
  if numbers.isEmpty { return .null }
  let doubles = numbers.compactMap(\.double)
  if name == "MEDIAN" {
    let sorted = numbers.sorted { naiveCompare($0, $1, foldsCase: false) < 0 }
    let middle = sorted.count / 2
    guard sorted.count % 2 == 0, let below = sorted[middle - 1].double, let above = sorted[middle].double
    else {
      return sorted[middle]
    }
    return naiveNumber(below / 2 + above / 2)
  }
  // The squares of large numbers lose digits, in one order of adding more than in another.
  if doubles.contains(where: { abs($0) > 1e6 }) { throw NaiveError.open("the variance of large numbers") }
  let mean = doubles.reduce(0, +) / count
  let squares = doubles.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
  if name.hasSuffix("_SAMP"), count == 1 { return .null }
  let variance = squares / (name.hasSuffix("_POP") ? count : max(1, count - 1))
  return naiveNumber(name.hasPrefix("STDDEV") ? variance.squareRoot() : variance)
}
