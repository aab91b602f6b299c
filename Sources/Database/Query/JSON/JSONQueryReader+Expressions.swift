import Fleece
import Storage

// Expressions of queries in JSON: `[operation, operands…]`. Numbers, texts, booleans, null and objects are values.

extension JSONQueryReader {
  mutating func expression(_ json: JSONValue) throws(QueryError) -> QueryExpression {
    try countValue()
    switch json {
    case .null: return .literal(.null)
    case .bool(let value): return .literal(.bool(value))
    case .int(let value): return .literal(.int(value))
    case .uint(let value): return .literal(.uint(value))
    case .double(let value): return .literal(.double(value))
    case .string(let text): return .literal(.string(text))
    case .data: throw fault("binary data isn't JSON")
    case .object(let object):
      var members: [ObjectMember] = []
      // In the order of their names: the members of a JSON object have none.
      for (name, value) in object.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
        members.append(
          ObjectMember(name, try inside("{}") { reader throws(QueryError) in try reader.expression(value) }))
      }
      return .object(members)
    case .array(let items):
      guard let word = items.first?.string else {
        throw fault("an array begins with the name of an operation; [\"[]\", …] is an array of values")
      }
      return try inside(word) { reader throws(QueryError) in
        try reader.operation(word, Array(items.dropFirst()))
      }
    }
  }

  private mutating func all(_ operands: [JSONValue]) throws(QueryError) -> [QueryExpression] {
    var all: [QueryExpression] = []
    for operand in operands { all.append(try expression(operand)) }
    return all
  }

  private func check(_ operands: [JSONValue], _ counts: ClosedRange<Int>) throws(QueryError) {
    guard !counts.contains(operands.count) else { return }
    let wanted =
      counts.lowerBound == counts.upperBound
      ? "\(counts.lowerBound)" : "\(counts.lowerBound) or more"
    throw fault("expected \(wanted) operands, found \(operands.count)", .argumentCount)
  }

  private mutating func operation(_ word: String, _ operands: [JSONValue]) throws(QueryError)
    -> QueryExpression
  {
    if word.hasSuffix("()") { return try call(word.dropLast(2).uppercased(), operands) }
    switch word.utf8.first {
    case UInt8(ascii: "."): return try property(word, operands)
    case UInt8(ascii: "?"): return .property(PropertyReference(try path(word, operands).steps))
    case UInt8(ascii: "$"):
      let name = word.utf8.count > 1 ? String(word.dropFirst()) : operands.first?.string
      guard let name, !name.isEmpty else { throw fault("a parameter needs a name: [\"$name\"]") }
      return .parameter(ByteString(name))
    case UInt8(ascii: "_") where word.hasPrefix("_."): return try member(word, operands)
    default: break
    }
    let upper = word.uppercased()
    switch upper {
    case "[]": return .array(try all(operands))
    case "MISSING": return .literal(.missing)
    case "NOT":
      try check(operands, 1...1)
      return .unary(.not, try expression(operands[0]))
    case "IS", "IS NOT":
      try check(operands, 2...2)
      return try identity(operands, isNegated: upper == "IS NOT")
    case "IS VALUED", "IS NOT VALUED":
      try check(operands, 1...1)
      return .test(try expression(operands[0]), .valued, negated: upper == "IS NOT VALUED")
    case "IN", "NOT IN":
      try check(operands, 2...Int.max)
      let values = try all(operands)
      let list = values.count == 2 ? values[1] : .array(Array(values.dropFirst()))
      return .contained(values[0], in: list, negated: upper == "NOT IN")
    case "LIKE", "NOT LIKE":
      try check(operands, 2...2)
      return .like(
        try expression(operands[0]), pattern: try expression(operands[1]), negated: upper == "NOT LIKE")
    case "BETWEEN", "NOT BETWEEN":
      try check(operands, 3...3)
      let values = try all(operands)
      return .between(values[0], lower: values[1], upper: values[2], negated: upper == "NOT BETWEEN")
    case "SELECT": return .subquery(try select([.string(word)] + operands))
    case "EXISTS":
      guard operands.count == 1, let query = operands[0].array, query.first?.string?.uppercased() == "SELECT"
      else { throw fault("EXISTS takes a SELECT") }
      return .exists(try inside("SELECT") { reader throws(QueryError) in try reader.select(query) })
    case "COLLATE": return try collate(operands)
    case "ANY", "EVERY", "ANY AND EVERY", "SOME": return try quantified(upper, operands)
    case "CASE": return try conditional(operands)
    case "MATCH", "RANK", "META": return try call(upper, operands)
    default: return try binary(word, upper, operands)
    }
  }

  private mutating func binary(_ word: String, _ upper: String, _ operands: [JSONValue]) throws(QueryError)
    -> QueryExpression
  {
    let synonyms = ["==": "=", "<>": "!="]
    guard let sign = BinaryOperator(rawValue: synonyms[upper] ?? upper) else {
      let known = BinaryOperator.allCases.map(\.rawValue) + Self.words
      throw fault(
        "there is no operation \"\(word.prefix(40))\"\(Suggestions.hint(for: upper, among: known))",
        .unsupported)
    }
    if operands.count == 1, let unary = UnaryOperator(rawValue: upper) {
      return .unary(unary, try expression(operands[0]))
    }
    let isCondition = sign == .and || sign == .or
    let isChain = isCondition || [.add, .multiply, .concatenate].contains(sign)
    try check(operands, isChain ? 1...Int.max : 2...2)
    guard isCondition || operands.count <= Parser.depthLimit else {
      throw fault("more than \(Parser.depthLimit) operands", .tooDeep)
    }
    return Self.chain(sign, try all(operands)[...])
  }

  /// A chain of one operation. Long ones are grouped in halves, as the parser groups them, so that their tree is flat.
  private static func chain(_ sign: BinaryOperator, _ operands: ArraySlice<QueryExpression>)
    -> QueryExpression
  {
    if operands.count > Parser.longestChain, sign.power <= .and {
      let middle = operands.startIndex + operands.count / 2
      return .binary(sign, chain(sign, operands[..<middle]), chain(sign, operands[middle...]))
    }
    return operands.dropFirst().reduce(operands[operands.startIndex]) { .binary(sign, $0, $1) }
  }

  private static let words = [
    "NOT", "IN", "NOT IN", "LIKE", "BETWEEN", "EXISTS", "SELECT", "COLLATE", "ANY", "EVERY", "ANY AND EVERY",
    "CASE",
    "MISSING", "IS VALUED", "[]",
  ]

  private mutating func identity(_ operands: [JSONValue], isNegated: Bool) throws(QueryError)
    -> QueryExpression
  {
    let left = try expression(operands[0])
    switch try expression(operands[1]) {
    case .literal(.null): return .test(left, .null, negated: isNegated)
    case .literal(.missing): return .test(left, .missing, negated: isNegated)
    case let right: return .binary(isNegated ? .notIdentical : .identical, left, right)
    }
  }

  // MARK: Paths

  private func property(_ word: String, _ operands: [JSONValue]) throws(QueryError) -> QueryExpression {
    let path = try path(word, operands)
    guard !path.steps.isEmpty else { return .star(source: nil) }
    var source: SourceName?
    var rest = path.steps[...]
    if case .name(let first) = path.steps[0], aliases.contains(first.string), path.steps.count > 1 {
      source = SourceName(first)
      rest = rest.dropFirst()
    }
    guard rest.count == 1, case .name(let name) = rest[rest.startIndex], !path.isEscaped else {
      return .property(PropertyReference(path.steps))
    }
    if name == "" {
      return operands.isEmpty ? .star(source: source) : .property(PropertyReference(path.steps))
    }
    guard let member = MetaProperty.allCases.first(where: { name == ByteString("_" + $0.rawValue) }) else {
      return .property(PropertyReference(path.steps))
    }
    return .meta(source: source, member)
  }

  /// Reads `.a.b[0]`, or the steps that follow a sign alone. A backslash makes the next character a part of a
  /// name; before the first character it makes `_id` the name of a property.
  private func path(_ word: String, _ operands: [JSONValue]) throws(QueryError) -> (
    steps: [PathStep], isEscaped: Bool
  ) {
    var steps: [PathStep] = []
    var isEscaped = false
    if word.utf8.count > 1 { (steps, isEscaped) = try Self.steps(word.dropFirst(), self) }
    for operand in operands {
      if let name = operand.string {
        steps.append(.name(name))
      } else if let index = operand.array, index.count == 1, let number = index[0].int {
        steps.append(.index(Int(number)))
      } else {
        throw fault("a path has names and [index]")
      }
    }
    return (steps, isEscaped)
  }

  private static func steps(_ text: Substring, _ reader: JSONQueryReader) throws(QueryError) -> (
    [PathStep], isEscaped: Bool
  ) {
    var steps: [PathStep] = []
    var isEscaped = false
    var name = String.UnicodeScalarView()
    var hasName = true
    var scalars = text.unicodeScalars[...]
    func end() {
      if hasName { steps.append(.name(String(name))) }
      name = .init()
      hasName = false
    }
    while let scalar = scalars.popFirst() {
      switch scalar {
      case "\\":
        isEscaped = true
        if let next = scalars.popFirst() { name.append(next) }
      case ".":
        end()
        hasName = true
      case "[":
        end()
        var digits = String.UnicodeScalarView()
        while let next = scalars.first, next != "]" {
          digits.append(next)
          scalars.removeFirst()
        }
        guard scalars.popFirst() != nil, let index = Int(String(digits)) else {
          throw reader.fault("\"\(text)\" has no number in its brackets")
        }
        steps.append(.index(index))
      default:
        guard hasName else { throw reader.fault("expected a dot after the bracket in \"\(text)\"") }
        name.append(scalar)
      }
    }
    end()
    return (steps, isEscaped)
  }

  /// `["_.", object, ".x"]` or `["_.x", object]`.
  private mutating func member(_ word: String, _ operands: [JSONValue]) throws(QueryError) -> QueryExpression
  {
    guard let object = operands.first else { throw fault("expected an object and a path") }
    let base = try expression(object)
    var text = String(word.dropFirst())
    if operands.count == 2, let path = operands[1].string { text = path }
    guard text.hasPrefix("."), text.utf8.count > 1, operands.count <= 2 else {
      throw fault("expected an object and a path that begins with a dot")
    }
    let steps = try path(text, []).steps
    guard case .property(var reference) = base else { return .member(base, steps) }
    reference.steps += steps
    return .property(reference)
  }

  // MARK: Forms with an order of their own

  private mutating func collate(_ operands: [JSONValue]) throws(QueryError) -> QueryExpression {
    try check(operands, 2...2)
    guard let options = operands[0].object else { throw fault("COLLATE takes an object of options") }
    var collation = Collation()
    for (name, value) in options {
      switch (name.uppercased(), value) {
      case ("UNICODE", .bool(let isOn)): collation.isUnicode = isOn
      case ("CASE", .bool(let isOn)): collation.ignoresCase = !isOn
      case ("DIAC", .bool(let isOn)): collation.ignoresDiacritics = !isOn
      case ("LOCALE", .string(let locale)): collation.locale = locale
      case ("LOCALE", .null): break
      default: throw fault("COLLATE has no option \(name) with that value")
      }
    }
    return .collate(try expression(operands[1]), collation)
  }

  private mutating func quantified(_ word: String, _ operands: [JSONValue]) throws(QueryError)
    -> QueryExpression
  {
    try check(operands, 3...3)
    guard let variable = operands[0].string, !variable.isEmpty else {
      throw fault("expected a variable's name")
    }
    let quantifier: Quantifier = word == "EVERY" ? .every : word == "ANY AND EVERY" ? .anyAndEvery : .any
    return .quantified(
      quantifier, variable: ByteString(variable), in: try expression(operands[1]),
      satisfies: try expression(operands[2]))
  }

  private mutating func conditional(_ operands: [JSONValue]) throws(QueryError) -> QueryExpression {
    try check(operands, 3...Int.max)
    let operand = operands[0].isNull ? nil : try expression(operands[0])
    let parts = try all(Array(operands.dropFirst()))
    var branches: [ConditionalBranch] = []
    for index in stride(from: 0, to: parts.count - 1, by: 2) {
      branches.append(ConditionalBranch(when: parts[index], then: parts[index + 1]))
    }
    return .conditional(
      operand: operand, branches: branches, otherwise: parts.count % 2 == 1 ? parts.last : nil)
  }

  // MARK: Calls

  private mutating func call(_ name: String, _ operands: [JSONValue]) throws(QueryError) -> QueryExpression {
    switch name {
    case "MATCH":
      try check(operands, 2...2)
      return .match(try index(operands[0]), try expression(operands[1]))
    case "RANK":
      try check(operands, 1...1)
      return .rank(try index(operands[0]))
    case "META":
      guard operands.count <= 1 else { throw fault("META takes a source at most") }
      guard let source = operands.first else { return .meta(source: nil, nil) }
      guard let word = source.array?.first?.string ?? source.string, word.utf8.count > 1 else {
        throw fault("META takes a source")
      }
      return .meta(source: SourceName(word.hasPrefix(".") ? String(word.dropFirst()) : word), nil)
    default: break
    }
    guard let signature = QueryFunction.named(name) else {
      throw fault(
        "there is no function \(name.prefix(60))\(Suggestions.hint(for: name, among: Array(QueryFunction.all.keys)))",
        .unknownFunction)
    }
    guard !signature.isWindowFunction else { throw fault("\(name) has no JSON form", .unsupported) }
    var operands = operands
    var isDistinct = false
    if signature.isAggregate, let inner = operands.first?.array, inner.count == 2,
      inner[0].string?.uppercased() == "DISTINCT"
    {
      isDistinct = true
      operands[0] = inner[1]
    }
    if let complaint = signature.complaint(about: operands.count) { throw fault(complaint, .argumentCount) }
    return .call(FunctionCall(signature.name, try all(operands), isDistinct: isDistinct))
  }

  /// An index: its name, with the alias of its source before it.
  private func index(_ json: JSONValue) throws(QueryError) -> IndexReference {
    guard var text = json.string ?? json.array?.first?.string else { throw fault("expected an index's name") }
    if text.hasPrefix(".") { text.removeFirst() }
    if let dot = text.firstIndex(of: "."), aliases.contains(String(text[..<dot])) {
      return IndexReference(String(text[text.index(after: dot)...]), source: String(text[..<dot]))
    }
    return IndexReference(text)
  }
}
