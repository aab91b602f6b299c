import Bytes
import Fleece
import TestSupport
import Testing

@testable import Views

@Suite struct ReducingBuiltInTests {
  private func result(_ name: String, _ values: String...) throws -> String {
    try #require(ViewReduce.builtIn(name)).reducer.result(values)
  }

  @Test("only CouchDB's names are known")
  func names() {
    expect(ViewReduce.builtIn("_nosuch") == nil)
    expect(ViewReduce.builtIn("sum") == nil)
  }

  @Test("_first and _last are the values of the first and the last row")
  func positions() throws {
    try expect(result("_first", "3", "1", "2"), equals: "3")
    try expect(result("_last", "3", "1", "{\"a\":2}"), equals: "{\"a\":2}")
  }

  @Test("_top_N and _bottom_N are different values in the order of the collation")
  func ranks() throws {
    try expect(result("_top_3", "3", "1", "2", "3", "5"), equals: "[5,3,2]")
    try expect(result("_bottom_2", "\"b\"", "\"B\"", "[1]", "\"a\"", "\"a\""), equals: "[\"a\",\"b\"]")
    try expect(result("_top_2", "null", "true", "{}", "[]"), equals: "[{},[]]")
    // 1 and 1.0 are equal: the first one stays.
    try expect(result("_top_5", "1", "1.0"), equals: "[1]")
    for name in ["_top_", "_top_0", "_top_101", "_bottom_-1", "_top_5x", "_topp_5"] {
      expect(ViewReduce.builtIn(name) == nil, "\(name)")
    }
    let reducer = try #require(ViewReduce.builtIn("_top_2")).reducer
    let reduction = try reducer.makeReduction()
    try reduction.merge(try reducer.partial(["7", "9", "8"].testRows))
    try reduction.merge(try reducer.partial(["1", "8", "10"].testRows))
    try expect(reduction.text, equals: "[10,9]")
  }

  @Test("_sum adds numbers, arrays and objects as CouchDB does")
  func sums() throws {
    try expect(result("_sum", "1", "2.5"), equals: "3.5")
    try expect(result("_sum", "[1,21]", "[1,9]"), equals: "[2,30]")
    try expect(result("_sum", "[1,21]", "5", "[1,2,3]"), equals: "[7,23,3]")
    try expect(result("_sum", "[]"), equals: "[0]")
    try expect(
      result("_sum", #"{"a":52,"b":{"c":1}}"#, #"{"a":52,"b":{"c":1}}"#), equals: #"{"a":104,"b":{"c":2}}"#)
    try expect(result("_sum", #"{"b":[1]}"#, #"{"a":1,"b":2}"#), equals: #"{"a":1,"b":[3]}"#)
  }

  @Test(
    "_sum of objects with many different members is CouchDB's error, and of those with the same ones isn't")
  func wideSums() throws {
    func object(_ first: Int, _ count: Int) -> String {
      "{" + (first..<first + count).map { "\"k\($0)\":1" }.joined(separator: ",") + "}"
    }
    func isRefused(_ values: [String]) throws -> Bool {
      let reducer = try #require(ViewReduce.builtIn("_sum")).reducer
      let text = try reducer.result(values)
      return text.hasPrefix(
        #"{"error":"builtin_reduce_error","reason":"Reduce output must shrink more rapidly: input size: "#)
    }
    try expect(!isRefused([object(0, 300)]))
    try expect(isRefused([object(0, 1_000)]))
    try expect(!isRefused((0..<4).map { _ in object(0, 1_000) }))
    try expect(isRefused((0..<4).map { object($0 * 1_000, 1_000) }))
    try expect(isRefused((0..<20).map { object($0 * 300, 300) }))
    // Partial sums don't grow with the rows.
    let reducer = try #require(ViewReduce.builtIn("_sum")).reducer
    let reduction = try reducer.makeReduction()
    for number in 0..<2_000 {
      try [object(number * 100, 100)].testRows[0].withRow { try reduction.add($0, expanding: testExpansion) }
    }
    try expect(reduction.partial.count < 200)
    let other = try reducer.makeReduction()
    try other.merge(try reduction.partial)
    try other.merge(try reducer.partial([object(0, 10)].testRows))
    try expect(other.text.contains("must shrink"))
    // One whose members come again is as long as one row.
    let narrow = try reducer.partial((0..<100).map { _ in object(0, 9_000) }.testRows)
    expect(narrow.count > 64 << 10 && narrow[0] == 0)
  }

  @Test("_sum of other values is CouchDB's error")
  func sumErrors() throws {
    let start =
      #"{"error":"builtin_reduce_error","reason":"The _sum function requires that map values be numbers, arrays of numbers, or objects. Objects cannot be mixed with other data structures. Objects can be arbitrarily nested, provided that the values for all fields are themselves numbers, arrays of numbers, or objects.","caused_by":"#
    try expect(result("_sum", #""text""#, #""other""#), equals: start + #""text"}"#)
    try expect(result("_sum", "1", "null", "true"), equals: start + "null}")
    try expect(result("_sum", "1", #"{"a":1}"#, "2"), equals: start + "3}")
    try expect(result("_sum", #"{"a":1}"#, #"{"a":{}}"#), equals: start + "1}")
    try expect(result("_sum", #"[1,"x"]"#), equals: start + #"[1,"x"]}"#)
  }

  @Test("_stats has CouchDB's members")
  func stats() throws {
    try expect(
      result("_stats", "7", "-54", "6685"),
      equals: #"{"sum":6638,"count":3,"min":-54,"max":6685,"sumsqr":44692190}"#)
    try expect(
      result("_stats", "[1,2]", "[3,4.5]"),
      equals:
        #"[{"sum":4,"count":2,"min":1,"max":3,"sumsqr":10},{"sum":6.5,"count":2,"min":2,"max":4.5,"sumsqr":24.25}]"#
    )
    try expect(
      result("_stats", #"{"sum":5,"count":2,"min":1,"max":4,"sumsqr":17}"#, "10"),
      equals: #"{"sum":15,"count":3,"min":1,"max":10,"sumsqr":117}"#)
    for values in [
      [#""x""#], ["1", "null"], [#"{"sum":1}"#], ["[1]", "[1,2]"], ["1", "[1]"],
      [#"{"sum":"x","count":2,"min":1,"max":4,"sumsqr":17}"#],
    ] {
      let error = #expect(throws: ViewReduceError.self) {
        try #require(ViewReduce.builtIn("_stats")).reducer.result(values)
      }
      expect(error?.code, equals: .invalidValue)
    }
  }

  @Test("keys are hashed in Erlang's external form")
  func externalTerms() throws {
    func term(_ json: String) throws -> String {
      var buffer = ByteBuffer()
      try Array(json.utf8).withUnsafeBytes { text in
        var scanner = JSONScanner(text)
        try ExternalTerm.append(&scanner, to: &buffer)
      }
      return buffer.bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    }
    try expect(term("null"), equals: "836400046e756c6c")
    try expect(term("true"), equals: "8364000474727565")
    try expect(term("255"), equals: "8361ff")
    try expect(term("-1"), equals: "8362ffffffff")
    try expect(term("256"), equals: "836200000100")
    try expect(term("2147483648"), equals: "836e040000000080")
    try expect(term("-9223372036854775808"), equals: "836e08010000000000000080")
    try expect(term("1.5"), equals: "83463ff8000000000000")
    try expect(term(#""é\n""#), equals: "836d00000003c3a90a")
    try expect(term("[]"), equals: "836a")
    try expect(term("[1,2]"), equals: "836b00020102")
    try expect(term("[1,-2]"), equals: "836c0000000261016" + "2fffffffe6a")
    try expect(term(#"["a"]"#), equals: "836c000000016d00000001616a")
    try expect(term("{}"), equals: "8368016a")
    try expect(term(#"{"a":[]}"#), equals: "8368016c0000000168026d00000001616a6a")
    for text in ["", "[", "[1", #"{"a"}"#, "nul", #""\u12"#, "1 2", "[1,]x"] {
      #expect(throws: ViewReduceError.self, "\(text)") { try term(text) }
    }
  }

  @Test(
    "_approx_count_distinct is near the number of distinct keys",
    arguments: [1, 10, 100, 700, 1_500, 3_000, 8_000, 20_000, 100_000])
  func distinct(count: Int) throws {
    let reducer = try #require(ViewReduce.builtIn("_approx_count_distinct")).reducer
    let rows = (0..<2 * count).map {
      TestRow(key: "k", documentID: "d\($0)", keyJSON: "\($0 % count)", value: "1")
    }
    let estimate = try #require(Int(try reducer.result(rows: rows)))
    // Three times the standard error of 2,048 registers.
    expect(abs(Double(estimate - count)) <= 0.07 * Double(count))
  }

  /// Where linear counting ends (1,800) and where the correction ends (10,240), and on both sides.
  @Test("_approx_count_distinct isn't biased, whichever way the number is estimated")
  func distinctBias() throws {
    let reducer = try #require(ViewReduce.builtIn("_approx_count_distinct")).reducer
    let counts = [1_000, 1_750, 1_900, 2_500, 4_000, 7_000, 10_000, 11_000, 14_000]
    let sets = 30
    var errors = Array(repeating: 0.0, count: counts.count)
    for set in 0..<sets {
      let reduction = try reducer.makeReduction()
      var added = 0
      for (place, count) in counts.enumerated() {
        while added < count {
          let row = TestRow(key: "k", documentID: "d", keyJSON: "[\(set),\(added)]", value: "1")
          try row.withRow { try reduction.add($0, expanding: testExpansion) }
          added += 1
        }
        let estimate = try #require(Double(try reduction.text))
        errors[place] += (estimate - Double(count)) / Double(count) / Double(sets)
      }
    }
    // Four times the standard error of the mean of 30 sets. Without a correction, the mean is 21 % too high at 2,500.
    for (count, error) in zip(counts, errors) { expect(abs(error) < 0.017, "\(count): \(error)") }
  }

  @Test("a function gets keys and values, and its own results")
  func functions() throws {
    let reduce = ViewReduce.function(version: "1", rereduces: true) { keys, values, rereduce in
      expect(rereduce ? keys.isEmpty : keys.count == values.count)
      return .int(values.reduce(0) { $0 + ($1.int ?? 0) })
    }
    let values = (1...5_000).map(String.init)
    try expect(reduce.reducer.result(values), equals: "12502500")
    let merged = try reduce.reducer.makeReduction()
    try merged.merge(reduce.reducer.partial(values.testRows[..<100]))
    for row in values.testRows[100..<150] { try row.withRow { try merged.add($0, expanding: testExpansion) } }
    try merged.merge(reduce.reducer.partial([]))
    try merged.merge(reduce.reducer.partial(values.testRows[150...]))
    try expect(merged.text, equals: "12502500")

    let keys = ViewReduce.function(version: "1") { keys, values, rereduce in
      expect(!rereduce)
      return .array(keys + values)
    }
    try expect(
      keys.reducer.result(rows: [TestRow(key: "a", documentID: "d", keyJSON: #"["k"]"#, value: nil)]),
      equals: #"[["k"],{"_id":"x","n":1}]"#)
    expect(!keys.reducer.canRereduce)
    expect(keys.reducer.identity != reduce.reducer.identity)

    let script = ViewReduce.script(identity: "s") { keys, values, rereduce in
      Array("{\"keys\":".utf8) + keys + Array(",\"values\":".utf8) + values + Array("}".utf8)
    }
    try expect(
      script.reducer.result(rows: [TestRow(key: "a", documentID: "d\"", keyJSON: "3", value: "null")]),
      equals: #"{"keys":[[3,"d\""]],"values":[null]}"#)
  }

  @Test("an error of a function is kept as the result")
  func failingFunctions() throws {
    struct No: Error {}
    let reduce = ViewReduce.function(version: "1", rereduces: true) { _, values, _ in
      if values.contains(13) { throw No() }
      return .int(Int64(values.count))
    }
    let merged = try reduce.reducer.makeReduction()
    try merged.merge(reduce.reducer.partial(["1", "13"].testRows))
    try merged.merge(reduce.reducer.partial(["1"].testRows))
    let error = #expect(throws: ViewReduceError.self) { try merged.text }
    expect(error?.code, equals: .failed)
  }

  @Test("functions that need all rows at once have a bound")
  func bounds() throws {
    let error = #expect(throws: ViewReduceError.self) {
      try MedianReducer(maximumBytes: 100).result((0..<10).map(String.init))
    }
    expect(error?.code, equals: .tooLarge)
    let function = FunctionReducer(identity: "", canRereduce: false, keyForm: .key, maximumBytes: 100) {
      _, values, _ in values
    }
    let large = #expect(throws: ViewReduceError.self) { try function.result((0..<100).map(String.init)) }
    expect(large?.code, equals: .tooLarge)
  }
}
