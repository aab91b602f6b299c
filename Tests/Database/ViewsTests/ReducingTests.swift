import Bytes
import Fleece
import Foundation
import TestSupport
import Testing

@testable import Views

@Suite struct ReducingTests {
  @Test("the reducers of numbers give what their names say")
  func numbers() throws {
    let values = ["231", "187", "187", "248", "309"]
    try expect(ViewReduce.count.reducer.result(values), equals: "5")
    try expect(ViewReduce.sum.reducer.result(values), equals: "1162")
    try expect(ViewReduce.min.reducer.result(values), equals: "187")
    try expect(ViewReduce.max.reducer.result(values), equals: "309")
    try expect(ViewReduce.average.reducer.result(values), equals: "232.4")
    try expect(ViewReduce.median.reducer.result(values), equals: "231")
    try expect(ViewReduce.median.reducer.result(["4", "1", "3", "2"]), equals: "2.5")
    try expect(
      ViewReduce.standardDeviation.reducer.result(["2", "4", "4", "4", "5", "5", "7", "9"]),
      equals: "2.138089935299395")
    try expect(ViewReduce.standardDeviation.reducer.result(["2"]), equals: "null")
    try expect(
      ViewReduce.standardDeviation.reducer.result(["1e300", "-1e300"]) == "1.4142135623730952e+300"
        || ViewReduce.standardDeviation.reducer.result(["1e300", "-1e300"]) == "1.414213562373095e+300")
    try expect(
      ViewReduce.stats.reducer.result(["1", "2.5", "-3"]),
      equals: #"{"count":3,"sum":0.5,"sumsqr":16.25,"min":-3,"max":2.5}"#)
  }

  @Test("strings with the text of a number count as the number")
  func numericStrings() throws {
    try expect(ViewReduce.sum.reducer.result([#""12""#, "1", #""0.5""#]), equals: "13.5")
    try expect(ViewReduce.max.reducer.result([#""12""#, "1"]), equals: "12")
  }

  @Test(
    "another value is an error that names the first document",
    arguments: [
      ViewReduce.sum, .min, .max, .average, .median, .standardDeviation, .stats,
    ])
  func notNumbers(reduce: ViewReduce) throws {
    for text in [#""x""#, "null", "true", "[1]", "{}", #""""#, #""1 ""#] {
      let error = #expect(throws: ViewReduceError.self) {
        try reduce.reducer.result(["1", text, "2", "false"])
      }
      expect(error?.code, equals: .notANumber)
      expect(error?.documentID, equals: "d1")
      expect(error?.message.contains(text), equals: true)
    }
    let error = #expect(throws: ViewReduceError.self) {
      try reduce.reducer.result(rows: [TestRow(key: "1", documentID: "whole", value: nil)])
    }
    expect(error?.documentID, equals: "whole")
  }

  @Test("sums are exact, and integers stay integers")
  func sums() throws {
    func sum(_ values: String...) throws -> String { try ViewReduce.sum.reducer.result(values) }
    try expect(sum("1e100", "1", "-1e100"), equals: "1.0")
    try expect(sum("0.1", "0.2", "0.3"), equals: "0.6")
    try expect(sum("0.1", "0.2", "-0.1", "-0.2"), equals: "0.0")
    try expect(sum("9007199254740993", "1"), equals: "9007199254740994")
    try expect(sum("9223372036854775807", "9223372036854775807"), equals: "18446744073709551614")
    try expect(sum("-18446744073709551615", "-1"), equals: "-18446744073709551616")
    try expect(
      sum("100000000000000000000000000000000000000", "1"), equals: "100000000000000000000000000000000000001")
    let most = "170141183460469231731687303715884105727"
    try expect(sum(most, most, most), equals: "510423550381407695195061911147652317181")
    try expect(sum("1.0", "2"), equals: "3.0")
    try expect(sum("5e-324", "5e-324"), equals: "1e-323")
    try expect(sum("1.7976931348623157e308", "-1.7976931348623157e308", "2.5"), equals: "2.5")
    let error = #expect(throws: ViewReduceError.self) {
      try sum("1.7976931348623157e308", "1.7976931348623157e308")
    }
    expect(error?.code, equals: .overflow)
  }

  @Test("numbers are read as Swift reads them")
  func parsing() throws {
    var random = SeededGenerator(seed: testSeed)
    func read(_ text: String) -> ReducedNumber? {
      Array(text.utf8).withUnsafeBytes { ReducedNumber($0) }
    }
    for _ in 0..<20_000 {
      var text = random.next() & 1 == 0 ? "-" : ""
      text += String(
        Int.random(in: 0...Int(pow(10, Double(Int.random(in: 1...18, using: &random)))), using: &random))
      let fraction = Int.random(in: 0...20, using: &random)
      if fraction > 0 {
        text +=
          "." + String((0..<fraction).map { _ in Character(String(Int.random(in: 0...9, using: &random))) })
      }
      if random.next() % 3 == 0 { text += "e\(Int.random(in: -310...270, using: &random))" }
      let number = try #require(read(text))
      if text.contains(where: { $0 == "." || $0 == "e" }) {
        expect(number.isDouble)
        expect(number.double.bitPattern, equals: Double(text)?.bitPattern, "\(text)")
      } else {
        expect(!number.isDouble)
        expect(number.double, equals: Double(text), "\(text)")
      }
    }
    for text in [
      "", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1 ", " 1", "0x1", "NaN", "1e999", "--1", "1.e3",
    ] {
      expect(read(text) == nil, "\(text)")
    }
  }

  @Test("the order of numbers is exact")
  func comparing() throws {
    let texts = [
      "-1e300", "-9007199254740993", "-9007199254740992.0", "-1", "-0.5", "0", "0.5", "9007199254740992.0",
      "9007199254740993", "1e300",
    ]
    let numbers = texts.compactMap { text in Array(text.utf8).withUnsafeBytes { ReducedNumber($0) } }
    for (index, left) in numbers.enumerated() {
      for (other, right) in numbers.enumerated() {
        expect(
          left.compare(right).signum(), equals: (index - other).signum(), "\(texts[index]) \(texts[other])")
      }
    }
    try expect(ViewReduce.min.reducer.result(["1.0", "1"]), equals: "1")
    try expect(ViewReduce.max.reducer.result(["-0.0", "0.0"]), equals: "0.0")
  }

  /// Values that fit a reducer.
  static func values(_ kind: Int, _ random: inout SeededGenerator) -> String {
    let number: String
    switch Int.random(in: 0...4, using: &random) {
    case 0: number = String(Int.random(in: -5...5, using: &random))
    case 1: number = String(Double.random(in: -1...1, using: &random))
    case 2: number = String(Int64.random(in: .min ... .max, using: &random))
    case 3:
      number = "\(Int.random(in: -99...99, using: &random))e\(Int.random(in: -140...140, using: &random))"
    default: number = String(Double(Int.random(in: -1000...1000, using: &random)) / 8)
    }
    switch kind {
    case 1:
      return "[" + (0..<Int.random(in: 0...3, using: &random)).map { _ in number }.joined(separator: ",")
        + "]"
    case 2:
      return #"{"a":\#(number),"b":{"c":[\#(number),1]}\#(random.next() & 1 == 0 ? #","d":1.5"# : "")}"#
    case 3: return #"[[\#(number),2],\#(number)]"#
    case 4: return random.next() % 40 == 0 ? #""x""# : number
    default: return number
    }
  }

  static let all: [(reduce: ViewReduce, kinds: [Int])] =
    [
      (.count, [0, 1, 4]), (.sum, [0, 4]), (.min, [0, 4]), (.max, [0, 4]), (.average, [0, 4]),
      (.standardDeviation, [0, 4]), (.stats, [0, 4]),
    ]
    + ["_count", "_sum", "_stats", "_approx_count_distinct", "_first", "_last", "_top_3", "_bottom_2"]
    .compactMap { name in
      ViewReduce.builtIn(name).map { ($0, name == "_stats" ? [0, 3, 4] : [0, 1, 2, 4]) }
    }

  @Test("blocks, insertions and removals end in the partial of all rows", arguments: 0..<all.count)
  func partials(index: Int) throws {
    let (reduce, kinds) = Self.all[index]
    let reducer = reduce.reducer
    var random = SeededGenerator(seed: testSeed &+ UInt64(index))
    for _ in 0..<150 {
      let kind = kinds.randomElement(using: &random) ?? 0
      let rows = (0..<Int.random(in: 1...30, using: &random)).map { _ in Self.values(kind, &random) }.testRows
      let whole = try reducer.partial(rows)
      // Blocks.
      let merged = try reducer.makeReduction()
      var start = 0
      while start < rows.count {
        let end = Int.random(in: start + 1...rows.count, using: &random)
        let partial = try reducer.partial(rows[start..<end])
        try merged.merge(partial)
        start = end
      }
      try expect(merged.partial, equals: whole, "\(reducer.identity): \(rows.map(\.value))")
      // Changes.
      let changed = try reducer.makeReduction()
      try changed.merge(reducer.partial([]))
      var present: [TestRow] = []
      var steps = rows.shuffled(using: &random).map { (row: $0, isInsert: true) }
      steps.insert((rows[0], true), at: 0)
      for step in steps where !present.contains(step.row) {
        if random.next() % 3 == 0, let victim = present.randomElement(using: &random) {
          present.removeAll { $0 == victim }
          var isDone = false
          try victim.withRow { isDone = try changed.remove($0, expanding: testExpansion) }
          if !isDone {
            changed.reset()
            try changed.merge(reducer.partial(present.sorted { $0.key < $1.key }))
          }
          steps.append((victim, true))
        }
        present.append(step.row)
        var isDone = false
        try step.row.withRow { isDone = try changed.insert($0, expanding: testExpansion) }
        if !isDone {
          changed.reset()
          try changed.merge(reducer.partial(present.sorted { $0.key < $1.key }))
        }
        try expect(
          changed.partial, equals: reducer.partial(present.sorted { $0.key < $1.key }),
          "\(reducer.identity): \(present.map(\.value))")
      }
    }
  }

  @Test("damaged partials are errors", arguments: 0..<all.count)
  func damagedPartials(index: Int) throws {
    let (reduce, kinds) = Self.all[index]
    let reducer = reduce.reducer
    var random = SeededGenerator(seed: testSeed &+ UInt64(index))
    for _ in 0..<2_000 {
      let kind = kinds.randomElement(using: &random) ?? 0
      var partial = try reducer.partial((0..<5).map { _ in Self.values(kind, &random) }.testRows)
      if random.next() & 1 == 0 {
        partial.removeLast(Int.random(in: 0...partial.count, using: &random))
      } else if let place = partial.indices.randomElement(using: &random) {
        partial[place] = UInt8(truncatingIfNeeded: random.next())
      }
      let reduction = try reducer.makeReduction()
      do {
        try reduction.merge(partial)
        _ = try reduction.text
      } catch is ViewReduceError {}
    }
  }
}
