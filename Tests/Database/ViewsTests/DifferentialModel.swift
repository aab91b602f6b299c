import Foundation
import TestSupport

@testable import Views

/// A document in a dictionary, with its leaves.
struct NaiveDocument {
  var id: String
  var leaves: [Revision]

  private static func isBetter(_ left: Revision, _ right: Revision) -> Bool {
    if left.isDeleted != right.isDeleted { return right.isDeleted }
    func parts(_ id: RevisionID) -> (Int, [UInt8]) {
      let text = id.description
      return (Int(text.prefix { $0 != "-" }) ?? 0, Array(text.utf8.drop { $0 != UInt8(ascii: "-") }))
    }
    let (a, b) = (parts(left.id), parts(right.id))
    return a.0 != b.0 ? a.0 > b.0 : b.1.lexicographicallyPrecedes(a.1)
  }

  /// The current revision; nil if the document is deleted.
  var winner: Revision? { leaves.filter { !$0.isDeleted }.min(by: NaiveDocument.isBetter) }

  /// The other live leaves, the best one first.
  var conflicts: [Revision] {
    Array(leaves.filter { !$0.isDeleted }.sorted(by: NaiveDocument.isBetter).dropFirst())
  }
}

/// A row of a naive view.
struct NaiveRow {
  enum Value {
    case none
    case json(JSONValue)
    case document(JSONValue)
  }

  var key: JSONValue
  var keyValue: KeyValue
  var id: String
  var emission: Int
  var value: Value
  var sequence: UInt64

  var json: JSONValue {
    switch value {
    case .none: .null
    case .json(let value), .document(let value): value
    }
  }

  var isDocument: Bool { if case .document = value { true } else { false } }
}

extension KeyValue {
  /// The value, with the members of objects ordered by their names.
  init(_ value: JSONValue) {
    switch value {
    case .null: self = .null
    case .bool(let value): self = .bool(value)
    case .int(let value): self = .int(value)
    case .uint(let value): self = .uint(value)
    case .double(let value): self = .double(value)
    case .string(let value): self = .string(value)
    case .array(let items): self = .array(items.map { KeyValue($0) })
    case .object(let members):
      self = .object(
        members.map { ($0.key, KeyValue($0.value)) }.sorted {
          Array($0.0.utf8).lexicographicallyPrecedes(Array($1.0.utf8))
        })
    default: self = .null
    }
  }
}

/// What rows are reduced with.
enum TestReduce: String, CaseIterable {
  case none, count, sum, min, max, average, median, deviation, stats, function, rereducing

  static let ofAnyValues: [TestReduce] = [.none, .count, .function, .rereducing]

  private static func number(_ value: JSONValue) -> Double { value.double ?? value["n"].double ?? 1 }

  var reduce: ViewReduce? {
    switch self {
    case .none: nil
    case .count: .count
    case .sum: .sum
    case .min: .min
    case .max: .max
    case .average: .average
    case .median: .median
    case .deviation: .standardDeviation
    case .stats: .stats
    case .function:
      .function(version: "1") { keys, values, rereduce in
        guard !rereduce, keys.count == values.count else { return "wrong call" }
        return .double(values.reduce(0) { $0 + TestReduce.number($1) })
      }
    case .rereducing:
      .function(version: "1", rereduces: true) { keys, values, rereduce in
        guard rereduce ? keys.isEmpty : keys.count == values.count else { return "wrong call" }
        return .double(values.reduce(0) { $0 + TestReduce.number($1) })
      }
    }
  }

  /// Reduces plain arrays.
  func naive(_ values: [JSONValue]) -> JSONValue {
    let numbers = values.map { $0.double ?? 0 }
    let sum = numbers.reduce(0, +)
    let squares = numbers.reduce(0) { $0 + $1 * $1 }
    let sorted = numbers.sorted()
    let count = Double(numbers.count)
    switch self {
    case .none: return .null
    case .count: return .double(count)
    case .sum: return .double(sum)
    case .min: return .double(sorted[0])
    case .max: return .double(sorted[sorted.count - 1])
    case .average: return .double(sum / count)
    case .median:
      let middle = sorted.count / 2
      return .double(sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2)
    case .deviation:
      guard sorted.count > 1 else { return .null }
      let mean = sum / count
      return .double((numbers.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / (count - 1)).squareRoot())
    case .stats:
      return [
        "count": .double(count), "sum": .double(sum), "sumsqr": .double(squares), "min": .double(sorted[0]),
        "max": .double(sorted[sorted.count - 1]),
      ]
    case .function, .rereducing: return .double(values.reduce(0) { $0 + TestReduce.number($1) })
    }
  }
}

/// Whether two results of reducers are the same: numbers may differ by the rounding of the naive one.
func isSameResult(_ left: JSONValue, _ right: JSONValue) -> Bool {
  if let left = left.double, let right = right.double {
    return abs(left - right) <= 1e-9 * Swift.max(1, abs(left), abs(right))
  }
  if let left = left.object, let right = right.object {
    let names = left.map(\.key)
    return names.count == right.map(\.key).count
      && names.allSatisfy { isSameResult(left[$0] ?? "none", right[$0] ?? "none") }
  }
  return left == right
}

/// A view of the tests as it should be.
struct NaiveView {
  var view: TestView
  var version: Int
  var reduce = TestReduce.none
  /// The rows as they were when the view was last updated; nil if there are none stored.
  var indexed: [NaiveRow]?

  /// The rows of a document, in the order of their emission.
  func map(_ document: NaiveDocument) -> [(JSONValue, NaiveRow.Value)] {
    guard let winner = document.winner, !document.id.hasPrefix("_design/"),
      case .object(let body)? = winner.body
    else { return [] }
    let isOdd = version % 2 == 1
    func optional(_ name: String) -> NaiveRow.Value { body[name].map { .json($0) } ?? .none }
    switch view.name {
    case "g/keys":
      guard let key = body[isOdd ? "k" : "n"] else { return [] }
      return [(key, optional(isOdd ? "n" : "k"))]
    case "g/parts":
      return (body["tags"]?.array ?? []).map {
        ([$0, body["k"] ?? .null, .int(Int64(version))], optional("n"))
      }
    case "g/typed":
      guard body["type"] == "t1", let key = body[isOdd ? "n" : "k"] else { return [] }
      var whole = body
      whole["_id"] = .string(document.id)
      whole["_rev"] = .string(winner.id.description)
      return [(key, .document(.object(whole)))]
    case "long":
      let text = (try? (body["k"] ?? .null).canonicalJSON()) ?? ""
      return [0, 500 + version, 1_400].map { (.string(String(repeating: "x", count: $0) + text), .none) }
    case "meta":
      var value: JSONObject = ["rev": .string(winner.id.description), "seq": .int(Int64(winner.sequence))]
      let conflicts = document.conflicts
      if !conflicts.isEmpty { value["conflicts"] = .array(conflicts.map { .string($0.id.description) }) }
      return [(.string(document.id), .json(.object(value)))]
    default:
      let number = Int64((body["n"]?.double ?? 0).rounded(.down))
      return (0..<(abs(number) % 5)).map { (.int(number % Int64(2 + version)), .json(.int($0))) }
    }
  }

  /// All rows in their order.
  func rows(_ documents: some Sequence<NaiveDocument>, _ order: KeyComparison) -> [NaiveRow] {
    var rows: [NaiveRow] = []
    for document in documents {
      for (emission, (key, value)) in map(document).enumerated() {
        rows.append(
          NaiveRow(
            key: key, keyValue: KeyValue(key), id: document.id, emission: emission, value: value,
            sequence: document.winner?.sequence ?? 0))
      }
    }
    return rows.sorted { left, right in
      let compared = order.compare(left.keyValue, right.keyValue)
      if compared != 0 { return compared < 0 }
      let (a, b) = (Array(left.id.utf8), Array(right.id.utf8))
      return a == b ? left.emission < right.emission : a.lexicographicallyPrecedes(b)
    }
  }
}

/// The options of a query, and a naive answer.
struct NaiveQuery: CustomStringConvertible {
  var startKey: JSONValue?
  var endKey: JSONValue?
  var startID: String?
  var endID: String?
  var includesStart = true
  var includesEnd = true
  var prefixMatchLevel = 0
  var keys: [JSONValue]?
  var isDescending = false
  var skip = 0
  var limit = 0
  var mapOnly = false
  var groupLevel = 0
  var groupsByKey = false
  var isNever = false
  var isFiltered = false
  var sort: [ViewSort] = []

  var description: String {
    func text(_ value: JSONValue?) -> String { value.map { String("\($0)".prefix(80)) } ?? "-" }
    return "start \(text(startKey)) \(startID?.prefix(30) ?? "-") \(includesStart), end \(text(endKey)) "
      + "\(endID?.prefix(30) ?? "-") \(includesEnd), prefix \(prefixMatchLevel), keys \(keys.map { "\($0)" } ?? "-"), "
      + "descending \(isDescending), skip \(skip), limit \(limit), mapOnly \(mapOnly), group \(groupLevel) "
      + "\(groupsByKey), never \(isNever), filter \(isFiltered), sort \(sort.map { "\($0.path) \($0.isAscending)" })"
  }

  func query(_ view: View) -> ViewQuery {
    var query = view.query()
    query.startKey = startKey
    query.endKey = endKey
    query.startKeyDocumentID = startID
    query.endKeyDocumentID = endID
    query.includesStart = includesStart
    query.includesEnd = includesEnd
    query.prefixMatchLevel = prefixMatchLevel
    query.keys = keys
    query.isDescending = isDescending
    query.skip = skip
    query.limit = limit
    query.mapOnly = mapOnly
    query.groupLevel = groupLevel
    query.groupsByKey = groupsByKey
    if isNever { query.updateMode = .never }
    if isFiltered {
      query.filter = { row in
        row.isReduced ? row.key.array != nil : (row.sourceDocumentID?.utf8.count ?? 0) % 2 == 0
      }
    }
    query.sort = sort
    return query
  }

  /// An answer: a row or a group.
  struct Answer {
    var key: JSONValue
    var id: String?
    var value: JSONValue
    var sequence: UInt64 = 0
    var isReduced = false
    var isDocument = false
  }

  private static func prefixMatch(_ key: KeyValue, _ level: Int) -> KeyValue {
    switch key {
    case .string(let text) where level > 0: return .string(text + "\u{FFFF}")
    case .array(let items) where level == 1: return .array(items + [.object([])])
    case .array(let items) where level > 1 && !items.isEmpty:
      return .array(items.dropLast() + [prefixMatch(items[items.count - 1], level - 1)])
    default: return key
    }
  }

  func answer(_ rows: [NaiveRow], _ reduce: TestReduce, _ order: KeyComparison) -> [Answer] {
    // The parts, in the order in which they are read.
    var parts: [[NaiveRow]]
    if let keys {
      parts = keys.map { key in rows.filter { order.compare($0.keyValue, KeyValue(key)) == 0 } }
    } else {
      var (minimum, minimumID, includesMinimum) = (startKey.map { KeyValue($0) }, startID, includesStart)
      var (maximum, maximumID, includesMaximum) = (endKey.map { KeyValue($0) }, endID, includesEnd)
      if isDescending {
        swap(&minimum, &maximum)
        swap(&minimumID, &maximumID)
        swap(&includesMinimum, &includesMaximum)
      }
      maximum = maximum.map { NaiveQuery.prefixMatch($0, prefixMatchLevel) }
      parts = [
        rows.filter { row in
          if let minimum {
            let compared = order.compare(row.keyValue, minimum)
            if compared < 0 || (compared == 0 && !includesMinimum) { return false }
            if compared == 0, let minimumID,
              Array(row.id.utf8).lexicographicallyPrecedes(Array(minimumID.utf8))
            {
              return false
            }
          }
          if let maximum {
            let compared = order.compare(row.keyValue, maximum)
            if compared > 0 || (compared == 0 && !includesMaximum) { return false }
            if compared == 0, let maximumID,
              Array(maximumID.utf8).lexicographicallyPrecedes(Array(row.id.utf8))
            {
              return false
            }
          }
          return true
        }
      ]
    }
    if isDescending { parts = parts.map { $0.reversed() } }
    var answers: [Answer] = []
    if groupLevel > 0 || groupsByKey || (reduce != .none && !mapOnly) {
      var groups: [(KeyValue, [NaiveRow])] = []
      for part in parts {
        var isFirst = groupLevel > 0 || groupsByKey
        for row in part {
          let key: KeyValue =
            groupsByKey ? row.keyValue : groupLevel > 0 ? row.keyValue.group(groupLevel) : .null
          if !isFirst || (groupLevel == 0 && !groupsByKey), let last = groups.last,
            order.compare(last.0, key) == 0
          {
            groups[groups.count - 1].1.append(row)
          } else {
            groups.append((key, [row]))
          }
          isFirst = false
        }
      }
      answers = groups.map { key, rows in
        Answer(key: key.value, id: nil, value: reduce.naive(rows.map(\.json)), isReduced: true)
      }
    } else {
      answers = parts.joined().map {
        Answer(key: $0.key, id: $0.id, value: $0.json, sequence: $0.sequence, isDocument: $0.isDocument)
      }
    }
    if isFiltered {
      answers = answers.filter { $0.isReduced ? $0.key.array != nil : ($0.id?.utf8.count ?? 0) % 2 == 0 }
    }
    if !sort.isEmpty {
      let keys = answers.map { answer in sort.map { NaiveQuery.value($0.path, of: answer) } }
      answers = answers.indices.sorted { left, right in
        for (place, sort) in sort.enumerated() {
          let compared = order.compare(keys[left][place], keys[right][place])
          if compared != 0 { return (compared < 0) == sort.isAscending }
        }
        return left < right
      }.map { answers[$0] }
    }
    return Array(answers.dropFirst(skip).prefix(limit > 0 ? limit : .max))
  }

  private static func value(_ path: String, of answer: Answer) -> KeyValue {
    switch path {
    case "key": KeyValue(answer.key)
    case "key[1]": KeyValue(answer.key.array.flatMap { $0.count > 1 ? $0[1] : nil } ?? .null)
    case "value.n": KeyValue(answer.value.object?["n"] ?? .null)
    default: answer.id.map { .string($0) } ?? .null
    }
  }
}
