// Words of SQL++ that have no meaning here. They aren't reserved: each can be the name of a property. Where
// the grammar would refuse such a word, or the token after it, the error says what to use instead.

/// The words of SQL++ that this dialect doesn't have.
enum ReferenceWords {
  /// The first words of other statements.
  static let statements: [String: String] = {
    var all: [String: String] = [:]
    for word in ["INSERT", "UPSERT", "UPDATE", "MERGE", "DELETE"] {
      all[word] = "a query only reads; a statement that changes documents is run on its own"
    }
    for word in ["CREATE", "DROP", "BUILD"] {
      all[word] = "a query only reads; CREATE INDEX, DROP INDEX and BUILD INDEX are statements on their own"
    }
    all["ALTER"] = "drop the index, and create it again"
    for word in ["BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "SET"] {
      all[word] = "transactions have their own call, and a query inside of it sees its changes"
    }
    for word in ["ADVISE", "PREPARE", "EXECUTE", "INFER"] {
      all[word] = "it begins a statement, and isn't a part of one"
    }
    all["EXPLAIN"] = "it explains queries; it begins a statement, and isn't a part of one"
    all["VALUES"] = "use SELECT"
    for word in ["GRANT", "REVOKE", "TRUNCATE", "FLUSH"] {
      all[word] = "a query only reads"
    }
    return all
  }()

  /// Functions, and why there is none of that name.
  static let functions: [String: String] = [
    "CURL": "a query reads nothing outside of its database",
    "PREDICTION": "a query runs no models; save what they say in the documents",
    "VECTOR_MATCH":
      "there is no vector index; ORDER BY VECTOR_DISTANCE(…) LIMIT n finds the nearest vectors",
    "SEARCH": "use MATCH(index, text), which searches a full-text index",
    "SEARCH_META": "use RANK(index), SNIPPET and OFFSETS",
    "SEARCH_SCORE": "use RANK(index)",
  ]

  /// Words between SELECT and its results that make rows of single values.
  static let rawResults: Set<String> = ["RAW", "VALUE", "ELEMENT"]

  /// Words of clauses and operators. Each is found where the grammar refuses it.
  static let clauses: [String: String] = [
    "QUALIFY": "give the window function a name, and put WHERE around the query: "
      + "SELECT … FROM (SELECT …) AS r WHERE …",
    "TABLESAMPLE": "use ORDER BY RANDOM() LIMIT n",
  ]

  /// What IS can test. A single name that is near one of these words is taken for a mistake.
  static let tests = ["NULL", "MISSING", "VALUED", "KNOWN", "UNKNOWN"]
  /// Types, which have functions.
  private static let types: Set<String> = ["ARRAY", "ATOM", "BOOLEAN", "NUMBER", "OBJECT", "STRING"]

  /// The hint for a name after IS that seems to be a mistake. Nil for other names.
  static func mistake(afterIs name: String) -> String? {
    let upper = name.uppercased()
    if types.contains(upper) { return " (did you mean IS\(upper)(…)?)" }
    let hint = Suggestions.hint(for: upper, among: tests)
    return hint.isEmpty ? nil : hint
  }
}

extension Parser {
  /// The error for a word of SQL++ that the grammar has met: the refused token, or one just before it. Nil
  /// when there is none.
  func unsupportedWord() -> SyntaxFault? {
    if token.kind == .name, let advice = ReferenceWords.clauses[upperCase(token)] {
      return unsupported(token, advice)
    }
    guard token.kind != .end else { return nil }
    // An alias may come between: `ARRAY x * 2 FOR x IN …`.
    for earlier in [taken.last, taken.other] {
      guard earlier.kind == .name else { return nil }
      let word = upperCase(earlier)
      if let advice = ReferenceWords.clauses[word] { return unsupported(earlier, advice) }
    }
    return nil
  }

  func unsupported(_ token: Token, _ advice: String) -> SyntaxFault {
    fault(
      .unsupported,
      "\(upperCase(token)) isn't supported here: \(advice) (a property of this name needs backticks)",
      at: token.start)
  }

  /// Throws when another statement than SELECT begins.
  func checkStatement() throws(SyntaxFault) {
    guard token.kind == .name || token.kind == .from,
      let advice = ReferenceWords.statements[upperCase(token)]
    else { return }
    throw fault(.unsupported, "\(upperCase(token)) isn't supported: \(advice)")
  }

  /// Whether the next word begins `SELECT RAW a`. The word alone is the name of a property, and so it is before
  /// an operator.
  func beginsRawResult() throws(SyntaxFault) -> Bool {
    guard token.kind == .name, ReferenceWords.rawResults.contains(upperCase(token)) else { return false }
    let next = try peek()
    switch next.kind {
    case .name, .quotedName, .string, .integer, .float, .parameter, .leftBrace, .true, .false, .null,
      .missing, .case, .any, .every:
      // `SELECT raw EXCLUDE b`, `SELECT raw UNION SELECT …`: a property.
      return try !beginsClause(after: next)
    case .left, .right: return try peekTwo().second.kind == .leftParenthesis
    // `RAW NOT a`, and not `raw NOT IN b`.
    case .not:
      switch try peekTwo().second.kind {
      case .like, .in, .between, .null, .missing, .valued: return false
      default: return true
      }
    // `RAW (a)` and `RAW [a]`. Without the space it is a call of a function, or an item of an array.
    case .leftParenthesis, .leftBracket: return next.start > token.end
    // `RAW -a`, and not `raw - a`.
    case .minus, .plus: return next.start > token.end && followsDirectly(next)
    default: return false
    }
  }

  /// Checks a single name after IS, such as a misspelled NULL.
  func checkName(afterIs operand: QueryExpression, _ first: Token) throws(SyntaxFault) {
    guard first.kind == .name, case .property(let path) = operand, path.steps.count == 1,
      endOfLast == first.end, let hint = ReferenceWords.mistake(afterIs: text(first))
    else { return }
    throw fault(
      "expected NULL, MISSING, VALUED, KNOWN or UNKNOWN after IS, found \"\(text(first))\"\(hint); "
        + "a property of this name needs backticks", at: first.start)
  }

  /// Throws for ORDER BY 1 and GROUP BY 'name', which would give no order and one group. `clause` is the clause's name.
  func checkTerm(_ expression: QueryExpression, of clause: String, at offset: Int) throws(SyntaxFault) {
    switch expression.uncollated.operand {
    case .literal(.int), .literal(.uint), .literal(.double):
      throw fault(
        .invalidUse, "a number in \(clause) isn't the position of a column; write its name or its expression",
        at: offset)
    case .literal(.string(let name)):
      throw fault(
        .invalidUse, "\(clause) of a text has no effect; for the property write `\(name.string.prefix(60))`",
        at: offset)
    default: return
    }
  }
}
