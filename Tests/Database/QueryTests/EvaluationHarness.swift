import TestSupport

@testable import Query

/// Evaluates the text of an expression on a document.
struct EvaluationHarness {
  let sharedKeys: SharedKeys
  private let body: [UInt8]

  init(_ json: String = "{}") throws {
    let encoder = BodyEncoder()
    let keys = SharedKeysBuilder(.empty)
    try Array(json.utf8).withUnsafeBytes { try encoder.encode(json: $0, keys: keys) }
    body = Array(encoder.fleece)
    sharedKeys = keys.snapshot()
  }

  /// The JSON text of an expression's value, or `missing`.
  func evaluate(
    _ text: String, parameters: [String: JSONValue] = [:], asTruth: Bool = false,
    cancellation: QueryCancellation = QueryCancellation()
  ) throws -> String {
    try evaluate(
      try QueryExpression(parsing: text), parameters: parameters, asTruth: asTruth, cancellation: cancellation
    )
  }

  func evaluate(
    _ expression: QueryExpression, parameters: [String: JSONValue] = [:], asTruth: Bool = false,
    cancellation: QueryCancellation = QueryCancellation()
  ) throws -> String {
    let program = EvaluationProgram()
    let node = try program.compile(expression, in: TestScope())
    let context = try EvaluationContext(program)
    context.begin(sharedKeys)
    context.begin(cancellation, QueryMemoryBudget(limit: .max))
    try context.bind(parameters)
    return try body.withUnsafeBytes { bytes in
      guard let root = FleeceReader.root(of: bytes) else { return "unreadable" }
      var id = "hotel_1"
      return try id.withUTF8 { id in
        context.rows[0] = SourceRow(
          value: QueryValue(root), id: TextSlice(UnsafeRawBufferPointer(id)), sequence: 17)
        let value = asTruth ? node.truth(context).value : node.evaluate(context)
        try context.check()
        if value.isMissing { return "missing" }
        var json: [UInt8] = []
        try value.writeJSON(sharedKeys, into: &json)
        return String(decoding: json, as: UTF8.self)
      }
    }
  }
}

/// One document, with parameters.
struct TestScope: EvaluationScope {
  func resolve(_ reference: PropertyReference) throws(QueryError) -> ResolvedReference {
    .path(source: 0, reference.steps)
  }
  func source(_ name: SourceName?) throws(QueryError) -> Int { 0 }
}

/// The scope of constants: nothing has a name.
struct EmptyScope: EvaluationScope {
  func resolve(_ reference: PropertyReference) throws(QueryError) -> ResolvedReference {
    throw QueryError(.unknownName, "\"\(reference.pathText)\" is not a constant", at: reference.position)
  }

  func source(_ name: SourceName?) throws(QueryError) -> Int {
    throw QueryError(.invalidUse, "there are no documents here", at: name?.position ?? .init())
  }

  func checkParameter(_ name: ByteString) throws(QueryError) {
    throw QueryError(.invalidUse, "the parameter $\(name) can't be used here")
  }
}
