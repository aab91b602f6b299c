import TestSupport

@testable import Query
@testable import Touchstone

/// Every function of the query language, evaluated in queries of every engine.
@Suite struct FunctionVectorTests {
  /// What an aggregate makes of the property `x` of documents, some of which haven't got it.
  private static let aggregates: [(call: String, name: String, result: JSONValue)] = [
    ("COUNT(x)", "COUNT", 5), ("COUNT(DISTINCT x)", "COUNT", 4), ("SUM(x)", "SUM", 8.0),
    ("AVG(x)", "AVG", 2.0),
    ("MIN(x)", "MIN", 1), ("MAX(x)", "MAX", "a"), ("ARRAY_LENGTH(ARRAY_AGG(x))", "ARRAY_AGG", 6),
    ("ARRAY_LENGTH(ARRAY_AGG(DISTINCT x))", "ARRAY_AGG", 5),
    ("ARRAY_SORT(ARRAY_AGG(x))[0]", "ARRAY_AGG", .null),
    ("COUNTN(x)", "COUNTN", 4), ("COUNTN(DISTINCT x)", "COUNTN", 3), ("COUNT(ALL x)", "COUNT", 5),
    ("MEAN(x)", "AVG", 2.0), ("MEDIAN(x)", "MEDIAN", 2.0), ("MEDIAN(DISTINCT x + 0.5)", "MEDIAN", 2.5),
    ("MEDIAN(gone)", "MEDIAN", .null), ("STDDEV(x)", "STDDEV", 0.816496580927726),
    ("STDDEV(x) FILTER (WHERE x = 1)", "STDDEV", 0.0), ("STDDEV(gone)", "STDDEV", .null),
    ("STDDEV_SAMP(x)", "STDDEV_SAMP", 0.816496580927726),
    ("STDDEV_SAMP(x) FILTER (WHERE x = 1)", "STDDEV_SAMP", .null),
    ("STDDEV_POP(x)", "STDDEV_POP", 0.707106781186548),
    ("STDDEV_POP(DISTINCT x)", "STDDEV_POP", 0.816496580927726),
    ("VARIANCE(x)", "VARIANCE", 0.666666666666667), ("VAR_SAMP(x)", "VARIANCE_SAMP", 0.666666666666667),
    ("VAR_SAMP(x) FILTER (WHERE x = 1)", "VARIANCE_SAMP", .null), ("VAR_POP(x)", "VARIANCE_POP", 0.5),
    ("SUM(x) FILTER (WHERE x > 1)", "SUM", 7.0), ("COUNT(*) FILTER (WHERE x IS VALUED)", "COUNT", 5),
    ("COUNT(*) FILTER (WHERE x = 99)", "COUNT", 0),
  ]

  /// What the functions of full text say of the documents that `MATCH(words, 'castle')` finds.
  private static let fullText: [(call: String, name: String, result: JSONValue)] = [
    ("SNIPPET(words, '[', ']')", "SNIPPET", "an old [castle]"),
    ("OFFSETS(words)", "OFFSETS", [["column": "text", "length": 6, "start": 7, "term": 0]]),
  ]

  @Test("every function of the table is evaluated by a vector")
  func everyFunctionHasAVector() {
    let evaluated = Set(
      FunctionVector.scalars.map(\.name) + Self.aggregates.map(\.name) + Self.fullText.map(\.name))
    let unknown = evaluated.subtracting(QueryFunction.all.keys)
    // Those with another result each time have a suite of their own.
    let lasting = QueryFunction.all.values.filter { $0.volatility < .run && !$0.isWindowFunction }.map(\.name)
    let missing = Set(lasting).subtracting(evaluated)
    expect(missing.isEmpty, "functions without a vector: \(missing.sorted())")
    expect(unknown.isEmpty, "vectors of functions that aren't there: \(unknown.sorted())")
  }

  @Test("functions give the same of literals, parameters and properties", arguments: someEngines)
  func scalars(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.inBatch {
        for (number, vector) in FunctionVector.scalars.enumerated() {
          var body = JSONObject()
          for (index, argument) in vector.arguments.enumerated() {
            if let argument { body["a\(index)"] = argument }
          }
          try database.save("v\(number)", .value(.object(body)))
        }
      }
      for (number, vector) in FunctionVector.scalars.enumerated() {
        var parameters: [String: JSONValue] = [:]
        for (index, argument) in vector.arguments.enumerated() { parameters["a\(index)"] = argument }
        let literals = vector.arguments.map { $0.map(QueryExpression.init(literal:)) ?? .missing }
        let given = vector.arguments.enumerated().map { index, argument in
          argument == nil ? QueryExpression.missing : .parameter("a\(index)")
        }
        let properties = vector.arguments.indices.map { QueryExpression.property("a\($0)") }
        for (form, arguments) in [
          ("literals", literals), ("parameters", given), ("properties", properties),
        ] {
          let call = QueryExpression.call(FunctionCall(vector.name, arguments))
          let query = Query.select(.expression(call).as("v")).from()
            .where(Meta.id .== .string("v\(number)"))
          let prepared = try database.query(query)
          let needed = Set(prepared.parameterNames)
          let rows = try prepared.run(parameters.filter { needed.contains($0.key) })
          let value = try rows.first.map { try $0["v"].jsonValue() }
          expect(rows.count, equals: 1)
          expect(
            Self.areEqual(value ?? nil, vector.result),
            "\(vector) of \(form) gives \(String(describing: value ?? nil)), not \(String(describing: vector.result))"
          )
        }
      }
    }
  }

  @Test("aggregates and functions of full text give what they should", arguments: someEngines)
  func rows(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.fill([
        ("1", #"{"x":2}"#), ("2", #"{"x":2.0}"#), ("3", #"{"x":3}"#), ("8", #"{"x":1}"#),
        ("4", #"{"x":"a"}"#), ("5", #"{"x":null}"#),
        ("6", #"{"text":"an old castle"}"#), ("7", #"{"text":"a river"}"#),
      ])
      try database.createFullTextIndex("words", on: ["text"])
      for (call, _, result) in Self.aggregates {
        let value = try database.query("SELECT \(call) AS v FROM _").run()[0]["v"].jsonValue()
        expect(Self.areEqual(value, result), "\(call) gives \(String(describing: value)), not \(result)")
      }
      for (call, _, result) in Self.fullText {
        let rows = try database.query("SELECT \(call) AS v FROM _ WHERE MATCH(words, 'castle')").run()
        expect(rows.count, equals: 1)
        let value = try rows.first?["v"].jsonValue()
        expect(Self.areEqual(value, result), "\(call) gives \(String(describing: value)), not \(result)")
      }
    }
  }

  /// Equal, doubles to 12 digits.
  private static func areEqual(_ left: JSONValue?, _ right: JSONValue?) -> Bool {
    switch (left, right) {
    case (.double(let a)?, .double(let b)?): abs(a - b) <= 1e-12 * max(1, abs(a), abs(b))
    case (.array(let a)?, .array(let b)?): a.count == b.count && zip(a, b).allSatisfy { areEqual($0, $1) }
    default: left == right
    }
  }
}

extension QueryExpression {
  /// A value as it is written in a query.
  init(literal value: JSONValue) {
    switch value {
    case .null: self = .null
    case .bool(let value): self = .boolean(value)
    case .int(let value): self = .literal(.int(value))
    case .uint(let value): self = .literal(.uint(value))
    case .double(let value): self = .double(value)
    case .string(let value): self = .string(value)
    case .data: self = .null
    case .array(let items): self = .array(items.map(QueryExpression.init(literal:)))
    case .object(let members):
      self = .object(members.map { ObjectMember($0.key, QueryExpression(literal: $0.value)) })
    }
  }
}
