import Fleece
import TestSupport
import Testing

@testable import Views

@Suite("Selectors") struct MangoSelectorTests {
  private func selector(_ text: String) throws -> MangoSelector {
    try MangoSelector(try OrderedJSON(parsing: Array(text.utf8)))
  }

  private func passes(_ document: JSONValue, _ text: String) throws -> Bool {
    try MangoMatcher(try selector(text)).matches(document)
  }

  @Test("random selectors choose what a naive evaluation of their JSON chooses") func random() throws {
    var random = RandomSelectors(seed: testSeed)
    var (chosen, left) = (0, 0)
    let documents = (0..<40).map { _ in random.object() }
    for _ in 0..<(isLong ? 200_000 : 20_000) {
      let json = random.selector()
      let matcher = try MangoMatcher(try MangoSelector(json))
      for _ in 0..<4 {
        let document = documents[Int.random(in: 0..<documents.count, using: &random.random)]
        let wanted = NaiveSelector.passes(document, json)
        if wanted { chosen += 1 } else { left += 1 }
        guard matcher.matches(document) != wanted else { continue }
        Issue.record("TOUCHSTONE_SEED=\(testSeed): \(json) of \(document) should be \(wanted)")
        return
      }
    }
    // Both happen often enough to mean something.
    expect(chosen > 5_000 && left > 5_000, "\(chosen) chosen, \(left) not")
  }

  @Test("the order of values is that of CouchDB's collation") func order() throws {
    let ascending: [JSONValue] = [
      .null, false, true, -1, 0, 0.5, 1, "", "a", "A", "aa", "b", "B", "ä", [], [1], [1, 2], [2], [:],
      ["a": 1],
      ["a": 2], ["a": 2, "b": 1], ["b": 1],
    ]
    let collation = try MangoCollation()
    for (place, value) in ascending.enumerated() {
      for (other, bound) in ascending.enumerated() {
        // "ä" comes behind "a" and its relatives.
        if value == "ä" || bound == "ä" { continue }
        let order = collation.compare(value, MangoOperand(bound, collation))
        expect(order.signum() == (place - other).signum(), "\(value) and \(bound): \(order)")
      }
    }
    // Text that is canonically equivalent is equal, and numbers are equal whatever their form.
    try expect(passes(["x": "\u{E9}"], #"{"x": "e\u0301"}"#))
    try expect(passes(["x": 1.0], #"{"x": 1}"#))
    try expect(passes(["x": 9_007_199_254_740_993], #"{"x": {"$gt": 9007199254740992}}"#))
  }

  @Test("text that ASCII decides is in ICU's order") func text() throws {
    let parts: [String] =
      (0x20...0x7E).map { String(Unicode.Scalar($0)) } + [
        "a", "A", "l", "L", "i", "\u{1}", "\u{7F}", "\u{AD}", "\u{B7}", "\u{C9}", "\u{E9}", "\u{F6}",
        "\u{140}", "\u{300}",
        "\u{301}", "\u{328}", "\u{387}", "\u{3B1}", "\u{439}", "\u{438}\u{306}", "\u{4E2D}", "\u{E40}\u{E01}",
        "\u{200B}",
        "\u{FFFF}", "\u{1F600}",
      ]
    let collation = try MangoCollation()
    var random = SeededGenerator(seed: testSeed)
    func text(_ start: String) -> String {
      start
        + (0..<Int.random(in: 0...4, using: &random)).map { _ in parts.randomElement(using: &random) ?? "" }
        .joined()
    }
    var (decided, left) = (0, 0)
    for _ in 0..<(isLong ? 500_000 : 50_000) {
      let start = text("")
      let (one, other) = (text(start), text(start))
      let order = Array(one.utf8).withUnsafeBytes { one in
        Array(other.utf8).withUnsafeBytes { MangoText.shared.compare(one, $0) }
      }
      guard let order else {
        left += 1
        continue
      }
      decided += 1
      let (key, otherKey) = (collation.sortKey(of: one), collation.sortKey(of: other))
      let wanted = key == otherKey ? 0 : key.lexicographicallyPrecedes(otherKey) ? -1 : 1
      guard order.signum() != wanted else { continue }
      Issue.record("TOUCHSTONE_SEED=\(testSeed): \(one.unicodeScalars) and \(other.unicodeScalars): \(order)")
      return
    }
    expect(decided > 10_000 && left > 1_000, "\(decided) decided, \(left) not")
  }

  @Test("IDs are compared by their bytes, and binary data are their text") func inPlace() throws {
    let keys = SharedKeysBuilder(.empty)
    let encoder = BodyEncoder()
    try encoder.encode(
      ["data": .data([1, 2, 3]), "list": [.data([1, 2, 3])], "b": ["_id": "b"]], keys: keys)
    func passes(_ text: String, id: String = "B") throws -> Bool {
      let matcher = try MangoMatcher(try selector(text))
      expect(matcher.needsBodyAlone)
      return try Array(id.utf8).withUnsafeBytes {
        try matcher.matches(id: $0.bytes, Value(rootOf: encoder.fleece.bytes), keys.snapshot())
      }
    }
    // "B" comes before "a" by its bytes, and behind it in the collation.
    try expect(passes(#"{"_id": {"$lt": "a"}}"#) && passes(#"{"_id": {"$in": ["a", "B"]}}"#))
    try expect(!passes(#"{"_id": {"$exists": false}}"#) && !passes(#"{"_id.x": {"$exists": false}}"#))
    try expect(passes(#"{"_id": {"$regex": "^B$"}, "_id.x": {"$not": {"$gt": null}}}"#) == false)
    try expect(passes(#"{"data": "AQID"}"#) && passes(#"{"data": {"$gt": "AQIC", "$type": "string"}}"#))
    try expect(passes(#"{"list": {"$elemMatch": {"$beginsWith": "AQ"}}}"#))
    try expect(passes(#"{"list": {"$in": ["AQID"]}}"#))
    for name in ["_rev", "_deleted", "_attachments"] {
      let matcher = try MangoMatcher(try selector("{\"\(name)\": {\"$exists\": false}}"))
      expect(!matcher.needsBodyAlone)
    }
  }

  @Test("fields have escaped dots, places in arrays, and aren't empty") func fields() throws {
    let document: JSONValue = ["a.b": 1, "c": ["d": [["e": 2], 3]]]
    try expect(passes(document, #"{"a\\.b": 1}"#))
    try expect(passes(document, #"{"c": {"d": {"$size": 2}}}"#))
    try expect(passes(document, #"{"c.d.0.e": 2}"#))
    try expect(!passes(document, #"{"c.d.2": {"$exists": false}}"#))
    try expect(passes(document, #"{"c.x": {"$exists": false}}"#))
    for text in [#"{"a..b": 1}"#, #"{"": 1}"#, #"{".": 1}"#] {
      #expect(throws: CouchDBError.self) { try selector(text) }
    }
  }

  @Test(
    "a wrong selector is CouchDB's error",
    arguments: [
      (#"[]"#, "invalid_selector_json", "Selector must be a JSON object, not: []"),
      (#"{"a": {"$foo": 1}}"#, "invalid_operator", "Invalid operator: $foo"),
      (#"{"$gt": 1}"#, "invalid_selector", "One or more conditions is missing a field name."),
      (#"{"a": {"$in": 1}}"#, "bad_arg", "Bad argument for operator $in: 1"),
      (#"{"a": {"$regex": "("}}"#, "bad_arg", "Bad argument for operator $regex: <<40>>"),
      (#"{"a": {"$regex": 1}}"#, "invalid_operator", "Invalid operator: $regex"),
      (#"{"a": {"$beginsWith": true}}"#, "invalid_operator", "Invalid operator: $beginsWith"),
      (#"{"a": {"$mod": [1]}}"#, "bad_arg", "Bad argument for operator $mod: [1]"),
      (#"{"a": {"$mod": [0, 1]}}"#, "bad_arg", "Bad argument for operator $mod: [0,1]"),
      (#"{"a": {"$size": -1}}"#, "bad_arg", "Bad argument for operator $size: -1"),
      (#"{"a": {"$exists": "x"}}"#, "bad_arg", "Bad argument for operator $exists: <<120>>"),
      (#"{"$and": {}}"#, "bad_arg", "Bad argument for operator $and: {[]}"),
      (#"{"a": {"$where": 1}}"#, "not_supported", "Unsupported operator: $where"),
    ])
  func errors(_ text: String, _ error: String, _ reason: String) {
    do {
      _ = try selector(text)
      Issue.record("\(text) should be refused")
    } catch let found as CouchDBError {
      expect(found, equals: CouchDBError(400, error, reason))
    } catch { Issue.record(error) }
  }

  @Test(
    "the normal form has whole fields, and negations at the conditions",
    arguments: [
      (#"{"a": {"b": 1, "c": {"$gt": 2}}}"#, #"{"$and":[{"a.b":{"$eq":1}},{"a.c":{"$gt":2}}]}"#),
      (#"{"$not": {"$and": [{"a": {"$gt": 1}}, {"b": 2}]}}"#, #"{"$or":[{"a":{"$lte":1}},{"b":{"$ne":2}}]}"#),
      (#"{"$nor": [{"a": 1}, {"b": {"$in": [1]}}]}"#, #"{"$and":[{"a":{"$ne":1}},{"b":{"$nin":[1]}}]}"#),
      (#"{"a": {"$not": {"$regex": "x"}}}"#, #"{"a":{"$not":{"$regex":"x"}}}"#),
      (#"{"a": {"$elemMatch": {"$not": {"b": 1}}}}"#, #"{"a":{"$elemMatch":{"$not":{"b":{"$eq":1}}}}}"#),
      (#"{}"#, #"{}"#),
    ])
  func normalForm(_ text: String, _ wanted: String) throws {
    try expect(String(decoding: selector(text).json.jsonText, as: UTF8.self), equals: wanted)
  }

  @Test("the expressions of one document have so many steps together, and end when nobody waits")
  func effort() throws {
    // Each text alone would take minutes.
    let hostile: JSONValue = .array((0..<300).map { .string(String(repeating: "a", count: 28 + $0 % 3)) })
    let matcher = try MangoMatcher(try selector(#"{"l": {"$elemMatch": {"$regex": "(a+)+$b"}}}"#))
    expect(!matcher.matches(["l": hostile]) && !matcher.wasCancelled)
    // The next document has its own.
    expect(!matcher.matches(["l": ["aab"]]))
    let other = try MangoMatcher(try selector(#"{"l": {"$elemMatch": {"$regex": "^a+b$"}}}"#))
    expect(other.matches(["l": ["x", "aab"]]))

    var asked = 0
    matcher.isCancelled = {
      asked += 1
      return asked > 3
    }
    expect(!matcher.matches(["l": hostile]) && matcher.wasCancelled)
    let list = (0..<5_000).map { "{\"n\": \($0)}" }.joined(separator: ",")
    let wide = try MangoMatcher(try selector("{\"$or\": [\(list)]}"))
    expect(wide.matches(["n": 4_999]) && !wide.wasCancelled)
    wide.isCancelled = { true }
    expect(!wide.matches(["n": 4_999]) && wide.wasCancelled)
    wide.isCancelled = { false }
    expect(wide.matches(["n": 4_999]) && !wide.wasCancelled)
  }
}
