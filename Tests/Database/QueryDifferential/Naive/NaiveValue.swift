import TestSupport

// Values as the naive evaluator compares them. Nil is missing.

/// Why the naive evaluator has no answer.
enum NaiveError: Error {
  /// It doesn't know this part of the language.
  case unsupported(String)
  /// The language leaves the answer open: rows or values of it depend on the plan.
  case open(String)
}

/// JSONValue takes the literal nil for null, so missing is written `missing` where either could be meant.
let missing = JSONValue?.none

/// Missing, null, false, true, numbers, strings, arrays, objects, binary data.
func naiveRank(_ value: JSONValue?) -> Int {
  guard let value else { return 0 }
  return switch value {
  case .null: 1
  case .bool: 2
  case .int, .uint, .double: 3
  case .string: 4
  case .array: 5
  case .object: 6
  case .data: 7
  }
}

/// The bytes that text is compared by.
func naiveBytes(_ text: String, foldsCase: Bool) -> [UInt8] {
  foldsCase ? text.utf8.map { $0 >= 0x41 && $0 <= 0x5A ? $0 | 0x20 : $0 } : Array(text.utf8)
}

/// Below, at or above 0: the order of all values.
func naiveCompare(_ a: JSONValue?, _ b: JSONValue?, foldsCase: Bool = false) -> Int {
  if naiveRank(a) != naiveRank(b) { return naiveRank(a) < naiveRank(b) ? -1 : 1 }
  guard let a, let b else { return 0 }
  if let x = a.bool, let y = b.bool { return x == y ? 0 : y ? -1 : 1 }
  if naiveRank(a) == 3 { return naiveCompareNumbers(a, b) }
  if let x = a.string, let y = b.string {
    let (left, right) = (naiveBytes(x, foldsCase: foldsCase), naiveBytes(y, foldsCase: foldsCase))
    return left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
  }
  if let x = a.array, let y = b.array {
    for (left, right) in zip(x, y) {
      let order = naiveCompare(left, right, foldsCase: foldsCase)
      if order != 0 { return order }
    }
    return x.count - y.count
  }
  if let x = a.object, let y = b.object {
    let left = naiveMembers(x)
    let right = naiveMembers(y)
    for (l, r) in zip(left, right) {
      if l.name != r.name { return l.name < r.name ? -1 : 1 }
      let order = naiveCompare(l.value, r.value, foldsCase: foldsCase)
      if order != 0 { return order }
    }
    return left.count - right.count
  }
  return 0
}

/// The members of an object by the bytes of their names.
func naiveMembers(_ object: JSONObject) -> [(name: ByteString, value: JSONValue)] {
  object.map { (ByteString($0.key), $0.value) }.sorted { $0.0 < $1.0 }
}

/// An integer of either kind.
func naiveInteger(_ value: JSONValue) -> Int128? {
  switch value {
  case .int(let value): Int128(value)
  case .uint(let value): Int128(value)
  default: nil
  }
}

private func naiveCompareNumbers(_ a: JSONValue, _ b: JSONValue) -> Int {
  func order<Number: Comparable>(_ a: Number, _ b: Number) -> Int { a < b ? -1 : a == b ? 0 : 1 }
  if let x = naiveInteger(a), let y = naiveInteger(b) { return order(x, y) }
  guard let x = a.double, let y = b.double else { return 0 }
  // Both sides are whole numbers that 128 bits hold, or doubles tell them apart.
  if let whole = Int128(exactly: x.rounded(.down)), let other = naiveInteger(b) {
    return whole != other ? order(whole, other) : x > x.rounded(.down) ? 1 : 0
  }
  if let whole = Int128(exactly: y.rounded(.down)), let other = naiveInteger(a) {
    return whole != other ? order(other, whole) : y > y.rounded(.down) ? -1 : 0
  }
  return order(x, y)
}

/// How values of rows are told apart.
enum KeyStrictness {
  /// As JSON: 1 isn't 1.0.
  case exact
  /// As `=` does, and doubles that differ by rounding are equal.
  case byValue
  /// `byValue`, and letters of ASCII are equal in any case.
  case withoutCase
}

/// Bytes that are equal for values that are.
func naiveKey(_ row: [JSONValue?], _ strictness: KeyStrictness) -> ByteString {
  var key: [UInt8] = []
  for value in row { appendKey(value, strictness, to: &key) }
  return ByteString(key)
}

private func appendKey(_ value: JSONValue?, _ strictness: KeyStrictness, to key: inout [UInt8]) {
  func add(_ tag: Character, _ text: String = "") {
    key += Array("\(tag)\(text) ".utf8)
  }
  guard let value else { return add("-") }
  switch value {
  case .null: add("z")
  case .bool(let value): add(value ? "t" : "f")
  case .int(let value): add("i", "\(value)")
  case .uint(let value): add("i", "\(value)")
  case .double(let value):
    if strictness == .exact { return add("d", "\(value)") }
    if value.magnitude < 1.9e19, let whole = Int128(exactly: value) {
      return add("i", "\(whole)")
    }
    let rounded = Float(value)
    if rounded.magnitude < 1e6, let whole = Int128(exactly: rounded) { return add("i", "\(whole)") }
    add("d", rounded.isFinite ? "\(rounded)" : "\(value)")
  case .string(let text):
    let bytes = naiveBytes(text, foldsCase: strictness == .withoutCase)
    add("s", "\(bytes.count):")
    key += bytes
  case .data(let bytes):
    add("b", "\(bytes.count):")
    key += bytes
  case .array(let items):
    add("[", "\(items.count)")
    for item in items { appendKey(item, strictness, to: &key) }
  case .object(let object):
    add("{", "\(object.count)")
    for (name, value) in naiveMembers(object) {
      add("n", "\(name.bytes.count):")
      key += name.bytes
      appendKey(value, strictness, to: &key)
    }
  }
}

/// A row for people.
func naiveText(ofRow row: [JSONValue?]) -> String {
  "[" + row.map { value in value.map(naiveJSON) ?? "missing" }.joined(separator: ", ") + "]"
}

/// The canonical JSON text of a value.
func naiveJSON(_ value: JSONValue) -> String { (try? value.canonicalJSON()) ?? "?" }
