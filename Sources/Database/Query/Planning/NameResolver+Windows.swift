import Storage

// Resolves windows. docs/query.md has the rules.

extension NameResolver {
  func resolving(_ ordering: Ordering, _ resolved: QueryExpression) -> Ordering {
    var copy = ordering
    copy.expression = resolved
    return copy
  }

  /// A term of ORDER BY in the canonical form.
  mutating func resolve(_ ordering: Ordering, _ scope: Scope) throws -> Ordering {
    resolving(ordering, try resolve(ordering.expression, scope))
  }

  /// Collects the windows of the WINDOW clause. Each may extend earlier ones.
  mutating func collectWindows(_ statement: SelectStatement) throws {
    for window in statement.windows {
      guard windows[window.name] == nil else {
        throw failure(.duplicateName, "two windows are called \"\(window.name)\"", at: window.position)
      }
      windows[window.name] = try extended(window.definition, at: window.position)
    }
  }

  /// A window without a reference to another one.
  private func extended(_ window: WindowDefinition, at position: SourcePosition) throws -> WindowDefinition {
    guard let name = window.base else { return window }
    guard var base = windows[name] else {
      let hint = Suggestions.hint(for: name.string, among: windows.keys.map(\.string))
      throw failure(.unknownName, "there is no window \"\(name)\"\(hint)", at: position)
    }
    let isPlain = window.partitionBy.isEmpty && window.orderBy.isEmpty && window.frame == nil
    if isPlain { return base }
    func refuse(_ what: String) -> QueryError {
      failure(.invalidUse, "a window that extends \"\(name)\" can't \(what)", at: position)
    }
    guard window.partitionBy.isEmpty else { throw refuse("have a PARTITION BY of its own") }
    guard window.orderBy.isEmpty || base.orderBy.isEmpty else { throw refuse("have a second ORDER BY") }
    guard base.frame == nil else { throw refuse("extend its frame") }
    if base.orderBy.isEmpty { base.orderBy = window.orderBy }
    base.frame = window.frame
    return base
  }

  /// Resolves a call over a window.
  mutating func resolve(windowed call: FunctionCall, _ scope: Scope) throws -> QueryExpression {
    guard var window = call.window else { return .call(call) }
    windowedCalls += 1
    guard windowedCalls <= QuerySize.terms else {
      throw failure(.tooLarge, QuerySize.tooManyTerms, at: call.position)
    }
    if let clause = scope.noWindows ?? scope.noAggregates {
      throw failure(
        .invalidUse, "\(call.name) OVER a window isn't allowed in \(clause)", at: call.position)
    }
    var definition = try extended(window.definition, at: call.position)
    try check(definition, of: call)
    var inner = scope
    inner.noWindows = "another window function"
    definition = try definition.mapping { try resolve($0, inner) }
    definition.orderBy = definition.orderBy.flatMap(\.terms)
    window.definition = definition
    var resolved = call
    resolved.window = window
    resolved.filter = try call.filter.map { try resolve($0, inner) }
    if call.arguments == [.star(source: nil)] {
      try checkStar(of: call)
      return .call(resolved)
    }
    resolved.arguments = try call.arguments.map { try resolve($0, inner) }
    return .call(resolved)
  }

  /// Checks whether a function can have a window.
  private func check(_ window: WindowDefinition, of call: FunctionCall) throws {
    func refuse(_ message: String) -> QueryError {
      failure(.invalidUse, "\(call.name) \(message)", at: call.position)
    }
    let kind = WindowFunctionKind(rawValue: call.name)
    if let kind, kind.needsOrder, window.orderBy.isEmpty { throw refuse("needs a window with ORDER BY") }
    guard let frame = window.frame else { return }
    if let kind, !kind.takesFrame { throw refuse("takes no window with \(frame.unit.rawValue)") }
    if window.orderBy.isEmpty {
      throw refuse("has a window with \(frame.unit.rawValue), which needs an ORDER BY")
    }
    if frame.unit == .range, !frame.parts.isEmpty, window.orderBy.count > 1 {
      throw refuse("has a window with a distance in RANGE, which needs an ORDER BY of one term")
    }
  }
}

extension ResolvedQuery {
  /// The order of rows in which all windows see them one after the other. Nil when windows differ in it, or when
  /// rows are grouped first.
  var windowOrder: [Ordering]? {
    guard hasWindows, !isGrouped else { return nil }
    var orders: Set<[Ordering]> = []
    for expression in columns.map(\.expression) + orderBy.map(\.expression) {
      expression.forEachWindow { orders.insert($0.definition.rowOrder) }
    }
    guard orders.count == 1, let order = orders.first, !order.isEmpty else { return nil }
    return order
  }
}

extension WindowDefinition {
  /// The order of rows in which partitions come one after the other.
  var rowOrder: [Ordering] { partitionBy.map { Ordering($0) } + orderBy }
}

extension QueryExpression {
  /// Calls `body` with the windows of all calls in it.
  func forEachWindow(_ body: (WindowCall) -> Void) {
    if case .call(let call) = self, let window = call.window { body(window) }
    forEachPart { $0.forEachWindow(body) }
  }
}
