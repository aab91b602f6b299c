enum StringFunctions {
  static let table: [QueryFunction] = []
  static func concat(_ a: UnsafeBufferPointer<QueryValue>, _ context: EvaluationContext) -> QueryValue {
    .null
  }
}
