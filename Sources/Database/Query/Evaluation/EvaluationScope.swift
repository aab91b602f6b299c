// The meaning of names in an expression.

import Storage

/// Resolves names for the compiler of expressions, and knows which values are already available.
protocol EvaluationScope {
  /// The slot that contains the value of a whole expression: a column of a covering index, an aggregate, a
  /// key of the group. Nil when the value has to be computed. The compiler asks for each part of an
  /// expression, the outermost first.
  func slot(of expression: QueryExpression) -> Int?
  /// Resolves a path. The compiler has already looked for variables of ANY and EVERY.
  func resolve(_ reference: PropertyReference) throws(QueryError) -> ResolvedReference
  /// The number of a source by its name, or of the only source. It is used for META and `*`.
  func source(_ name: SourceName?) throws(QueryError) -> Int
  /// Throws when a parameter can't be used here.
  func checkParameter(_ name: ByteString) throws(QueryError)
  /// Compiles the value of an inner query. Throws when it can't be used here.
  func compile(
    subquery number: Int, _ captures: [CompiledExpression], isConstant: Bool
  ) throws(QueryError) -> CompiledExpression
  /// Compiles what isn't computed by expressions: EXISTS, MATCH and RANK, aggregates outside of slots. Throws
  /// when it can't be used here.
  func compile(
    special expression: QueryExpression, _ compiler: inout ExpressionCompiler
  ) throws(QueryError) -> CompiledExpression
}

/// The meaning of a path.
enum ResolvedReference {
  /// Steps into the value of a source's row.
  case path(source: Int, [PathStep])
  /// Steps into the value of a slot.
  case slot(Int, [PathStep])
  /// Steps into another expression, which an alias stands for.
  case expression(QueryExpression, [PathStep])
}

extension EvaluationScope {
  func slot(of expression: QueryExpression) -> Int? { nil }

  func checkParameter(_ name: ByteString) throws(QueryError) {}

  func compile(
    subquery number: Int, _ captures: [CompiledExpression], isConstant: Bool
  ) throws(QueryError) -> CompiledExpression {
    throw QueryError(.unsupported, "a query inside parentheses can't be used here")
  }

  func compile(
    special expression: QueryExpression, _ compiler: inout ExpressionCompiler
  ) throws(QueryError) -> CompiledExpression {
    switch expression {
    case .match, .rank: throw QueryError(.unsupported, "full-text search can't be used here")
    case .call(let call) where FullTextFunctions.names.contains(call.name):
      throw QueryError(.unsupported, "full-text search can't be used here", at: call.position)
    default: throw unusable(expression)
    }
  }

  /// The error for an expression that can't be used here.
  func unusable(_ expression: QueryExpression) -> QueryError {
    switch expression {
    case .exists: QueryError(.unsupported, "EXISTS can't be used here")
    case .subquery: QueryError(.unsupported, "a query inside parentheses can't be used here")
    case .call(let call):
      QueryError(.invalidUse, "the aggregate \(call.name) can't be used here", at: call.position)
    default: QueryError(.invalidUse, "this can't be used here")
    }
  }
}

extension PropertyReference {
  /// The path as text for messages.
  var pathText: String {
    var text = ""
    for step in steps {
      switch step {
      case .name(let name): text += text.isEmpty ? name.string : ".\(name)"
      case .index(let index): text += "[\(index)]"
      }
    }
    return text
  }
}
