import Storage

extension SelectStatement {
  /// The names of the parameters, in order of first use.
  public var parameterNames: [String] { parameters.map(\.string) }

  private var parameters: [ByteString] {
    var names: [ByteString] = []
    func collect(_ expression: QueryExpression) {
      if case .parameter(let name) = expression, !names.contains(name) { names.append(name) }
      switch expression {
      case .exists(let inner), .subquery(let inner):
        for name in inner.parameters where !names.contains(name) { names.append(name) }
      default: break
      }
      expression.forEachPart(collect)
    }
    forEachExpression(collect)
    return names
  }
}

extension SelectStatement {
  /// Calls `body` with each expression of the clauses, in their order. Expressions of queries that sets combine
  /// are included, others inside of expressions aren't.
  func forEachExpression(_ body: (QueryExpression) throws -> Void) rethrows {
    for binding in with {
      try body(binding.value)
      try binding.levels.map(body)
      try binding.rows.map(body)
    }
    if case .combined(let left, _, _, let right)? = combination {
      try left.forEachExpression(body)
      try right.forEachExpression(body)
    }
    for result in results { try body(result.expression) }
    try source?.forEachExpression(body)
    for join in joins {
      switch join {
      case .join(_, let source, let condition):
        try source.forEachExpression(body)
        try condition.map(body)
      case .nest(let source, let condition, _):
        try source.forEachExpression(body)
        try body(condition)
      case .unnest(let array, _, _): try body(array)
      }
    }
    for binding in lets { try body(binding.value) }
    try condition.map(body)
    for expression in groupBy { try body(expression) }
    for binding in letting { try body(binding.value) }
    try having.map(body)
    for window in windows { for part in window.definition.parts { try body(part) } }
    for ordering in orderBy { try body(ordering.expression) }
    try limit.map(body)
    try offset.map(body)
  }
}

extension DataSource {
  fileprivate func forEachExpression(_ body: (QueryExpression) throws -> Void) rethrows {
    if case .items(let items) = content { try body(items) }
    try keys.map(body)
  }
}
