// Parses functions, and what looks like them: META, MATCH, RANK, EXISTS.

extension Parser {
  /// Parses a call. The current token is the parenthesis after its name.
  mutating func call(_ name: Token) throws(SyntaxFault) -> QueryExpression {
    var upper = upperCase(name)
    let position = SourcePosition(name.start)
    switch upper {
    case "META": return try meta(position)
    case "MATCH": return try match()
    case "RANK" where try peek().kind != .rightParenthesis: return try rank()
    case "EXISTS": return try exists()
    case "CAST": return try cast()
    case "STRING_AGG", "GROUP_CONCAT": return try joinedTexts(name)
    default: break
    }
    guard let signature = QueryFunction.named(upper) else { throw unknown(upper, at: name.start) }
    upper = signature.name
    try advance()
    let isDistinct = token.kind == .distinct
    if isDistinct {
      if !signature.isAggregate {
        throw fault(.invalidUse, "\(upper) can't have DISTINCT, because it isn't an aggregate")
      }
      try advance()
    }
    if signature.isAggregate, isWord("ALL"), beginsOperand(try peek(), after: token) { try advance() }
    let arguments = try expressions(until: .rightParenthesis)
    try expect(.rightParenthesis, "\",\" or \")\"")
    if let complaint = signature.complaint(about: arguments.count) {
      throw fault(.argumentCount, complaint, at: name.start)
    }
    return try ended(
      FunctionCall(upper, arguments, isDistinct: isDistinct, position: position), signature)
  }

  // What follows isn't a part of the frame of `call`: the deepest nesting has two hundred of these.

  @inline(never)
  private mutating func ended(_ call: FunctionCall, _ signature: QueryFunction) throws(SyntaxFault)
    -> QueryExpression
  {
    var call = call
    try tail(of: &call, signature)
    try raise()
    return try withSteps(.call(call))
  }

  @inline(never)
  private mutating func match() throws(SyntaxFault) -> QueryExpression {
    try advance()
    let index = try indexReference()
    try expect(.comma, "\",\" and the text to match")
    let text = try expression()
    try expect(.rightParenthesis, "\")\"")
    try raise()
    return try withSteps(.match(index, text))
  }

  @inline(never)
  private mutating func rank() throws(SyntaxFault) -> QueryExpression {
    try advance()
    let index = try indexReference()
    try expect(.rightParenthesis, "\")\"")
    return try withSteps(.rank(index))
  }

  @inline(never)
  private mutating func exists() throws(SyntaxFault) -> QueryExpression {
    try advance()
    guard try beginsQuery() || token.kind == .leftParenthesis else {
      throw unexpected("SELECT (whether a property is there: IS NOT MISSING)")
    }
    nesting += 1
    if nesting > Self.depthLimit { throw tooDeep() }
    let select = try select()
    nesting -= 1
    try expect(.rightParenthesis, "\")\"")
    try raise()
    return try withSteps(.exists(select))
  }

  @inline(never)
  private func unknown(_ name: String, at offset: Int) -> SyntaxFault {
    let shown = name.utf8.count > 60 ? name.prefix(60) + "…" : name[...]
    let names = ["META", "MATCH", "RANK"] + QueryFunction.all.keys
    if let advice = ReferenceWords.functions[name] {
      return fault(.unknownFunction, "there is no function \(name): \(advice)", at: offset)
    }
    return fault(
      .unknownFunction, "there is no function \(shown)\(Suggestions.hint(for: name, among: names))",
      at: offset)
  }

  @inline(never)
  private mutating func meta(_ position: SourcePosition) throws(SyntaxFault) -> QueryExpression {
    try advance()
    var source: SourceName?
    if token.kind != .rightParenthesis {
      let start = token.start
      source = SourceName(try name("a source's name or \")\""), position: SourcePosition(start))
    }
    try expect(.rightParenthesis, "\")\"")
    guard token.kind == .dot else { return .meta(source: source, nil) }
    try advance()
    let start = token.start
    let member = try name("a member of META: \(MetaProperty.list)").string
    guard let property = MetaProperty(rawValue: member) else {
      let hint =
        member == "cas"
        ? " (sequence is another number after each change)"
        : Suggestions.hint(for: member, among: MetaProperty.allCases.map(\.rawValue))
      throw fault(
        .unknownName, "META() has no \"\(member.prefix(60))\"\(hint): it has \(MetaProperty.list)", at: start)
    }
    return try withSteps(.meta(source: source, property))
  }

  private mutating func indexReference() throws(SyntaxFault) -> IndexReference {
    let position = SourcePosition(token.start)
    let name = try name("an index's name")
    guard try take(.dot) else { return IndexReference(name, position: position) }
    return IndexReference(try self.name("an index's name after the dot"), source: name, position: position)
  }
}

extension MetaProperty {
  /// The names of all members, for messages.
  fileprivate static let list = allCases.map(\.rawValue).joined(separator: ", ")
}
