// Parses GROUP BY:
//
//   groups   = element {"," element} [GROUP AS name]
//   element  = expr [[AS] name] | sets
//   sets     = (ROLLUP | CUBE) "(" set {"," set} ")" | GROUPING SETS "(" (set | sets) {"," (set | sets)} ")"
//   set      = expr | "(" [expr {"," expr}] ")"
//
// ROLLUP and CUBE are written as the grouping sets that they stand for.

import Storage

/// What ROLLUP and CUBE stand for.
enum GroupingSets {
  /// The largest number of grouping sets of a query.
  static let most = 256

  /// All terms, then all but the last one, and so on.
  static func rollup<Term>(_ terms: [[Term]]) -> [[Term]] {
    (0...terms.count).reversed().map { terms[..<$0].flatMap { $0 } }
  }

  /// All selections of the terms. There are at most eight.
  static func cube<Term>(_ terms: [[Term]]) -> [[Term]] {
    (0..<(1 << terms.count)).reversed().map { selection in
      terms.indices.filter { selection >> (terms.count - 1 - $0) & 1 == 1 }.flatMap { terms[$0] }
    }
  }
}

extension SelectStatement {
  /// Sets GROUP BY to grouping sets. Equal expressions are one.
  mutating func setGroups(_ sets: [[QueryExpression]]) {
    groupBy = []
    groupingSets = sets.map { set in
      var numbers: [Int] = []
      for expression in set {
        let number = groupBy.firstIndex(of: expression) ?? groupBy.count
        if number == groupBy.count { groupBy.append(expression) }
        if !numbers.contains(number) { numbers.append(number) }
      }
      return numbers
    }
  }
}

extension Parser {
  mutating func groups(of select: inout SelectStatement, _ deepest: inout Int) throws(SyntaxFault) {
    try expect(.by, "BY")
    let begin = token.start
    var sets: [[QueryExpression]] = [[]]
    var hasSets = false
    repeat {
      let start = token.start
      var element: [[QueryExpression]]
      if let found = try groupingSets(&deepest) {
        element = found
        hasSets = true
      } else {
        let expression = try expression(&deepest)
        try checkTerm(expression, of: "GROUP BY", at: start)
        select.groupNames[select.groupBy.count] = try alias()
        select.groupBy.append(expression)
        element = [[expression]]
      }
      // Each combination of the elements' sets.
      guard hasSets else {
        sets[0] += element[0]
        continue
      }
      guard sets.count * element.count <= GroupingSets.most else {
        throw fault(.invalidUse, "a query has at most \(GroupingSets.most) grouping sets", at: start)
      }
      sets = sets.flatMap { set in element.map { set + $0 } }
    } while try take(.comma)
    if hasSets {
      guard select.groupNames.isEmpty else {
        throw fault(
          .unsupported, "names of GROUP BY can't be used with grouping sets; use LET for names", at: begin)
      }
      guard sets.contains(where: { !$0.isEmpty }) else {
        throw fault(.invalidUse, "the grouping sets have no expression", at: begin)
      }
      select.setGroups(sets)
    }
    guard token.kind == .group else { return }
    try advance()
    try expect(.as, "AS")
    select.groupArray = try name("a name after GROUP AS")
  }

  /// Parses ROLLUP, CUBE or GROUPING SETS, if one of them is next.
  private mutating func groupingSets(_ deepest: inout Int) throws(SyntaxFault) -> [[QueryExpression]]? {
    guard token.kind == .name else { return nil }
    let (first, second) = try peekTwo()
    if isWord("GROUPING"), isWord("SETS", first), second.kind == .leftParenthesis {
      nesting += 1
      if nesting > Self.depthLimit { throw tooDeep() }
      for _ in 0..<3 { try advance() }
      var sets: [[QueryExpression]] = []
      repeat {
        if let inner = try groupingSets(&deepest) {
          sets += inner
        } else {
          sets.append(try groupingTerm(&deepest))
        }
        guard sets.count <= GroupingSets.most else {
          throw fault(.invalidUse, "a query has at most \(GroupingSets.most) grouping sets")
        }
      } while try take(.comma)
      try expect(.rightParenthesis, "\",\" or \")\"")
      nesting -= 1
      return sets
    }
    let isCube = isWord("CUBE")
    guard isCube || isWord("ROLLUP"), first.kind == .leftParenthesis else { return nil }
    let start = token.start
    try advance()
    try advance()
    var terms: [[QueryExpression]] = []
    repeat { terms.append(try groupingTerm(&deepest)) } while try take(.comma)
    try expect(.rightParenthesis, "\",\" or \")\"")
    guard !isCube || terms.count <= 8 else {
      throw fault(.invalidUse, "CUBE takes at most 8 expressions", at: start)
    }
    guard terms.count < GroupingSets.most else {
      throw fault(.invalidUse, "a query has at most \(GroupingSets.most) grouping sets", at: start)
    }
    return isCube ? GroupingSets.cube(terms) : GroupingSets.rollup(terms)
  }

  /// Parses an expression, or several in parentheses.
  private mutating func groupingTerm(_ deepest: inout Int) throws(SyntaxFault) -> [QueryExpression] {
    let start = token.start
    var terms: [QueryExpression]
    if token.kind == .leftParenthesis, case let next = try peek().kind, next != .select, next != .from {
      try advance()
      terms = try expressions(until: .rightParenthesis)
      deepest = max(deepest, height)
      try expect(.rightParenthesis, "\",\" or \")\"")
    } else {
      terms = [try expression(&deepest)]
    }
    for term in terms { try checkTerm(term, of: "GROUP BY", at: start) }
    return terms
  }
}

extension Printer {
  /// Prints grouping sets as a list of lists.
  mutating func put(groupingSets sets: [[Int]], of expressions: [QueryExpression]) {
    put("GROUPING SETS (")
    put(sets) { printer, set in
      printer.put("(")
      printer.put(set.filter { expressions.indices.contains($0) }) { $0.put(expressions[$1]) }
      printer.put(")")
    }
    put(")")
  }
}
