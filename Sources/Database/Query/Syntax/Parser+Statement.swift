// Parses statements. Parser+Select.swift has the clauses of a query, Parser+Sources.swift those of FROM.

import Storage

extension QueryStatement {
  /// Parses a query, with or without EXPLAIN.
  ///
  /// - Throws: a `QueryError` with the position of the mistake and what was expected there.
  package init(parsing text: String) throws(QueryError) {
    self = try Parser.parse(text) { parser throws(SyntaxFault) in try parser.statement() }
  }
}

extension SelectStatement {
  /// Parses a query. EXPLAIN isn't allowed.
  ///
  /// - Throws: a `QueryError` with the position of the mistake and what was expected there.
  public init(parsing text: String) throws(QueryError) {
    self = try Parser.parse(text) { parser throws(SyntaxFault) in
      let select = try parser.select()
      try parser.endOfStatement(after: select)
      return select
    }
  }
}

extension QueryExpression {
  /// Parses a single expression, such as one of an index.
  ///
  /// - Throws: a `QueryError` with the position of the mistake and what was expected there.
  public init(parsing text: String) throws(QueryError) {
    self = try Parser.parse(text) { parser throws(SyntaxFault) in
      let expression = try parser.expression()
      guard parser.token.kind == .end else { throw parser.unexpected("an operator or the end") }
      return expression
    }
  }
}

extension Parser {
  fileprivate mutating func statement() throws(SyntaxFault) -> QueryStatement {
    let statement = try unended()
    let hasSemicolon = try take(.semicolon)
    if token.kind == .end { return statement }
    guard !hasSemicolon else {
      throw fault(
        .unsupported,
        "one call runs one statement, and another one begins here; the command query and the shell "
          + "run several, one after the other")
    }
    switch statement {
    case .select(let select), .explain(let select, _), .advise(let select):
      throw unexpectedClause(after: select)
    default: throw unexpected("the end of the statement")
    }
  }

  /// Parses a statement up to the first token that isn't part of it.
  mutating func unended() throws(SyntaxFault) -> QueryStatement {
    var explains = false
    var analyzes = false
    if isWord("EXPLAIN") {
      explains = true
      try advance()
      if isWord("ANALYZE") {
        analyzes = true
        try advance()
      }
    }
    if !explains, isWord("ADVISE") {
      try advance()
      _ = try take(word: "INDEX")
      return .advise(try select())
    }
    if !explains {
      if let change = try change() { return .change(change) }
      if let index = try indexStatement() { return .index(index) }
      if let named = try namedStatement() { return named }
    }
    let select = try select()
    return explains ? .explain(select, analyze: analyzes) : .select(select)
  }

  fileprivate mutating func endOfStatement(after select: SelectStatement) throws(SyntaxFault) {
    _ = try take(.semicolon)
    guard token.kind == .end else { throw unexpectedClause(after: select) }
  }

  /// The error for a token after the end of a query. It lists what could follow.
  private func unexpectedClause(after select: SelectStatement) -> SyntaxFault {
    var clauses: [String] = []
    if select.offset == nil, select.limit == nil {
      if select.orderBy.isEmpty {
        if select.having == nil {
          if select.groupBy.isEmpty {
            if select.condition == nil {
              clauses = select.source == nil ? ["FROM"] : ["JOIN", "UNNEST"]
              clauses.append("WHERE")
            }
            clauses.append("GROUP BY")
          } else {
            clauses.append("HAVING")
          }
        }
        clauses.append("ORDER BY")
      }
      clauses += ["LIMIT", "OFFSET"]
    } else if select.offset == nil {
      clauses = ["OFFSET"]
    } else if select.limit == nil {
      clauses = ["LIMIT"]
    }
    clauses.append("the end")
    var fault = unexpected((clauses.count > 1 ? "an operator, " : "") + clauses.joined(separator: ", "))
    // `FROM _ WHER x = 1`: a misspelled keyword was parsed as an alias.
    let words =
      select.joins.isEmpty ? [select.source?.alias?.string, select.results.last?.alias?.string] : []
    for word in words.compactMap({ $0 }) + [text(token)] where word.utf8.count <= 10 {
      let near = Suggestions.nearest(to: word, among: ReservedWords.clauses)
      if let first = near.first, first != word.uppercased() {
        fault.message += " (did you mean \(first) instead of \(word)?)"
        break
      }
    }
    return fault
  }
}

extension ReservedWords {
  fileprivate static let clauses = [
    "FROM", "JOIN", "UNNEST", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET",
  ]
}
