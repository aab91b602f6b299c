// Prints a syntax tree as SQL text. Parsing the text gives the same tree again. Parentheses are printed only
// where they are needed, and around NOT after an operator, where readers would be unsure.

import Storage

/// Prints a tree as text.
struct Printer {
  private(set) var text = ""

  mutating func put(_ part: String) { text += part }

  /// What `body` prints.
  static func text(_ body: (inout Printer) -> Void) -> String {
    var printer = Printer()
    body(&printer)
    return printer.text
  }

  mutating func put(name: ByteString) {
    let name = name.string
    guard ReservedWords.mustBeQuoted(name) else { return put(name) }
    text += "`" + name.doubling("`") + "`"
  }

  private mutating func put(string: ByteString, quote: Character = "'") {
    text.append(quote)
    text += string.string.doubling(quote)
    text.append(quote)
  }

  mutating func put<Item>(_ items: [Item], _ each: (inout Printer, Item) -> Void) {
    for (index, item) in items.enumerated() {
      if index > 0 { put(", ") }
      each(&self, item)
    }
  }

  // MARK: Expressions

  /// Prints an expression, in parentheses if it binds less tightly than `minimum`.
  mutating func put(_ expression: QueryExpression, atLeast minimum: BindingPower = .collate) {
    if power(of: expression) < minimum {
      put("(")
      write(expression)
      put(")")
    } else {
      write(expression)
    }
  }

  private func power(of expression: QueryExpression) -> BindingPower {
    switch expression {
    case .collate: .collate
    case .unary(.not, _): .not
    case .unary: .prefix
    case .binary(let sign, _, _): sign.power
    case .test, .between, .contained, .like, .within: .equality
    default: .primary
    }
  }

  private mutating func write(_ expression: QueryExpression) {
    switch expression {
    case .literal(let literal): write(literal)
    case .parameter(let name): put("$" + name.string)
    case .property(let path): write(path.steps)
    case .star(nil): put("*")
    case .star(let source?):
      put(name: source.name)
      put(".*")
    case .meta(let source, let member):
      put("META(")
      if let source { put(name: source.name) }
      put(")")
      if let member { put("." + member.rawValue) }
    case .member(let base, let steps):
      put(base: base)
      write(steps, isFirst: false)
    case .array(let items):
      put("[")
      put(items) { $0.put($1) }
      put("]")
    case .object(let members):
      put("{")
      put(members) { printer, member in
        printer.put(string: member.name, quote: "\"")
        printer.put(": ")
        printer.put(member.value)
      }
      put("}")
    case .unary(let sign, let operand): write(sign, operand)
    case .binary(let sign, _, _): writeChain(expression, sign.power)
    case .test(let operand, let test, let isNegated):
      put(operand, atLeast: .equality)
      put(isNegated ? " IS NOT " : " IS ")
      put(test.rawValue)
    case .between(let operand, let lower, let upper, let isNegated):
      put(operand, atLeast: .equality)
      put(isNegated ? " NOT BETWEEN " : " BETWEEN ")
      put(lower, atLeast: .relation)
      put(" AND ")
      put(upper, atLeast: .relation)
    case .contained(let operand, let collection, let isNegated):
      put(operand, atLeast: .equality)
      put(isNegated ? " NOT IN " : " IN ")
      write(collection: collection)
    case .like(let operand, let pattern, let isNegated):
      put(operand, atLeast: .equality)
      put(isNegated ? " NOT LIKE " : " LIKE ")
      put(pattern, atLeast: .relation)
    case .conditional(let operand, let branches, let otherwise): write(operand, branches, otherwise)
    case .quantified(let quantifier, let variable, let collection, let condition):
      put(quantifier.rawValue + " ")
      put(name: variable)
      put(" IN ")
      put(collection)
      put(" SATISFIES ")
      put(condition)
      put(" END")
    case .exists(let select):
      put("EXISTS (")
      put(select)
      put(")")
    case .iteration(let iteration): write(iteration)
    case .within(let operand, let collection, let isNegated):
      put(operand, atLeast: .equality)
      put(isNegated ? " NOT WITHIN " : " WITHIN ")
      put(afterWord: collection, atLeast: .relation)
    case .subscripted(let base, let inside):
      if case .property(let path) = base { write(path.steps) } else { put(base: base) }
      write(inside)
    case .computedObject(let members): write(members)
    case .subquery(let select):
      put("(")
      put(select)
      put(")")
    case .call(let call):
      put(call.name + (call.isDistinct ? "(DISTINCT " : "("))
      put(call.arguments) { $0.put($1) }
      put(")")
      write(filter: call.filter, call.window)
    case .match(let index, let pattern):
      put("MATCH(")
      write(index)
      put(", ")
      put(pattern)
      put(")")
    case .rank(let index):
      put("RANK(")
      write(index)
      put(")")
    case .collate(let operand, let collation):
      put(operand, atLeast: .or)
      write(collation)
    }
  }

  private mutating func write(_ literal: Literal) {
    switch literal {
    case .missing: put("MISSING")
    case .null: put("NULL")
    case .bool(let value): put(value ? "TRUE" : "FALSE")
    case .int(let value): put(String(value))
    case .uint(let value): put(String(value))
    // JSON has no NaN and no infinities, so documents have none either.
    case .double(let value): put(value.isFinite ? String(value) : "NULL")
    case .string(let value): put(string: value)
    }
  }

  mutating func write(_ steps: [PathStep], isFirst: Bool = true) {
    for (index, step) in steps.enumerated() {
      switch step {
      case .name(let name):
        if !isFirst || index > 0 { put(".") }
        put(name: name)
      case .index(let number): put("[\(number)]")
      }
    }
  }

  /// Prints an expression that steps follow. Parentheses separate it from the steps where they would be
  /// parsed as a part of it.
  mutating func put(base: QueryExpression) {
    switch base {
    case .call(let call) where call.filter == nil && call.window == nil: write(base)
    case .array, .object, .computedObject, .conditional, .quantified, .iteration, .exists, .subquery, .match,
      .rank,
      .meta(_, _?), .subscripted:
      write(base)
    default:
      put("(")
      write(base)
      put(")")
    }
  }

  private mutating func write(_ sign: UnaryOperator, _ operand: QueryExpression) {
    switch sign {
    case .not:
      put("NOT ")
      put(operand, atLeast: .not)
    case .minus, .plus:
      // A minus directly before digits is part of the number, and two minuses begin a comment.
      put(sign.rawValue)
      switch operand {
      case .literal, .unary: put(" ")
      default: break
      }
      put(operand, atLeast: .prefix)
    }
  }

  /// Prints left-associative operators. It descends to the left without recursion, because chains can have
  /// thousands of operands.
  private mutating func writeChain(_ expression: QueryExpression, _ power: BindingPower) {
    var rights: [(BinaryOperator, QueryExpression)] = []
    var left = expression
    var needed = power
    while case .binary(let sign, let inner, let right) = left, sign.power >= needed {
      rights.append((sign, right))
      needed = sign.power
      left = inner
    }
    put(left, atLeast: needed)
    for (sign, right) in rights.reversed() {
      put(" " + sign.rawValue + " ")
      guard sign == .identical || sign == .notIdentical else {
        put(right, atLeast: sign.power.next)
        continue
      }
      // `x IS NULL` is a test. The comparison with the literal is printed as `x IS (NULL)`.
      if case .property(let path) = right, path.steps.count == 1, case .name(let name) = path.steps[0],
        ReferenceWords.mistake(afterIs: name.string) != nil, !ReservedWords.mustBeQuoted(name.string)
      {
        put("`\(name)`")
        continue
      }
      let operand = rendered(right, atLeast: sign.power.next)
      put(operand.hasPrefix("NULL") || operand.hasPrefix("MISSING") ? "(" + operand + ")" : operand)
    }
  }

  /// Prints the right side of IN: a list in parentheses, or another expression, in doubled parentheses where
  /// single ones would make a list.
  private mutating func write(collection: QueryExpression) {
    if case .subquery = collection {
      put(collection)
    } else if case .array(let items) = collection {
      var inside = Printer()
      inside.put(items) { $0.put($1) }
      let looksDoubled = items.count == 1 && inside.text.hasPrefix("(")
      put((looksDoubled ? "[" : "(") + inside.text + (looksDoubled ? "]" : ")"))
    } else {
      let text = rendered(collection, atLeast: .collate)
      put(power(of: collection) < .relation || text.hasPrefix("(") ? "((" + text + "))" : text)
    }
  }

  func rendered(_ expression: QueryExpression, atLeast minimum: BindingPower) -> String {
    var printer = Printer()
    printer.put(expression, atLeast: minimum)
    return printer.text
  }

  private mutating func write(
    _ operand: QueryExpression?, _ branches: [ConditionalBranch], _ otherwise: QueryExpression?
  ) {
    put("CASE")
    put(" ", operand)
    for branch in branches {
      put(" WHEN ", branch.condition)
      put(" THEN ", branch.result)
    }
    put(" ELSE ", otherwise)
    put(" END")
  }

  private mutating func write(_ index: IndexReference) {
    if let source = index.source {
      put(name: source)
      put(".")
    }
    put(name: index.name)
  }

  private mutating func write(_ collation: Collation) {
    var options: [String] = []
    if collation.isUnicode { options.append("UNICODE") }
    options.append(collation.ignoresCase ? "NOCASE" : "CASE")
    if collation.ignoresDiacritics { options.append("NODIAC") }
    if let locale = collation.locale, collation.isUnicode {
      var printer = Printer()
      printer.put(name: ByteString(locale))
      options[0] += ":" + printer.text
    }
    if collation.isUnicode, !collation.ignoresCase { options.removeAll { $0 == "CASE" } }
    put(" COLLATE ")
    put(options.count == 1 ? options[0] : "(" + options.joined(separator: " ") + ")")
  }
}

extension String {
  fileprivate func doubling(_ quote: Character) -> String {
    // Compares scalars, because a quote followed by a combining character isn't a Character of its own.
    guard let scalar = quote.unicodeScalars.first, unicodeScalars.contains(scalar) else { return self }
    var doubled = String.UnicodeScalarView()
    for character in unicodeScalars {
      doubled.append(character)
      if character == scalar { doubled.append(character) }
    }
    return String(doubled)
  }
}

extension QueryExpression: CustomStringConvertible {
  /// The expression as text of the query language.
  public var description: String {
    Printer().rendered(self, atLeast: .collate)
  }
}

extension SelectStatement: CustomStringConvertible {
  /// The query as text on one line.
  public var description: String {
    var printer = Printer()
    printer.put(self)
    return printer.text
  }
}

extension QueryStatement: CustomStringConvertible {
  /// The statement as text on one line.
  package var description: String {
    switch self {
    case .select(let select): select.description
    case .advise(let select): "ADVISE " + select.description
    case .change(let change): change.description
    case .index(let index): index.description
    case .infer(let statement): Printer.text { $0.put(statement) }
    case .prepare(let name, let replaces, let statement):
      Printer.text { printer in
        printer.put(replaces ? "PREPARE FORCE " : "PREPARE ")
        if let name {
          printer.put(name: name)
          printer.put(" AS ")
        }
      } + statement.description
    case .execute(let name, let values):
      Printer.text { printer in
        printer.put("EXECUTE ")
        printer.put(name: name.name)
        printer.put(" USING ", values)
      }
    case .explain(let select, let analyze): (analyze ? "EXPLAIN ANALYZE " : "EXPLAIN ") + select.description
    }
  }
}
