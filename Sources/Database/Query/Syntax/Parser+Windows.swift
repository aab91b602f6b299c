// Parses what may follow the arguments of an aggregate or of a window function:
//
//   filter  = FILTER "(" WHERE expr ")"
//   over    = [FROM (FIRST | LAST)] [(RESPECT | IGNORE) NULLS] OVER (name | "(" window ")")
//   window  = [name] [PARTITION BY expr {"," expr}] [ORDER BY ordering {"," ordering}] [frame]
//   frame   = (ROWS | RANGE | GROUPS) (bound | BETWEEN bound AND bound)
//             [EXCLUDE (CURRENT ROW | GROUP | TIES | NO OTHERS)]
//   bound   = UNBOUNDED (PRECEDING | FOLLOWING) | CURRENT ROW | relation (PRECEDING | FOLLOWING)

import Storage

extension Parser {
  /// Parses FILTER and OVER after a call. The height includes them.
  @inline(never)
  mutating func tail(of call: inout FunctionCall, _ signature: QueryFunction) throws(SyntaxFault) {
    var deepest = height
    defer { height = deepest }
    if isWord("FILTER"), try peek().kind == .leftParenthesis {
      guard signature.isAggregate else {
        throw fault(.invalidUse, "\(call.name) can't have FILTER, because it isn't an aggregate")
      }
      try advance()
      try advance()
      try expect(.where, "WHERE")
      call.filter = try expression(&deepest)
      try expect(.rightParenthesis, "an operator or \")\"")
    }
    let isWindowFunction = signature.isWindowFunction
    guard isWindowFunction || signature.isAggregate else { return }
    var window = WindowCall(WindowDefinition())
    if isWindowFunction { try options(&window, signature) }
    guard isWord("OVER"), case let following = try peek().kind,
      following == .leftParenthesis || following == .name || following == .quotedName
    else {
      guard !isWindowFunction else { throw unexpected("OVER and a window after \(call.name)(…)") }
      return
    }
    try advance()
    if try take(.leftParenthesis) {
      window.definition = try windowDefinition(&deepest)
      try expect(.rightParenthesis, "\")\"")
    } else {
      window.definition.base = try name("a window's name")
    }
    call.window = window
  }

  private mutating func options(_ window: inout WindowCall, _ signature: QueryFunction) throws(SyntaxFault) {
    if token.kind == .from, case let following = try peek(),
      isWord("FIRST", following) || isWord("LAST", following)
    {
      guard signature.name == WindowFunctionKind.nthValue.rawValue else {
        throw fault(.invalidUse, "only NTH_VALUE can have FROM FIRST or FROM LAST")
      }
      try advance()
      window.countsFromLast = try take(word: "LAST")
      if !window.countsFromLast { try advance() }
    }
    guard isWord("RESPECT") || isWord("IGNORE"), isWord("NULLS", try peek()) else { return }
    guard signature.takesNulls else {
      throw fault(.invalidUse, "\(signature.name) can't have RESPECT NULLS or IGNORE NULLS")
    }
    window.ignoresNulls = isWord("IGNORE")
    try advance()
    try advance()
  }

  /// Parses a window without its parentheses.
  mutating func windowDefinition(_ deepest: inout Int) throws(SyntaxFault) -> WindowDefinition {
    var window = WindowDefinition()
    if token.kind == .quotedName || token.kind == .name, !(try isPartition()), try frameUnit() == nil {
      window.base = try name("a window's name")
    }
    if try isPartition() {
      try advance()
      try advance()
      repeat { window.partitionBy.append(try expression(&deepest)) } while try take(.comma)
    }
    if try take(.order) {
      try expect(.by, "BY")
      repeat { window.orderBy.append(try ordering(&deepest)) } while try take(.comma)
    }
    if let unit = try frameUnit() { window.frame = try frame(unit, &deepest) }
    return window
  }

  private func isPartition() throws(SyntaxFault) -> Bool {
    guard isWord("PARTITION") else { return false }
    return try peek().kind == .by
  }

  /// The unit of a frame, if one begins here. The same words can name a window.
  private func frameUnit() throws(SyntaxFault) -> WindowFrame.Unit? {
    let unit: WindowFrame.Unit
    if isWord("ROWS") {
      unit = .rows
    } else if isWord("RANGE") {
      unit = .range
    } else if isWord("GROUPS") {
      unit = .groups
    } else {
      return nil
    }
    switch try peek().kind {
    case .rightParenthesis, .order: return nil
    default: return unit
    }
  }

  private mutating func frame(_ unit: WindowFrame.Unit, _ deepest: inout Int) throws(SyntaxFault)
    -> WindowFrame
  {
    try advance()
    let position = token.start
    let isBetween = try take(.between)
    var frame = WindowFrame(unit, from: try bound(&deepest))
    if isBetween {
      try expect(.and, "AND and the end of the frame")
      frame.end = try bound(&deepest)
    }
    if frame.start == .unboundedFollowing || frame.end == .unboundedPreceding
      || frame.start.rank > frame.end.rank
    {
      throw fault(.invalidUse, "a frame can't end before it begins", at: position)
    }
    guard try take(word: "EXCLUDE") else { return frame }
    if try take(word: "CURRENT") {
      guard try take(word: "ROW") else { throw unexpected("ROW") }
      frame.exclusion = .currentRow
    } else if try take(word: "NO") {
      guard try take(word: "OTHERS") else { throw unexpected("OTHERS") }
    } else if try take(.group) {
      frame.exclusion = .group
    } else if try take(word: "TIES") {
      frame.exclusion = .ties
    } else {
      throw unexpected("CURRENT ROW, GROUP, TIES or NO OTHERS")
    }
    return frame
  }

  private mutating func bound(_ deepest: inout Int) throws(SyntaxFault) -> WindowFrame.Bound {
    if isWord("UNBOUNDED"), case let following = try peek(), following.kind == .name {
      try advance()
      if try take(word: "PRECEDING") { return .unboundedPreceding }
      guard try take(word: "FOLLOWING") else { throw unexpected("PRECEDING or FOLLOWING") }
      return .unboundedFollowing
    }
    if isWord("CURRENT"), isWord("ROW", try peek()) {
      try advance()
      try advance()
      return .currentRow
    }
    let offset = try binary(.relation)
    deepest = max(deepest, height)
    if try take(word: "PRECEDING") { return .preceding(offset) }
    guard try take(word: "FOLLOWING") else { throw unexpected("an operator, PRECEDING or FOLLOWING") }
    return .following(offset)
  }

  /// Parses a term of ORDER BY: `expr [ASC | DESC] [NULLS (FIRST | LAST)]`.
  mutating func ordering(_ deepest: inout Int) throws(SyntaxFault) -> Ordering {
    let start = token.start
    var ordering = Ordering(try expression(&deepest))
    try checkTerm(ordering.expression, of: "ORDER BY", at: start)
    ordering.isDescending = try take(.desc)
    if !ordering.isDescending { _ = try take(.asc) }
    if isWord("NULLS"), case let following = try peek(),
      isWord("FIRST", following) || isWord("LAST", following)
    {
      try advance()
      ordering.nulls = isWord("FIRST") ? .first : .last
      try advance()
    }
    return ordering
  }

  /// Whether a WINDOW clause begins here: `WINDOW name AS`. The word can also be an alias.
  mutating func beginsWindowClause() -> Bool {
    guard isWord("WINDOW") else { return false }
    var kinds: [TokenKind] = []
    scanAhead {
      kinds.append($0.kind)
      return kinds.count < 2
    }
    return kinds.count == 2 && (kinds[0] == .name || kinds[0] == .quotedName) && kinds[1] == .as
  }

  /// Parses the WINDOW clause, if there is one.
  mutating func namedWindows(_ deepest: inout Int) throws(SyntaxFault) -> [NamedWindow] {
    guard beginsWindowClause() else { return [] }
    try advance()
    var windows: [NamedWindow] = []
    repeat {
      let start = token.start
      let name = try name("a window's name")
      try expect(.as, "AS")
      try expect(.leftParenthesis, "\"(\"")
      let definition = try windowDefinition(&deepest)
      try expect(.rightParenthesis, "\")\"")
      windows.append(NamedWindow(name, definition, position: SourcePosition(start)))
    } while try take(.comma)
    return windows
  }
}
