import Fleece
import StorageConformance

// Random documents and indexes. Names and values are few, so that conditions meet documents, and of all types: numbers
// of all kinds, text that differs only by normalization or by what JSON escapes, nulls, nested arrays and objects.

/// Makes random documents, indexes and queries from a seed.
struct CaseGenerator {
  var random: SeededGenerator
  /// The IDs of the documents.
  var ids: [String] = []
  /// Full-text indexes, and the names of their columns.
  var fullText: [(name: String, columns: [String])] = []
  /// Whether documents are larger than a page of the engine.
  var areLarge = false

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  mutating func one<T>(_ items: [T]) -> T { items[Int.random(in: items.indices, using: &random)] }
  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
  mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

  // MARK: Values

  /// Composed and decomposed: the same to Swift, two strings here.
  static let composed = "\u{E9}"
  static let decomposed = "e\u{301}"

  static let numbers: [JSONValue] = [
    -1, 0, 1, 2, 3, 1.0, 2.0, 2.5, 0.0, -0.0, 1e300, .int(.max), .int(.min), .uint(.max), .uint(1 << 63),
    .double(9_223_372_036_854_775_808), .int(9_007_199_254_740_993), .double(9_007_199_254_740_992),
  ]
  static let texts: [String] = [
    "", "a", "A", "ab", "b", "Bc", "2", composed, decomposed, "\u{8}\u{C}\u{7F}\u{1}", "\"\\/", "x%_y", "d1",
    "\u{1F600}", "null",
  ]
  static let words = [
    "linux", "kernel", "engine", "quick", "the", "running", "run", "na\u{EF}ve", composed, decomposed,
  ]

  mutating func scalar() -> JSONValue {
    switch number(0...9) {
    case 0: .null
    case 1: .bool(chance(50))
    case 2...5: chance(80) ? one(Array(Self.numbers.prefix(8))) : one(Self.numbers)
    default: .string(chance(70) ? one(Array(Self.texts.prefix(7))) : one(Self.texts))
    }
  }

  mutating func smallNumber() -> JSONValue { one([-2, 0, 1, 1.5, 2, 3, 7, 1.0, 2.0]) }

  mutating func text() -> String {
    (0..<number(0...6)).map { _ in one(Self.words) }.joined(separator: one([" ", ", "]))
  }

  private mutating func array(_ depth: Int = 0) -> JSONValue {
    .array(
      (0..<number(0...3)).map { _ in
        switch number(0...11) {
        case 0: ["x": scalar()]
        case 1: ["x": .string("a"), "l": depth < 2 ? array(depth + 1) : []]
        case 2: depth < 2 ? array(depth + 1) : .null
        case 3: .string(text())
        default: scalar()
        }
      })
  }

  private mutating func object() -> JSONValue {
    var object: JSONObject = ["x": scalar(), "y": array()]
    if chance(20) { object["z"] = ["x": array(), "w": ["x": scalar()]] }
    return .object(object)
  }

  // MARK: Documents

  mutating func document() -> JSONValue {
    var body = JSONObject()
    if chance(85) { body["a"] = scalar() }
    if chance(85) { body["b"] = chance(80) ? smallNumber() : scalar() }
    if chance(85) { body["s"] = chance(90) ? .string(one(Self.texts)) : scalar() }
    if chance(60) { body["l"] = chance(90) ? array() : scalar() }
    if chance(60) { body["o"] = chance(90) ? object() : scalar() }
    if chance(60) { body["r"] = chance(90) ? .string(one(ids)) : scalar() }
    if chance(60) {
      body["t"] = chance(90) ? .string(text()) : .array([scalar(), .string(text()), [scalar()]])
    }
    if areLarge, chance(60) {
      body["big"] = .string(
        String(repeating: one(["a", "B", Self.composed]), count: one([3_000, 3_001, 9_000, 40_000])))
    }
    // Two properties: their names have other bytes.
    if chance(30) { body[Self.composed] = scalar() }
    if chance(30) { body[Self.decomposed] = scalar() }
    return .object(body)
  }

  /// The steps of a new database.
  mutating func steps() -> [DatabaseStep] {
    let count = chance(10) ? number(0...2) : chance(6) ? number(150...400) : number(3...30)
    areLarge = chance(15)
    ids = (0..<count).map { "d\($0)" } + [Self.composed, Self.decomposed, "x y"]
    fullText = []
    var steps: [DatabaseStep] = ids.map { .save(id: $0, body: document()) }
    let indexes = indexes()
    // Some indexes are filled at once, some document by document.
    if chance(50) { steps += indexes } else { steps = indexes + steps }
    for id in ids {
      if number(0...count + 20) < 3 { steps.append(.delete(id: id)) }
      if number(0...count + 20) < 3 {
        steps.append(.expire(id: id, at: Int64(number(4_000_000_000_000...4_000_000_000_003))))
      }
    }
    return steps
  }

  /// Changes of the documents that are there, and new ones.
  mutating func changes() -> [DatabaseStep] {
    var steps: [DatabaseStep] = []
    for _ in 0..<number(1...8) {
      let id = one(ids)
      switch number(0...9) {
      case 0: steps.append(.delete(id: id))
      case 1: steps.append(.purge(id: id))
      case 2: steps.append(.expire(id: id, at: chance(50) ? nil : 4_000_000_000_009))
      case 3:
        let new = "n\(number(0...20))"
        if !ids.contains(new) { ids.append(new) }
        steps.append(.save(id: new, body: document()))
      default: steps.append(.save(id: id, body: document()))
      }
    }
    return steps
  }

  // MARK: Indexes

  /// The expressions of indexes that also have values without a document. `$` stands for the source, with
  /// which queries name them.
  static let computed: [[String]] = [
    ["$.a", "TYPE($.b)", "IFMISSINGORNULL($.b, 0)"], ["$.b", "$.a IS MISSING", "TYPE($.s)"],
    ["TYPE($.a)", "$.b"], ["IFMISSING($.a, 1)", "TYPE($.a)"], ["$.s", "[$.a, 1]", "{\"x\": $.a}"],
    ["$.a", "CASE WHEN $.b > 1 THEN $.s ELSE 'none' END", "$.b"], ["$.r", "$.a = 1 OR $.a IS NOT VALUED"],
    ["ARRAY_LENGTH([$.a, $.b])", "$.a"], ["$.b", "$.s IS NOT NULL", "IFMISSING($.s, 'none')"],
    ["$.a", "NOT ($.b IS VALUED)", "ISARRAY($.l)"],
  ]

  private mutating func indexes() -> [DatabaseStep] {
    typealias Index = (on: [String], condition: String?, unnest: String?)
    let all: [Index] = [
      (["a"], nil, nil), (["s", "b"], nil, nil), (["b"], nil, nil), (["LOWER(s)"], nil, nil),
      (["o.x", "a"], nil, nil), (["b", "a"], "b > 0", nil), (["r"], nil, nil), ([], nil, "l"),
      (["a", "b", "s"], nil, nil), (["x"], nil, "o.y"), (["`\(Self.composed)`"], nil, nil),
      (["`\(Self.decomposed)`", "s"], nil, nil), (["a"], "s IS VALUED", nil), (["o"], nil, nil),
      (["l"], nil, nil), (["l[0]", "s"], nil, nil), (["r", "a", "b"], "a IS NOT MISSING", nil),
      (["TYPE(a)", "a"], nil, nil), (["u.x", "u"], nil, "l AS u"), (["b + 1"], nil, nil),
      (["big", "a"], nil, nil), (["b", "big"], nil, nil), (["b"], "LOWER(s) >= 'a'", nil),
      (["s"], "a = 1 OR a = 2", nil),
    ]
    let computed = Self.computed.map { expressions -> Index in
      (expressions.map { $0.replacing("$.", with: "") }, nil, nil)
    }
    var steps: [DatabaseStep] = []
    let percent = one([0, 20, 50])
    for (number, index) in (all + computed).enumerated() where chance(percent) {
      steps.append(.index(name: "i\(number)", on: index.on, condition: index.condition, unnest: index.unnest))
    }
    if chance(60) {
      fullText.append(("ft", ["t"]))
      let language: String? = chance(40) ? "english" : nil
      steps.append(
        .fullText(name: "ft", on: ["t"], condition: chance(20) ? "b > 0" : nil, language: language))
    }
    if chance(30) {
      fullText.append(("fu", ["t", "s", "r"]))
      steps.append(.fullText(name: "fu", on: ["t", "s", "r"], condition: nil, language: nil))
    }
    return steps
  }
}
