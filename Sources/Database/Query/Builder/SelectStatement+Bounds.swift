// Bounds and error positions for statements that a program builds. Such a tree can have any depth and has no
// text. Before it is used it has to keep the parser's limits. When it contains a mistake, the position refers
// to the text that the statement prints as.

extension SelectStatement {
  /// The statement with its longest ANDs and ORs grouped in halves, as the parser groups them.
  ///
  /// - Throws: `tooDeep`, which names the clause, when the tree is deeper than the parser allows
  ///   (`Parser.depthLimit`).
  func bounded(_ depth: Int = 0) throws(QueryError) -> SelectStatement {
    func bounded(_ expression: QueryExpression, _ clause: String) throws(QueryError) -> QueryExpression {
      guard let bounded = try expression.bounded(depth) else {
        throw QueryError(
          .tooDeep, "\(clause) of the query that was built is nested deeper than \(Parser.depthLimit) levels")
      }
      return bounded
    }
    var copy = self
    for index in copy.with.indices {
      copy.with[index].value = try bounded(with[index].value, "\"\(with[index].name)\" of the WITH")
    }
    if case .combined(let left, let operation, let isAll, let right)? = combination {
      guard depth < Parser.depthLimit else {
        throw QueryError(
          .tooDeep, "the query that was built combines more than \(Parser.depthLimit) queries")
      }
      copy.combination = .combined(
        try left.bounded(depth + 1), operation, isAll: isAll, try right.bounded(depth + 1))
    }
    copy.source = try source.map { source throws(QueryError) in try source.bounded(bounded) }
    for index in copy.lets.indices {
      copy.lets[index].value = try bounded(lets[index].value, "\"\(lets[index].name)\" of the LET")
    }
    for index in copy.letting.indices {
      copy.letting[index].value = try bounded(
        letting[index].value, "\"\(letting[index].name)\" of the LETTING")
    }
    for index in copy.results.indices {
      let name = results[index].alias.map { "the result \"\($0)\"" } ?? "result \(index + 1)"
      copy.results[index].expression = try bounded(results[index].expression, name)
    }
    for index in copy.joins.indices {
      switch joins[index] {
      case .join(let kind, let source, let condition?):
        let name = "the ON of \"\(source.alias ?? source.name)\""
        copy.joins[index] = .join(kind, try source.bounded(bounded), on: try bounded(condition, name))
      case .join(let kind, let source, nil):
        copy.joins[index] = .join(kind, try source.bounded(bounded), on: nil)
      case .nest(let source, let condition, let isLeftOuter):
        let name = "the ON of \"\(source.alias ?? source.name)\""
        copy.joins[index] = .nest(
          try source.bounded(bounded), on: try bounded(condition, name), isLeftOuter: isLeftOuter)
      case .unnest(let array, let alias, let isLeftOuter):
        copy.joins[index] = .unnest(
          try bounded(array, "the UNNEST of \"\(alias)\""), as: alias, isLeftOuter: isLeftOuter)
      }
    }
    if let condition { copy.condition = try bounded(condition, "the WHERE") }
    for index in copy.groupBy.indices {
      copy.groupBy[index] = try bounded(groupBy[index], "term \(index + 1) of the GROUP BY")
    }
    if let having { copy.having = try bounded(having, "the HAVING") }
    for index in copy.orderBy.indices {
      copy.orderBy[index].expression = try bounded(
        orderBy[index].expression, "term \(index + 1) of the ORDER BY")
    }
    if let limit { copy.limit = try bounded(limit, "the LIMIT") }
    if let offset { copy.offset = try bounded(offset, "the OFFSET") }
    return copy
  }

  /// Finds the position of an error in the text of a statement that was built. The error is returned without
  /// a position when parsing that text doesn't find the same error.
  func located(_ error: QueryError, databaseName: String) -> QueryError {
    let text = description
    do {
      let parsed = try SelectStatement(parsing: text)
      _ = try NameResolver.resolve(parsed, databaseName: databaseName, text: text)
    } catch let found as QueryError where found.code == error.code && found.location != nil {
      return found
    } catch {}
    return error
  }
}

extension DataSource {
  fileprivate func bounded(
    _ body: (QueryExpression, String) throws(QueryError) -> QueryExpression
  ) throws(QueryError) -> DataSource {
    var copy = self
    if case .items(let items) = content {
      copy.content = .items(try body(items, "the source \"\(ownName)\""))
    }
    copy.keys = try keys.map { keys throws(QueryError) in
      try body(keys, "the USE KEYS of \"\(ownName)\"")
    }
    return copy
  }
}

extension QueryExpression {
  /// The expression with its longest ANDs and ORs grouped in halves. Nil when it is too deep.
  fileprivate func bounded(_ depth: Int) throws(QueryError) -> QueryExpression? {
    struct TooDeep: Error {}
    func bounded(_ expression: QueryExpression, _ depth: Int) throws -> QueryExpression {
      guard depth < Parser.depthLimit else { throw TooDeep() }
      switch expression {
      case .exists(let statement): return .exists(try statement.bounded(depth + 1))
      case .subquery(let statement): return .subquery(try statement.bounded(depth + 1))
      case .binary(let sign, _, _) where sign == .and || sign == .or:
        let operands = expression.operands(of: sign)
        guard operands.count > Parser.longestChain else { break }
        let parts = operands.count / Parser.longestChain
        let height = Parser.longestChain + (Int.bitWidth - parts.leadingZeroBitCount)
        return QueryExpression.grouped(sign, try operands.map { try bounded($0, depth + height) }[...])
      default: break
      }
      return try expression.mappingParts { try bounded($0, depth + 1) }
    }
    do { return try bounded(self, depth) } catch let error as QueryError { throw error } catch { return nil }
  }

  /// The operands of a chain of one operator, however it is nested. It isn't recursive, because programs
  /// build chains of any length.
  private func operands(of sign: BinaryOperator) -> [QueryExpression] {
    var operands: [QueryExpression] = []
    var left = [self]
    while let next = left.popLast() {
      if case .binary(sign, let first, let second) = next {
        left.append(second)
        left.append(first)
      } else {
        operands.append(next)
      }
    }
    return operands
  }

  /// Joins one or more operands with AND or OR. Long lists are grouped in halves, so that their tree is flat.
  static func grouped(_ sign: BinaryOperator, _ operands: ArraySlice<QueryExpression>) -> QueryExpression {
    if operands.count > Parser.longestChain {
      let middle = operands.startIndex + operands.count / 2
      return .binary(sign, grouped(sign, operands[..<middle]), grouped(sign, operands[middle...]))
    }
    var tree = operands[operands.startIndex]
    for operand in operands.dropFirst() { tree = .binary(sign, tree, operand) }
    return tree
  }
}
