import Query
import TestSupport

// A plain interpreter of expressions over values in memory: no compilation, no bytes in place, nothing shared with the
// library but the syntax tree and the analysis of text. It is slow, and meant to be right at a glance. Nil is missing.

/// What names stand for where an expression is evaluated.
struct NaiveRow {
  let data: NaiveData
  /// Sources and variables by their names.
  var values: [ByteString: JSONValue?] = [:]
  /// The documents of sources; nil for the side of an outer join without a partner.
  var documents: [ByteString: NaiveDocument?] = [:]
  /// The sources that a path without a source's name can belong to.
  var sources: [ByteString] = []
  /// The documents of the queries around this one.
  var outerDocuments: [ByteString: NaiveDocument?] = [:]
  /// The result columns by their aliases.
  var aliases: [ByteString: QueryExpression] = [:]
  /// The rows of the group, and its keys.
  var group: [NaiveRow]?
  var keys: [(expression: QueryExpression, value: JSONValue?)] = []
  /// Whether the order of an array's items doesn't show in the result.
  var isOrderFree = false
  /// Of the COLLATE around.
  var collation: Collation?
  /// The results of windows by their calls, and the number of the row among them.
  var windows: [FunctionCall: [JSONValue?]]?
  var number: Int?
  /// The index by which SNIPPET and OFFSETS know what is searched for.
  var matches: [IndexReference: QueryExpression] = [:]

  init(_ data: NaiveData) { self.data = data }

  mutating func add(_ document: NaiveDocument?, as name: ByteString) {
    values[name] = .some(document?.body)
    documents[name] = .some(document)
    if !sources.contains(name) { sources.append(name) }
  }

  /// A row that is a value.
  mutating func add(value: JSONValue?, as name: ByteString) {
    values[name] = .some(value)
    if !sources.contains(name) { sources.append(name) }
  }

  /// The document of a source, or of the only one.
  func document(_ source: ByteString?) throws -> NaiveDocument? {
    guard let name = source ?? documents.keys.first, let document = documents[name] ?? outerDocuments[name]
    else {
      throw NaiveError.unsupported("a source that isn't there")
    }
    return document
  }

  /// The same, for a comparison of operands: a COLLATE of their own goes before the one around.
  func comparing(_ operands: QueryExpression...) -> NaiveRow {
    for case .collate(_, let own) in operands {
      var row = self
      row.collation = own
      return row
    }
    return self
  }

  var foldsCase: Bool {
    get throws {
      guard let collation else { return false }
      if collation.isUnicode || collation.ignoresDiacritics {
        throw NaiveError.unsupported("COLLATE UNICODE")
      }
      return collation.ignoresCase
    }
  }
}

/// FALSE, MISSING, NULL, TRUE as 0 … 3.
func naiveTruth(_ value: JSONValue?) -> Int {
  guard let value else { return 1 }
  switch value {
  case .null: return 2
  case .bool(let value): return value ? 3 : 0
  case .int, .uint, .double: return value.double == 0 ? 0 : 3
  case .string(let text):
    // Whether the number that the text begins with isn't 0.
    var rest = Substring(text).drop { " \t\n\u{0B}\u{0C}\r".contains($0) }
    if let sign = rest.first, "+-".contains(sign) { rest = rest.dropFirst() }
    let digits = rest.prefix { $0.isASCII && $0.isNumber }
    var all = digits
    if rest.dropFirst(digits.count).first == "." {
      all += rest.dropFirst(digits.count + 1).prefix { $0.isASCII && $0.isNumber }
    }
    return all.contains { $0 != "0" } ? 3 : 0
  default: return 0
  }
}

func naiveValue(ofTruth truth: Int) -> JSONValue? {
  switch truth {
  case 0: return .bool(false)
  case 1: return missing
  case 2: return .null
  default: return .bool(true)
  }
}

func naiveIsTrue(_ expression: QueryExpression, _ row: NaiveRow) throws -> Bool {
  naiveTruth(try naive(expression, row)) == 3
}

/// The value of an expression for a row.
func naive(_ expression: QueryExpression, _ row: NaiveRow) throws -> JSONValue? {
  if row.group != nil, let key = row.keys.first(where: { $0.expression == expression }) { return key.value }
  switch expression {
  case .literal(let literal):
    switch literal {
    case .missing: return missing
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .int(let value): return .int(value)
    case .uint(let value): return .uint(value)
    case .double(let value): return .double(value)
    case .string(let value): return .string(value.string)
    }
  case .parameter(let name):
    guard let value = row.data.parameters[name.string] else {
      throw NaiveError.unsupported("unset parameter")
    }
    return value
  case .property(let reference): return try naiveProperty(reference, row)
  case .star(let source):
    if row.group != nil { throw NaiveError.open("a row of a group") }
    if let source { return row.values[source.name] ?? missing }
    guard row.sources.count == 1, let name = row.sources.first else {
      throw NaiveError.unsupported("* of several sources")
    }
    return row.values[name] ?? missing
  case .meta(let source, let member):
    if row.group != nil { throw NaiveError.open("a row of a group") }
    guard let document = try row.document(source?.name) else { return missing }
    return member.map { document.meta($0) } ?? document.meta
  case .member(let base, let steps): return naiveFollow(try naive(base, row), steps[...])
  case .array(let items): return .array(try items.map { try naive($0, row) ?? .null })
  case .object(let members):
    var object = JSONObject()
    for member in members {
      if let value = try naive(member.value, row) { object[member.name.string] = value }
    }
    return .object(object)
  case .unary(.not, let operand):
    let operand = naiveTruth(try naive(operand, row))
    return naiveValue(ofTruth: operand == 0 ? 3 : operand == 3 ? 0 : operand)
  case .unary(let sign, let operand): return naiveSigned(sign, try naive(operand, row))
  case .binary(.and, let left, let right):
    return naiveValue(ofTruth: min(naiveTruth(try naive(left, row)), naiveTruth(try naive(right, row))))
  case .binary(.or, let left, let right):
    return naiveValue(ofTruth: max(naiveTruth(try naive(left, row)), naiveTruth(try naive(right, row))))
  case .binary(let binary, let left, let right):
    return try naiveBinary(
      binary, try naive(left, row), try naive(right, row), foldsCase: row.comparing(left, right).foldsCase)
  case .test(let operand, let test, let negated):
    let value = try naive(operand, row)
    switch test {
    case .null: return value.map { .bool($0.isNull != negated) }
    case .missing: return .bool((value == nil) != negated)
    case .valued: return .bool((value.map { !$0.isNull } ?? false) != negated)
    }
  case .between(let operand, let lower, let upper, let negated):
    let both = QueryExpression.binary(
      .and, .binary(.greaterOrEqual, operand, lower), .binary(.lessOrEqual, operand, upper))
    return try naive(negated ? .unary(.not, both) : both, row.comparing(operand, lower, upper))
  case .contained(let operand, let collection, let negated):
    return try naiveContained(operand, collection, negated, row)
  case .like(let operand, let pattern, let negated):
    let like = row.comparing(operand, pattern)
    guard let operand = try naive(operand, row), let pattern = try naive(pattern, row) else { return missing }
    guard let text = operand.string, let wanted = pattern.string else { return .null }
    let ignoresCase = try like.collation == nil || like.foldsCase
    return .bool(naiveLike(text, wanted, ignoresCase: ignoresCase) != negated)
  case .conditional(let operand, let branches, let otherwise):
    for branch in branches {
      let condition = operand.map { QueryExpression.binary(.equal, $0, branch.condition.withoutCollation) }
      if try naiveIsTrue(condition ?? branch.condition, row) { return try naive(branch.result, row) }
    }
    return try otherwise.map { try naive($0, row) } ?? .null
  case .quantified(let quantifier, let variable, let collection, let condition):
    let collection = try naive(collection, row)
    let items = collection?.array ?? collection?.object.map { Array($0.values) } ?? []
    let verdicts = try items.map { item in
      var inner = row
      inner.values[variable] = .some(item)
      return try naiveIsTrue(condition, inner)
    }
    switch quantifier {
    case .any: return .bool(verdicts.contains(true))
    case .every: return .bool(!verdicts.contains(false))
    case .anyAndEvery: return .bool(!verdicts.contains(false) && !verdicts.isEmpty)
    }
  case .iteration(let iteration): return try naiveIteration(iteration, row)
  case .within(let operand, let collection, let negated):
    let row = row.comparing(operand)
    guard let operand = try naive(operand, row), let collection = try naive(collection, row) else {
      return missing
    }
    guard collection.array != nil || collection.object != nil else { return .null }
    var found = 0
    for (_, item) in naiveElements(collection, isDeep: true) {
      found = max(found, naiveTruth(try naiveBinary(.equal, operand, item, foldsCase: row.foldsCase)))
    }
    return naiveValue(ofTruth: negated && found == 0 ? 3 : negated && found == 3 ? 0 : found)
  case .subscripted(let base, let inside): return try naiveSubscript(try naive(base, row), inside, row)
  case .computedObject(let members):
    var object = JSONObject()
    for member in members {
      guard let name = try naive(member.name, row), !name.isNull else { continue }
      guard let name = name.string else { return .null }
      if object[name] == nil, let value = try naive(member.value, row) { object[name] = value }
    }
    return .object(object)
  case .exists(let statement): return .bool(try !naiveRows(statement, row).isEmpty)
  case .subquery(let statement): return .array(try naiveRows(statement, row).map { $0 ?? .null })
  case .call(let call): return try naiveCall(call, row)
  case .match(let index, let text):
    if row.group != nil { throw NaiveError.open("a row of a group") }
    guard let document = try row.document(index.source) else { return missing }
    if document.isDeleted { return .bool(false) }
    return .bool(try fullText(index, row).search(naive(text, row))[ByteString(document.id)] != nil)
  case .rank(let index):
    if row.group != nil { throw NaiveError.open("a row of a group") }
    guard let document = try row.document(index.source) else { return missing }
    let ranks = try fullText(index, row).search(searched(index, row))
    return .double(ranks[ByteString(document.id)] ?? 0)
  case .collate(let operand, let collation):
    var inner = row
    inner.collation = collation
    return try naive(operand, inner)
  }
}

private func fullText(_ index: IndexReference, _ row: NaiveRow) throws -> NaiveFullText {
  guard let found = row.data.fullText[index.name] else { throw NaiveError.unsupported("no such index") }
  return found
}

/// What the MATCH of an index asks for.
private func searched(_ index: IndexReference, _ row: NaiveRow) throws -> JSONValue? {
  guard let text = row.matches[IndexReference(index.name, source: nil)] else {
    throw NaiveError.unsupported("RANK without MATCH")
  }
  return try naive(text, row)
}

/// SNIPPET and OFFSETS.
func naiveHighlight(_ call: FunctionCall, _ row: NaiveRow) throws -> JSONValue? {
  guard case .property(let path)? = call.arguments.first, case .name(let last)? = path.steps.last else {
    throw NaiveError.unsupported("an index")
  }
  if row.group != nil { throw NaiveError.open("a row of a group") }
  var index = IndexReference(last, source: nil)
  if path.steps.count == 2, case .name(let source) = path.steps[0] { index.source = source }
  guard let document = try row.document(index.source) else { return missing }
  guard let text = try searched(index, row)?.string else { return .null }
  let found = try fullText(index, row)
  let arguments = try call.arguments.dropFirst().map { try naive($0, row) }
  return try found.highlighting(text, document) { highlighter, texts in
    if call.name == "OFFSETS" {
      return .array(
        highlighter.hits(in: texts).map { hit in
          [
            "column": .string(found.definition.columns[hit.column]), "length": JSONValue(hit.length),
            "start": JSONValue(hit.start), "term": JSONValue(hit.term),
          ]
        })
    }
    func argument(_ index: Int) -> JSONValue? { arguments.indices.contains(index) ? arguments[index] : nil }
    return .string(
      highlighter.snippet(
        of: texts, before: argument(0)?.string ?? "<b>", after: argument(1)?.string ?? "</b>",
        ellipsis: argument(2)?.string ?? "…", words: max(1, min(1_000, Int(argument(3)?.int ?? 15)))))
  }
}

private func naiveProperty(_ reference: PropertyReference, _ row: NaiveRow) throws -> JSONValue? {
  guard case .name(let name)? = reference.steps.first else { throw NaiveError.unsupported("a path") }
  let rest = reference.steps.dropFirst()
  if let value = row.values[name] {
    // A group's rows may differ in it; variables of ANY can't be told from sources here, and are rare in groups.
    if row.group != nil, row.documents[name] != nil || row.group?.first?.values[name] != nil {
      throw NaiveError.open("a row of a group")
    }
    return naiveFollow(value, rest)
  }
  if let aliased = row.aliases[name] {
    return naiveFollow(try naive(aliased, row), rest)
  }
  if row.group != nil { throw NaiveError.open("a row of a group") }
  guard row.sources.count == 1, let source = row.sources.first, let value = row.values[source] else {
    throw NaiveError.unsupported("a property of no source")
  }
  return naiveFollow(value, reference.steps[...])
}

func naiveFollow(_ value: JSONValue?, _ steps: ArraySlice<PathStep>) -> JSONValue? {
  var value = value
  for step in steps {
    switch step {
    case .name(let name): value = value?.object?[name.string]
    case .index(let index):
      guard let items = value?.array else { return missing }
      let place = index < 0 ? items.count + index : index
      value = items.indices.contains(place) ? items[place] : missing
    }
  }
  return value
}

private func naiveContained(
  _ operand: QueryExpression, _ collection: QueryExpression, _ negated: Bool, _ row: NaiveRow
) throws -> JSONValue? {
  let row = row.comparing(operand)
  let operand = try naive(operand, row)
  var items: [JSONValue?] = []
  if case .array(let list) = collection {
    items = try list.map { try naive($0, row) }
  } else {
    guard let collection = try naive(collection, row), operand != nil else { return missing }
    guard let list = collection.array else { return .null }
    items = list
  }
  if operand == nil { return missing }
  var found = 0
  for item in items {
    found = max(found, naiveTruth(try naiveBinary(.equal, operand, item, foldsCase: row.foldsCase)))
  }
  return naiveValue(ofTruth: negated && found == 0 ? 3 : negated && found == 3 ? 0 : found)
}
