import Query
import TestSupport

// The naive evaluator's part for statements that change documents: all rows are found first, then changed one by one.

/// What a statement does.
struct NaiveChange {
  /// The bodies of the changed documents, nil for deleted ones. A document that is changed twice has its last body.
  var bodies: [ByteString: JSONValue?] = [:]
  /// The rows of RETURNING, in no order.
  var rows: [[JSONValue?]] = []
  /// Whether the statement fails, and changes nothing.
  var fails = false
}

/// What a statement does to documents.
///
/// - Throws: `NaiveError` when there is no answer.
func naiveChange(_ statement: ChangeStatement, _ data: NaiveData) throws -> NaiveChange {
  var changing = NaiveChanging(statement, data)
  do { try changing.run() } catch is NaiveChanging.Refusal { return NaiveChange(fails: true) }
  return changing.change
}

private struct NaiveChanging {
  /// The statement has to fail.
  struct Refusal: Error {}

  let statement: ChangeStatement
  let data: NaiveData
  var change = NaiveChange()
  private let name: ByteString

  init(_ statement: ChangeStatement, _ data: NaiveData) {
    self.statement = statement
    self.data = data
    name = statement.target.alias ?? statement.target.name
  }

  mutating func run() throws {
    if statement.limit != nil || statement.offset != nil { throw NaiveError.open("LIMIT of a change") }
    switch statement.action {
    case .update(let assignments):
      for row in try found() { try update(row, assignments) }
    case .delete: for row in try found() { try delete(row) }
    case .insert(.values(let pairs), let replaces):
      let start = NaiveRow(data)
      for (key, value) in try pairs.map({ (try naive($0[0], start), try naive($0[1], start)) }) {
        // The values are in an array, where missing ones are null.
        try insert(key, value, replaces: replaces)
      }
    case .insert(.rows(let query, let key, let value), let replaces):
      let rows = try naiveRows(query, NaiveRow(data)).filter { $0.map { !$0.isNull } ?? false }
      for row in rows {
        var start = NaiveRow(data)
        start.add(value: row, as: "\u{1}row")
        try insert(
          naive(key, start), value.map { try naive($0, start) } ?? row, replaces: replaces)
      }
    case .merge(let actions): try merge(actions)
    }
  }

  /// The rows that the condition finds.
  private func found() throws -> [NaiveRow] {
    var rows: [NaiveRow] = []
    for document in data.documents where !document.isDeleted {
      var row = NaiveRow(data)
      row.add(document, as: name)
      guard try naiveHasKey(document, statement.target, NaiveRow(data)) else { continue }
      if let condition = statement.condition, try !naiveIsTrue(condition, row) { continue }
      rows.append(row)
    }
    return rows
  }

  private mutating func delete(_ row: NaiveRow) throws {
    guard let document = try row.document(name) else { return }
    try returnRow(document)
    change.bodies[ByteString(document.id)] = .some(nil)
  }

  private mutating func insert(_ key: JSONValue?, _ value: JSONValue?, replaces: Bool) throws {
    guard let id = key?.string, let value, value.object != nil else { throw Refusal() }
    let known = data.documents.first { ByteString($0.id) == ByteString(id) }
    let isThere = change.bodies[ByteString(id)].map { $0 != nil } ?? known.map { !$0.isDeleted } ?? false
    if isThere, !replaces { throw Refusal() }
    // UPSERT changes a document once.
    if replaces, change.bodies.keys.contains(ByteString(id)) { throw Refusal() }
    change.bodies[ByteString(id)] = .some(value)
    try returnRow(
      NaiveDocument(id: id, body: value, sequence: 0, revisionID: "", expiration: known?.expiration))
  }

  private mutating func update(_ row: NaiveRow, _ assignments: Assignments) throws {
    guard var document = try row.document(name) else { return }
    var body = document.body
    var removed: [[PathStep]] = []
    // All values are those of the document as it was.
    for term in assignments.set {
      try assign(term.path, term.loop, to: &body, row, &removed) { try naive(term.value, $0) }
    }
    for term in assignments.unset { try assign(term.path, term.loop, to: &body, row, &removed) { _ in nil } }
    // Items go at the end, when all have been found.
    for path in removed { Self.set(&body, path[...], Self.removedItem) }
    document.body = Self.withoutRemovedItems(body)
    body = document.body
    change.bodies[ByteString(document.id)] = .some(body)
    try returnRow(document)
  }

  private mutating func merge(_ actions: MergeActions) throws {
    let start = NaiveRow(data)
    guard let items = try naiveItems(actions.source, start) else {
      throw NaiveError.unsupported("MERGE with documents")
    }
    let source = actions.source.alias ?? actions.source.name
    var seen: Set<ByteString> = []
    func isAllowed(_ condition: QueryExpression?, _ row: NaiveRow) throws -> Bool {
      try condition.map { try naiveIsTrue($0, row) } ?? true
    }
    var planned: [(NaiveRow, (inout NaiveChanging, NaiveRow) throws -> Void)] = []
    for item in items {
      var row = start
      row.add(value: item, as: source)
      var isMatched = false
      for document in data.documents where !document.isDeleted {
        var matched = row
        matched.add(document, as: name)
        guard try naiveIsTrue(actions.on, matched) else { continue }
        isMatched = true
        let isDeleted = try actions.delete.map { try isAllowed($0.condition, matched) } ?? false
        let isUpdated = try actions.update.map { try isAllowed($0.condition, matched) } ?? false
        guard isDeleted || isUpdated else { continue }
        guard seen.insert(ByteString(document.id)).inserted else { throw Refusal() }
        planned.append(
          (
            matched,
            { changing, row in
              if isDeleted {
                try changing.delete(row)
              } else if let update = actions.update {
                try changing.update(row, update.assignments)
              }
            }
          ))
      }
      guard !isMatched, let insert = actions.insert else { continue }
      row.add(nil, as: name)
      guard try isAllowed(insert.condition, row) else { continue }
      if let key = try naive(insert.key, row)?.string, !seen.insert(ByteString(key)).inserted {
        throw Refusal()
      }
      planned.append(
        (
          row,
          { changing, row in
            try changing.insert(
              naive(insert.key, row), insert.value.map { try naive($0, row) } ?? item, replaces: false)
          }
        ))
    }
    for (row, action) in planned { try action(&self, row) }
  }

  private mutating func returnRow(_ document: NaiveDocument) throws {
    guard !statement.returning.isEmpty else { return }
    var row = NaiveRow(data)
    row.add(document, as: name)
    for result in statement.returning {
      if let alias = result.alias { row.aliases[alias] = result.expression }
    }
    change.rows.append(try statement.returning.map { try naive($0.expression, row) })
  }

  // MARK: Assignments

  private static let removedItem = JSONValue.string("\u{1}removed")

  private static func withoutRemovedItems(_ value: JSONValue) -> JSONValue {
    switch value {
    case .array(let items): return .array(items.filter { $0 != removedItem }.map { withoutRemovedItems($0) })
    case .object(var object):
      for (name, member) in object { object[name] = withoutRemovedItems(member) }
      return .object(object)
    default: return value
    }
  }

  private func assign(
    _ path: PropertyReference, _ loop: AssignmentLoop?, to body: inout JSONValue, _ row: NaiveRow,
    _ removed: inout [[PathStep]], _ value: (NaiveRow) throws -> JSONValue?
  ) throws {
    guard let loop else {
      let new = try value(row)
      if new == nil, case .index? = path.steps.last { return removed.append(own(path.steps)) }
      return Self.set(&body, own(path.steps)[...], new)
    }
    // The last variable is that of the outermost array.
    try each(loop.variables.reversed()[...], &body, row, isOutermost: true) { item, row in
      if let condition = loop.condition, try !naiveIsTrue(condition, row) { return }
      let new = try value(row)
      Self.set(&item, path.steps.dropFirst(), new)
    }
  }

  private func each(
    _ variables: ArraySlice<AssignmentLoop.Variable>, _ body: inout JSONValue, _ row: NaiveRow,
    isOutermost: Bool,
    _ change: (inout JSONValue, NaiveRow) throws -> Void
  ) throws {
    guard let variable = variables.first else { return try change(&body, row) }
    let steps = isOutermost ? own(variable.path.steps) : Array(variable.path.steps.dropFirst())
    // Values are those of the document as it was, which is in the row.
    try Self.update(&body, steps[...]) { array in
      guard case .array(var items) = array else { return }
      let before =
        try naive(
          .property(
            PropertyReference(isOutermost ? [.name(name)] + steps : variable.path.steps)), row)?.array ?? []
      for index in items.indices where before.indices.contains(index) {
        var inner = row
        inner.values[variable.name] = .some(before[index])
        try each(variables.dropFirst(), &items[index], inner, isOutermost: false, change)
      }
      array = .array(items)
    }
  }

  private func own(_ steps: [PathStep]) -> [PathStep] {
    steps.count > 1 && steps[0] == .name(name) ? Array(steps.dropFirst()) : steps
  }

  /// Calls `body` with what is at a path, if there is something.
  private static func update(
    _ value: inout JSONValue, _ steps: ArraySlice<PathStep>, _ body: (inout JSONValue) throws -> Void
  ) throws {
    guard let step = steps.first else { return try body(&value) }
    switch step {
    case .name(let name):
      guard case .object(var object) = value, var member = object[name.string] else { return }
      try update(&member, steps.dropFirst(), body)
      object[name.string] = member
      value = .object(object)
    case .index(let index):
      guard case .array(var items) = value else { return }
      let place = index < 0 ? items.count + index : index
      guard items.indices.contains(place) else { return }
      try update(&items[place], steps.dropFirst(), body)
      value = .array(items)
    }
  }

  private static func set(_ value: inout JSONValue, _ steps: ArraySlice<PathStep>, _ new: JSONValue?) {
    guard let last = steps.last else { return }
    try? update(&value, steps.dropLast()) { parent in
      switch (last, parent) {
      case (.name(let name), .object(var object)):
        object[name.string] = new
        parent = .object(object)
      case (.index(let index), .array(var items)):
        let place = index < 0 ? items.count + index : index
        guard items.indices.contains(place) else { return }
        if let new { items[place] = new } else { items.remove(at: place) }
        parent = .array(items)
      default: break
      }
    }
  }
}
