// The syntax of INFER, PREPARE and EXECUTE:
//
//   infer    = INFER [KEYSPACE | COLLECTION] name [WITH object]
//   prepare  = PREPARE [FORCE] [name (AS | FROM)] statement
//   execute  = EXECUTE name [USING expr]

import Fleece
import Storage

/// `INFER _ WITH {"sample_size": 100}`: a schema, from a sample of the documents.
package struct InferStatement: Hashable, Sendable {
  /// The database.
  package var source: SourceName
  /// The number of documents that are read. Nil is the default.
  package var sampleSize: Int?
  /// The number of values that are shown of a property. Nil is the default.
  package var sampleValues: Int?

  /// The members of WITH.
  var options: [ObjectMember] {
    [("sample_size", sampleSize), ("num_sample_values", sampleValues)].compactMap { name, value in
      value.map { ObjectMember(name, .literal(.int(Int64($0)))) }
    }
  }
}

extension Parser {
  /// Parses INFER, PREPARE or EXECUTE, if one of them is next.
  mutating func namedStatement() throws(SyntaxFault) -> QueryStatement? {
    guard token.kind == .name else { return nil }
    let next = try peek().kind
    switch upperCase(token) {
    case "INFER" where next == .name || next == .quotedName: return .infer(try infer())
    case "PREPARE":
      guard next == .name || next == .quotedName || next == .select || next == .from else { return nil }
      return try prepare()
    case "EXECUTE" where next == .name || next == .quotedName || next == .string:
      try advance()
      let position = SourcePosition(token.start)
      let name = try statementName()
      let values = try take(.using) ? try expression() : nil
      return .execute(SourceName(name, position: position), using: values)
    default: return nil
    }
  }

  private mutating func infer() throws(SyntaxFault) -> InferStatement {
    try advance()
    if isWord("KEYSPACE") || isWord("COLLECTION"), case let next = try peek().kind,
      next == .name || next == .quotedName
    {
      try advance()
    }
    let position = SourcePosition(token.start)
    var statement = InferStatement(
      source: SourceName(try name("a source's name (_ or the database's)"), position: position))
    guard try takeWord("WITH") else { return statement }
    let start = token.start
    guard case .object(let members) = try expression() else {
      throw fault("expected an object after WITH, such as {\"sample_size\": 100}", at: start)
    }
    for member in members {
      guard case .literal(.int(let value)) = member.value, value > 0 else {
        throw fault(.invalidUse, "\"\(member.name)\" of INFER is a whole number above 0", at: start)
      }
      switch member.name {
      case "sample_size": statement.sampleSize = Int(value)
      case "num_sample_values": statement.sampleValues = Int(value)
      default:
        throw fault(
          .unsupported, "INFER has \"sample_size\" and \"num_sample_values\", and no \"\(member.name)\"",
          at: start)
      }
    }
    return statement
  }

  private mutating func prepare() throws(SyntaxFault) -> QueryStatement {
    try advance()
    var replaces = false
    if isWord("FORCE"), case let next = try peek().kind, next != .as, next != .from {
      replaces = true
      try advance()
    }
    var name: ByteString?
    if token.kind == .name || token.kind == .quotedName || token.kind == .string,
      case let next = try peek().kind, next == .as || (next == .from && !isWord("DELETE"))
    {
      name = try statementName()
      try advance()
    }
    let start = token.start
    let inner = try unended()
    switch inner {
    case .prepare, .execute:
      throw fault(.invalidUse, "a query or a change can be prepared, and not PREPARE or EXECUTE", at: start)
    default: return .prepare(name: name, replaces: replaces, inner)
    }
  }

  /// Takes the name of a prepared statement. It may be in quotes.
  private mutating func statementName() throws(SyntaxFault) -> ByteString {
    if token.kind == .string {
      let name = unquoted(token)
      try advance()
      return name
    }
    return try name("the name of a prepared statement")
  }
}

extension QueryExpression {
  /// The value of an expression of constants. Nil for other expressions.
  var constant: JSONValue? {
    switch self {
    case .literal(let literal): return literal.jsonValue
    case .array(let items):
      var values: [JSONValue] = []
      for item in items {
        guard let value = item.constant else { return nil }
        values.append(value)
      }
      return .array(values)
    case .object(let members):
      var object = JSONObject()
      for member in members {
        guard let value = member.value.constant else { return nil }
        object[member.name.string] = value
      }
      return .object(object)
    default: return nil
    }
  }
}

extension Printer {
  mutating func put(_ statement: InferStatement) {
    put("INFER ")
    put(name: statement.source.name)
    guard !statement.options.isEmpty else { return }
    put(" WITH ")
    put(.object(statement.options))
  }
}
