// Parses operators by precedence.

/// The precedence of operators, from the loosest to the tightest.
enum BindingPower: Int, Comparable {
  case collate, or, and, not, equality, relation, sum, product, concatenation, prefix, primary

  static func < (left: BindingPower, right: BindingPower) -> Bool { left.rawValue < right.rawValue }

  /// The minimum precedence for the right operand of a left-associative operator.
  var next: BindingPower { BindingPower(rawValue: rawValue + 1) ?? .primary }
}

extension BinaryOperator {
  var power: BindingPower {
    switch self {
    case .or: .or
    case .and: .and
    case .equal, .notEqual, .identical, .notIdentical: .equality
    case .less, .lessOrEqual, .greater, .greaterOrEqual: .relation
    case .add, .subtract: .sum
    case .multiply, .divide, .modulo: .product
    case .concatenate: .concatenation
    }
  }
}

extension Parser {
  /// ANDs and ORs with more operands than this are grouped in halves, so that their tree is flat.
  static let longestChain = 64

  mutating func expression() throws(SyntaxFault) -> QueryExpression {
    nesting += 1
    if nesting > Self.depthLimit { throw tooDeep() }
    var expression = try binary(.or)
    if token.kind == .collate {
      try advance()
      expression = .collate(expression, try collation())
      try raise()
      if token.kind == .and || token.kind == .or {
        throw fault(
          "COLLATE must be the end of an expression; use parentheses: (a = b COLLATE …) AND …")
      }
    }
    nesting -= 1
    return expression
  }

  /// Parses an expression, and raises `deepest` to the depth of its tree.
  mutating func expression(_ deepest: inout Int) throws(SyntaxFault) -> QueryExpression {
    defer { deepest = max(deepest, height) }
    return try expression()
  }

  /// Parses operators that bind at least as tightly as `minimum`.
  mutating func binary(_ minimum: BindingPower) throws(SyntaxFault) -> QueryExpression {
    var left = try operand()
    while true {
      let sign: BinaryOperator
      switch token.kind {
      case .or: sign = .or
      case .and: sign = .and
      case .equal: sign = .equal
      case .notEqual: sign = .notEqual
      case .less: sign = .less
      case .lessOrEqual: sign = .lessOrEqual
      case .greater: sign = .greater
      case .greaterOrEqual: sign = .greaterOrEqual
      case .plus: sign = .add
      case .minus: sign = .subtract
      case .star: sign = .multiply
      case .slash: sign = .divide
      case .percent: sign = .modulo
      case .concatenate: sign = .concatenate
      case .is, .in, .like, .between, .not:
        guard minimum <= .equality else { return left }
        left = try predicate(left)
        continue
      case .name:
        guard minimum <= .equality, try isWordOperator() else { return left }
        left = try predicate(left)
        continue
      default: return left
      }
      let power = sign.power
      guard minimum <= power else { return left }
      if power <= .and {
        left = try chain(sign, left)
        continue
      }
      let leftHeight = height
      try advance()
      let right = try binary(power.next)
      left = .binary(sign, left, right)
      try raise(over: leftHeight)
    }
  }

  /// Parses a chain of one operator: `left AND b AND c …`.
  private mutating func chain(_ sign: BinaryOperator, _ left: QueryExpression) throws(SyntaxFault)
    -> QueryExpression
  {
    let kind: TokenKind = sign == .and ? .and : .or
    var operands = [left]
    var heights = [height]
    while try take(kind) {
      operands.append(try binary(sign.power.next))
      heights.append(height)
    }
    func group(_ range: Range<Int>) -> (QueryExpression, height: Int) {
      if range.count > Self.longestChain {
        let middle = range.lowerBound + range.count / 2
        let (left, right) = (group(range.lowerBound..<middle), group(middle..<range.upperBound))
        return (.binary(sign, left.0, right.0), max(left.height, right.height) + 1)
      }
      var tree = operands[range.lowerBound]
      var height = heights[range.lowerBound]
      for index in range.dropFirst() {
        tree = .binary(sign, tree, operands[index])
        height = max(height, heights[index]) + 1
      }
      return (tree, height)
    }
    let (tree, deepest) = group(0..<operands.count)
    height = deepest - 1
    try raise()
    return tree
  }

  /// Parses an operand with its signs and NOTs.
  private mutating func operand() throws(SyntaxFault) -> QueryExpression {
    switch token.kind {
    case .not:
      var count = 0
      while try take(.not) { count += 1 }
      var expression = try binary(.equality)
      for _ in 0..<count {
        expression = .unary(.not, expression)
        try raise()
      }
      return expression
    case .minus, .plus:
      var signs: [UnaryOperator] = []
      while token.kind == .minus || token.kind == .plus {
        if token.kind == .minus, let literal = try negativeNumber() {
          return try signed(signs, literal)
        }
        signs.append(token.kind == .minus ? .minus : .plus)
        try advance()
      }
      if token.kind == .not {
        let inner = try operand()
        return try signed(signs, inner)
      }
      return try signed(signs, try postfix())
    default: return try postfix()
    }
  }

  private mutating func signed(_ signs: [UnaryOperator], _ operand: QueryExpression) throws(SyntaxFault)
    -> QueryExpression
  {
    var expression = operand
    for sign in signs.reversed() {
      expression = .unary(sign, expression)
      try raise()
    }
    return expression
  }

  /// Parses IS, IN, LIKE, BETWEEN and their negations.
  @inline(never)
  private mutating func predicate(_ left: QueryExpression) throws(SyntaxFault) -> QueryExpression {
    if try take(.is) { return try identity(left) }
    let leftHeight = height
    let isNegated = try take(.not)
    if isNegated, let test = try valueTest() {
      try raise(over: leftHeight)
      return .test(left, test, negated: true)
    }
    switch token.kind {
    case .like: return try like(left, isNegated)
    case .between: return try between(left, isNegated)
    case .in:
      try advance()
      let collection = try collection()
      try raise(over: leftHeight)
      return .contained(left, in: collection, negated: isNegated)
    case .name where isWord("WITHIN"):
      try advance()
      let collection = try binary(.relation)
      try raise(over: leftHeight)
      return .within(left, in: collection, negated: isNegated)
    case .name where isWord("ILIKE"): return try like(left, isNegated)
    case .name where isWord("REGEXP"): return try regexp(left, isNegated)
    default:
      throw unexpected(
        isNegated ? "IN, WITHIN, LIKE, BETWEEN, NULL, MISSING or VALUED after NOT" : "an operator")
    }
  }

  // What follows isn't inlined, so that the frame of `predicate` stays small.

  @inline(never)
  private mutating func identity(_ left: QueryExpression) throws(SyntaxFault) -> QueryExpression {
    let leftHeight = height
    var isNegated = try take(.not)
    if let test = try valueTest() {
      try raise(over: leftHeight)
      return .test(left, test, negated: isNegated)
    }
    if let isKnown = try knownTest() {
      try raise(over: leftHeight)
      return .test(left, .valued, negated: isNegated == isKnown)
    }
    let first = token
    let isDistinct = try take(.distinct)
    if isDistinct {
      // The opposite of IS.
      try expect(.from, "FROM")
      isNegated.toggle()
    }
    let right = try binary(.relation)
    if !isDistinct { try checkName(afterIs: right, first) }
    try raise(over: leftHeight)
    return .binary(isNegated ? .notIdentical : .identical, left, right)
  }

  @inline(never)
  private mutating func like(_ left: QueryExpression, _ isNegated: Bool) throws(SyntaxFault)
    -> QueryExpression
  {
    let leftHeight = height
    try advance()
    var pattern = try binary(.relation)
    if isWord("ESCAPE"), case let following = try peek(), beginsOperand(following, after: token) {
      try advance()
      let patternHeight = height
      pattern = .call(FunctionCall("LIKE_ESCAPE", [pattern, try binary(.relation)]))
      try raise(over: patternHeight)
    }
    try raise(over: leftHeight)
    return .like(left, pattern: pattern, negated: isNegated)
  }

  @inline(never)
  private mutating func between(_ left: QueryExpression, _ isNegated: Bool) throws(SyntaxFault)
    -> QueryExpression
  {
    let leftHeight = height
    try advance()
    let lower = try binary(.relation)
    let lowerHeight = max(height, leftHeight)
    try expect(.and, "AND and the upper bound of BETWEEN")
    let upper = try binary(.relation)
    try raise(over: lowerHeight)
    return .between(left, lower: lower, upper: upper, negated: isNegated)
  }

  @inline(never)
  private mutating func valueTest() throws(SyntaxFault) -> ValueTest? {
    let test: ValueTest
    switch token.kind {
    case .null: test = .null
    case .missing: test = .missing
    case .valued: test = .valued
    default: return nil
    }
    height = 0
    try advance()
    return test
  }

  /// Parses KNOWN, other word for VALUED, or UNKNOWN. True for KNOWN. Neither is reserved.
  @inline(never)
  private mutating func knownTest() throws(SyntaxFault) -> Bool? {
    let isKnown = isWord("KNOWN")
    guard isKnown || isWord("UNKNOWN") else { return nil }
    switch try peek().kind {
    case .dot, .leftBracket, .leftParenthesis: return nil
    default: break
    }
    try advance()
    height = 0
    return isKnown
  }

  /// Parses the right side of IN. Parentheses contain a list. Doubled parentheses contain one expression, as
  /// elsewhere.
  private mutating func collection() throws(SyntaxFault) -> QueryExpression {
    guard token.kind == .leftParenthesis else { return try binary(.relation) }
    try advance()
    if try beginsQuery() {
      let query = try subquery()
      try expect(.rightParenthesis, "\")\"")
      return query
    }
    let start = token.start
    let items = try expressions(until: .rightParenthesis)
    if items.count == 1, lastParentheses == start..<endOfLast {
      let item = try sets(after: items[0], from: start)
      try expect(.rightParenthesis, "\")\"")
      return item
    }
    try expect(.rightParenthesis, "\",\" or \")\"")
    try raise()
    return .array(items)
  }

  /// Parses expressions separated by commas. The list is empty when the closing token comes first.
  mutating func expressions(until closing: TokenKind) throws(SyntaxFault) -> [QueryExpression] {
    var items: [QueryExpression] = []
    var deepest = 0
    if token.kind != closing {
      repeat {
        items.append(try expression(&deepest))
      } while try take(.comma)
    }
    height = deepest
    return items
  }

  private mutating func collation() throws(SyntaxFault) -> Collation {
    var collation = Collation()
    if try take(.leftParenthesis) {
      repeat {
        try collationOption(&collation)
      } while token.kind != .rightParenthesis
      try advance()
    } else {
      try collationOption(&collation)
    }
    return collation
  }

  private mutating func collationOption(_ collation: inout Collation) throws(SyntaxFault) {
    if token.kind == .case {
      collation.ignoresCase = false
    } else if isWord("NOCASE") {
      collation.ignoresCase = true
    } else if isWord("DIAC") {
      collation.ignoresDiacritics = false
    } else if isWord("NODIAC") {
      collation.ignoresDiacritics = true
    } else if isWord("NOUNICODE") {
      collation.isUnicode = false
      collation.locale = nil
    } else if isWord("UNICODE") {
      collation.isUnicode = true
      try advance()
      guard try take(.colon) else { return }
      var locale = try name("a locale such as sv or pt_BR after UNICODE:").string
      while token.kind == .minus, token.start == endOfLast {
        try advance()
        locale += "-" + (try name("the rest of the locale")).string
      }
      collation.locale = locale
      return
    } else {
      throw unexpected("UNICODE, NOUNICODE, CASE, NOCASE, DIAC or NODIAC")
    }
    try advance()
  }
}
