// What the names in an expression mean.

import Storage

/// Tells a compiler of expressions what names mean, and what is available already.
protocol EvaluationScope {
  /// The slot in which the value of a whole expression lies when the expression is evaluated: a column of a covering
  /// index, an aggregate, a key of the group. Nil when it has to be computed. Asked for each part of an expression,
  /// outermost first.
  func slot(of expression: Expression) -> Int?
  /// What a path means. Variables of ANY around it have been looked at before.
  func resolve(_ reference: PropertyReference) throws(QueryError) -> ResolvedReference
  /// The number of a source by its name, or the only one, for META and `*`.
  func source(_ name: SourceName?) throws(QueryError) -> Int
  /// Whether a parameter can be used here; where not, why.
  func checkParameter(_ name: ByteString) throws(QueryError)
  /// What isn't computed by expressions: EXISTS, MATCH and RANK, aggregates outside of slots. Throws what to say.
  func compile(
    special expression: Expression, _ compiler: inout ExpressionCompiler
  ) throws(QueryError) -> CompiledExpression
}

/// What a path means.
enum ResolvedReference {
  /// Steps into the value of a source's row.
  case path(source: Int, [PathStep])
  /// Steps into what is in a slot.
  case slot(Int, [PathStep])
  /// Steps into another expression, which an alias stands for.
  case expression(Expression, [PathStep])
}

extension EvaluationScope {
  func slot(of expression: Expression) -> Int? { nil }

  func checkParameter(_ name: ByteString) throws(QueryError) {}

  func compile(
    special expression: Expression, _ compiler: inout ExpressionCompiler
  ) throws(QueryError) -> CompiledExpression {
    switch expression {
    case .exists: throw QueryError(.unsupported, "EXISTS can't be used here")
    case .match, .rank: throw QueryError(.unsupported, "full-text search can't be used here")
    case .call(let call) where FullTextFunctions.names.contains(call.name):
      throw QueryError(.unsupported, "full-text search can't be used here", at: call.position)
    case .call(let call):
      throw QueryError(.invalidUse, "the aggregate \(call.name) can't be used here", at: call.position)
    default: throw QueryError(.invalidUse, "this can't be used here")
    }
  }
}

extension PropertyReference {
  /// The path for messages.
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
