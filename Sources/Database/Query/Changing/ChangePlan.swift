// What a statement that changes documents has to read, and what it makes of each row that was read.
//
// All rows are read before the first document is written. So no row is seen that the statement itself has made
// or changed, and each document is changed once.

import Fleece
import Storage

/// A change of one document that a statement asks for.
package enum RequestedChange: Sendable {
  /// The document is changed: the values of SET and UNSET.
  case update([AppliedTerm])
  case delete
  /// A document with that body is made. `replaces` tells whether a live document may be there.
  case insert(JSONValue, replaces: Bool)
}

/// A term of SET or UNSET with its values.
package struct AppliedTerm: Sendable {
  let path: [PathStep]
  /// The arrays of FOR, from the outermost to the innermost. Empty without FOR.
  let loops: [[PathStep]]
  /// The value, nil to remove it. With FOR, arrays of objects as `ChangePlan.looped` makes them.
  let value: JSONValue?
}

/// How a statement is carried out.
package struct ChangePlan: Sendable {
  /// The query that finds what to change.
  package let selection: SelectStatement
  /// The query for the results of RETURNING for one document, whose ID is the parameter `idParameter`.
  package let returning: SelectStatement?
  /// The paths of SET and UNSET in the order of the terms, if each leads to a property by names alone, and none lies within
  /// another one. Then a stored body can be encoded again without reading it into memory first.
  package let propertyPaths: [[ByteString]]?
  private let statement: ChangeStatement
  private let target: ByteString

  package static let idParameter = "\u{1}id"
  private static let id = "id"

  /// Plans a statement.
  ///
  /// - Throws: `invalidUse` or `unsupported` for assignments that can't be made.
  package init(_ statement: ChangeStatement, text: String?) throws(QueryError) {
    self.statement = statement
    target = statement.target.ownName
    selection = try ChangePlan.selection(of: statement, text)
    propertyPaths = ChangePlan.propertyPaths(of: statement)
    guard !statement.returning.isEmpty else {
      returning = nil
      return
    }
    for column in statement.returning where column.expression.hasAggregates || column.expression.hasWindows {
      throw QueryError(
        .invalidUse,
        "RETURNING gives a row for each document, so aggregates and functions OVER a window aren't allowed in it",
        at: column.position, in: text)
    }
    var source = statement.target
    source.keys = nil
    var query = SelectStatement(
      results: statement.returning, source: source,
      condition: .binary(
        .equal, .meta(source: SourceName(source.ownName), .id), .parameter(ByteString(ChangePlan.idParameter))
      ))
    query.isRaw = statement.isRaw
    returning = query
  }

  private static func propertyPaths(of statement: ChangeStatement) -> [[ByteString]]? {
    let assignments: Assignments
    switch statement.action {
    case .update(let own): assignments = own
    case .merge(let actions):
      guard let update = actions.update else { return nil }
      assignments = update.assignments
    default: return nil
    }
    var paths: [[ByteString]] = []
    for (path, loop) in assignments.set.map({ ($0.path, $0.loop) })
      + assignments.unset.map({ ($0.path, $0.loop) })
    {
      guard loop == nil else { return nil }
      var names: [ByteString] = []
      for step in ownSteps(path.steps, of: statement.target.ownName) {
        guard case .name(let name) = step else { return nil }
        names.append(name)
      }
      guard !paths.contains(where: { $0.starts(with: names) || names.starts(with: $0) }) else { return nil }
      paths.append(names)
    }
    return paths.count <= BodyChange.maximum ? paths : nil
  }

  // MARK: What is read

  /// A column with an internal name, which no condition can mean: an alias takes precedence over a property.
  private static func column(_ name: String, _ value: QueryExpression) -> ResultColumn {
    ResultColumn(value, as: ByteString("\u{1}" + name))
  }

  private func value(_ name: String, of row: QueryRow) -> QueryResultValue { row["\u{1}" + name] }

  private static func selection(
    of statement: ChangeStatement, _ text: String?
  ) throws(QueryError) -> SelectStatement {
    let id = column(
      ChangePlan.id, .meta(source: SourceName(statement.target.ownName), .id))
    var query = SelectStatement(results: [id], source: statement.target, condition: statement.condition)
    query.limit = statement.limit
    query.offset = statement.offset
    switch statement.action {
    case .update(let assignments):
      query.results += try columns(of: assignments, statement.target.ownName, text)
    case .delete: break
    case .insert(.values(let rows), _):
      let objects = rows.map { QueryExpression.object([ObjectMember("k", $0[0]), ObjectMember("v", $0[1])]) }
      query = SelectStatement(results: [column("rows", .array(objects))])
    case .insert(.rows(let rows, let key, let value), _):
      let alias: ByteString = "\u{1}row"
      query = SelectStatement(
        results: [
          column("k", key), column("v", value ?? .property(PropertyReference([.name(alias)]))),
        ], source: DataSource(items: .subquery(rows), as: alias))
    case .merge(let actions):
      query.source = actions.source
      query.joins = [.join(.leftOuter, statement.target, on: actions.on)]
      if let update = actions.update {
        query.results += try columns(of: update.assignments, statement.target.ownName, text)
        query.results.append(column("u", truth(of: update.condition)))
      }
      if let delete = actions.delete {
        query.results.append(column("d", truth(of: delete.condition)))
      }
      if let insert = actions.insert {
        query.results += [
          column("i", truth(of: insert.condition)), column("k", insert.key),
          column("v", insert.value ?? .star(source: SourceName(actions.source.ownName))),
        ]
      }
    }
    return query
  }

  /// Whether a condition is met, as a boolean: a number or a text is true or false as in WHERE.
  private static func truth(of condition: QueryExpression?) -> QueryExpression {
    condition.map { .unary(.not, .unary(.not, $0)) } ?? .literal(.bool(true))
  }

  /// The columns with the values of SET and UNSET.
  private static func columns(
    of assignments: Assignments, _ target: ByteString, _ text: String?
  ) throws(QueryError) -> [ResultColumn] {
    var columns: [ResultColumn] = []
    for (number, term) in assignments.set.enumerated() {
      try check(term.path, term.loop, target, text)
      columns.append(column("s\(number)", looped(term.value, term.loop, target)))
    }
    for (number, term) in assignments.unset.enumerated() {
      try check(term.path, term.loop, target, text)
      if term.loop != nil {
        columns.append(column("x\(number)", looped(.literal(.missing), term.loop, target)))
      }
    }
    return columns
  }

  private static func check(
    _ path: PropertyReference, _ loop: AssignmentLoop?, _ target: ByteString, _ text: String?
  ) throws(QueryError) {
    if path.steps.count == 1, path.steps[0] == .name(target) {
      throw QueryError(
        .invalidUse, "a property of \"\(target)\" can be set, not the whole document; UPSERT replaces it",
        at: path.position, in: text)
    }
    guard let loop else { return }
    guard path.steps.count > 1, let last = loop.variables.first, path.steps[0] == .name(last.name) else {
      throw QueryError(
        .invalidUse, "with FOR, the path begins with the variable \"\(loop.variables[0].name)\"",
        at: path.position, in: text)
    }
  }

  /// The value for each item of the arrays of FOR: an array of objects, whose `v` is the array for the items of the next array or, for
  /// those of the innermost one, the value, beside the condition `w`. FOR comes from the innermost array to the outermost one. Paths in
  /// values that begin with no variable are the document's, as in any loop over a collection.
  private static func looped(
    _ value: QueryExpression, _ loop: AssignmentLoop?, _ target: ByteString
  ) -> QueryExpression {
    guard let loop else { return value }
    var result = QueryExpression.object([
      ObjectMember("w", truth(of: loop.condition)), ObjectMember("v", value),
    ])
    for (number, variable) in loop.variables.enumerated() {
      var path = variable.path
      let isOutermost = number == loop.variables.count - 1
      if isOutermost, path.steps[0] != .name(target) || path.steps.count == 1 {
        path.steps.insert(.name(target), at: 0)
      }
      let items = VariableBinding(variable.name, in: .property(path))
      result = .iteration(Iteration(.array, result, over: [items]))
      // Without the object, the loop would leave out an item that doesn't have the inner array.
      if !isOutermost { result = .object([ObjectMember("v", result)]) }
    }
    return result
  }

  // MARK: What is changed

  /// Calls `body` with each change that the rows ask for, and the ID of its document. They come in the order of the IDs,
  /// so documents get the same sequences from each plan and on each engine. The rows of INSERT and UPSERT keep an order
  /// that the statement gives them.
  ///
  /// - Throws: `evaluation` for a key that isn't a string, a body that isn't an object, and a document that
  ///   UPSERT or MERGE finds for several rows; and what `body` throws.
  package func forEachChange(
    of rows: QueryResults, _ body: (String, RequestedChange) throws -> Void
  ) throws {
    switch statement.action {
    case .update(let assignments):
      // USE KEYS may name a document twice.
      var seen: Set<ByteString>? = statement.target.keys == nil ? nil : []
      for row in Self.ordered(rows, { $0[0] }) {
        guard let id = row[0].string, seen?.insert(ByteString(id)).inserted ?? true else { continue }
        try body(id, .update(try terms(assignments, row)))
      }
    case .delete:
      for row in Self.ordered(rows, { $0[0] }) { if let id = row[0].string { try body(id, .delete) } }
    case .insert(.values, let replaces):
      var changed = ChangedOnce(finding: "UPSERT has several rows")
      for item in try rows.first?[0].jsonValue()?.array ?? [] {
        if replaces { try changed.add(item.object?["k"]?.string) }
        try insert(item.object?["k"], item.object?["v"], replaces: replaces, body)
      }
    case .insert(.rows(let query, _, _), let replaces):
      var changed = ChangedOnce(finding: "UPSERT finds several rows of its source")
      for row in query.orderBy.isEmpty ? Self.ordered(rows, { value("k", of: $0) }) : Array(rows) {
        let key = try value("k", of: row).jsonValue()
        if replaces { try changed.add(key?.string) }
        try insert(key, try value("v", of: row).jsonValue(), replaces: replaces, body)
      }
    case .merge(let actions): try merge(actions, rows, body)
    }
  }

  /// Rows in the order of the bytes of their IDs.
  private static func ordered(_ rows: QueryResults, _ id: (QueryRow) -> QueryResultValue) -> [QueryRow] {
    let rows = Array(rows)
    func isBefore(_ left: QueryRow, _ right: QueryRow) -> Bool {
      id(left).withUTF8 { left in
        id(right).withUTF8 { right in left.lexicographicallyPrecedes(right) } ?? false
      } ?? id(right).withUTF8 { _ in true } ?? false
    }
    // They mostly come so: documents are stored in this order.
    guard zip(rows, rows.dropFirst()).contains(where: { isBefore($1, $0) }) else { return rows }
    return rows.sorted(by: isBefore)
  }

  private func insert(
    _ key: JSONValue?, _ value: JSONValue?, replaces: Bool, _ body: (String, RequestedChange) throws -> Void
  ) throws {
    guard let id = key?.string else {
      throw QueryError(.evaluation, "the key of a document is a string, not \(key.typeText)")
    }
    guard let value, value.object != nil else {
      throw QueryError(.evaluation, "the body of the document \"\(id)\" is an object, not \(value.typeText)")
    }
    try body(id, .insert(value, replaces: replaces))
  }

  private func merge(
    _ actions: MergeActions, _ rows: QueryResults, _ body: (String, RequestedChange) throws -> Void
  ) throws {
    var changed = ChangedOnce(finding: "MERGE finds several rows of its source")
    let inserts = actions.insert != nil
    for row in Self.ordered(rows, { $0[0].exists || !inserts ? $0[0] : value("k", of: $0) }) {
      guard let id = row[0].string else {
        guard actions.insert != nil, value("i", of: row).bool == true else { continue }
        try changed.add(value("k", of: row).string)
        try insert(
          try value("k", of: row).jsonValue(), try value("v", of: row).jsonValue(), replaces: false, body)
        continue
      }
      if actions.delete != nil, value("d", of: row).bool == true {
        try changed.add(id)
        try body(id, .delete)
      } else if let update = actions.update, value("u", of: row).bool == true {
        try changed.add(id)
        try body(id, .update(try terms(update.assignments, row)))
      }
    }
  }

  private func terms(_ assignments: Assignments, _ row: QueryRow) throws -> [AppliedTerm] {
    var terms: [AppliedTerm] = []
    // The columns of `columns(of:)` follow the ID.
    var column = 1
    func next() throws -> JSONValue? {
      defer { column += 1 }
      return try row[column].jsonValue()
    }
    for term in assignments.set { terms.append(applied(term.path, term.loop, try next())) }
    for term in assignments.unset {
      terms.append(applied(term.path, term.loop, term.loop == nil ? nil : try next()))
    }
    return terms
  }

  private func applied(
    _ path: PropertyReference, _ loop: AssignmentLoop?, _ value: JSONValue?
  ) -> AppliedTerm {
    guard let loop else {
      return AppliedTerm(path: Self.ownSteps(path.steps, of: target), loops: [], value: value)
    }
    var loops = loop.variables.reversed().map { Array($0.path.steps.dropFirst()) }
    loops[0] = Self.ownSteps(loop.variables[loop.variables.count - 1].path.steps, of: target)
    return AppliedTerm(path: Array(path.steps.dropFirst()), loops: loops, value: value)
  }

  /// A path without the name of the documents.
  private static func ownSteps(_ steps: [PathStep], of target: ByteString) -> [PathStep] {
    steps.count > 1 && steps[0] == .name(target) ? Array(steps.dropFirst()) : steps
  }
}

/// The documents that a statement has changed, each once.
private struct ChangedOnce {
  let finding: String
  private var ids: Set<ByteString> = []

  init(finding: String) { self.finding = finding }

  mutating func add(_ id: String?) throws {
    guard let id, !ids.insert(ByteString(id)).inserted else { return }
    throw QueryError(.evaluation, "\(finding) for the document \"\(id)\"")
  }
}

extension JSONValue? {
  fileprivate var typeText: String {
    switch self {
    case nil: "missing"
    case .null?: "null"
    case .bool?: "a boolean"
    case .int?, .uint?, .double?: "a number"
    case .string?: "a string"
    case .array?: "an array"
    case .object?: "an object"
    default: "binary data"
    }
  }
}
