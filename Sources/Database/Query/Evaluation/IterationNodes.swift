import Fleece

// Nodes for loops over collections, WITHIN, subscripts, and objects with computed names.

/// ARRAY, FIRST and OBJECT … FOR … END, and ANY and EVERY with several variables.
final class IterationNode: CompiledExpression, @unchecked Sendable {
  struct Binding {
    let collection: CompiledExpression
    let variable: Int
    let position: Int?
    let isDeep: Bool
  }

  private let kind: Iteration.Kind
  private let bindings: [Binding]
  private let name: CompiledExpression?
  private let result: CompiledExpression?
  private let condition: CompiledExpression?

  init(
    _ kind: Iteration.Kind, _ bindings: [Binding], name: CompiledExpression?, _ result: CompiledExpression?,
    condition: CompiledExpression?
  ) {
    self.kind = kind
    self.bindings = bindings
    self.name = name
    self.result = result
    self.condition = condition
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    if kind.isTest { return truth(context).value }
    var collections: [QueryValue] = []
    for binding in bindings {
      let collection = binding.collection.evaluate(context)
      if collection.isMissing { return .missing }
      collections.append(collection)
    }
    for (binding, collection) in zip(bindings, collections) {
      let takesObjects = binding.isDeep || binding.position != nil
      guard collection.type == .array || takesObjects && collection.type == .object else { return .null }
    }
    switch kind {
    case .first: return first(collections, context)
    case .object: return object(collections, context)
    default: return array(collections, context)
    }
  }

  override func truth(_ context: EvaluationContext) -> Truth {
    guard kind.isTest, let condition else { return evaluate(context).truth }
    // As for one variable, a value that isn't a collection has no items.
    var isEmpty = true
    var isDecided = false
    let deciding = kind == .any
    forEachStep(bindings.map { $0.collection.evaluate(context) }, context) {
      isEmpty = false
      isDecided = context.arena.scope { (condition.truth(context) == .true) == deciding }
      return !isDecided
    }
    switch kind {
    case .any: return Truth(isDecided)
    case .every: return Truth(!isDecided)
    default: return Truth(!isDecided && !isEmpty)
    }
  }

  /// Sets the variables for each step, and calls `body` until it returns false.
  private func forEachStep(_ collections: [QueryValue], _ context: EvaluationContext, _ body: () -> Bool) {
    if bindings.count == 1, bindings[0].position == nil, !bindings[0].isDeep {
      return collections[0].forEachItem { item in
        context.variables[bindings[0].variable] = item
        return body() && context.goesOn
      }
    }
    let all = zip(bindings, collections).map { binding, collection in
      collection.elements(isDeep: binding.isDeep, hasNames: binding.position != nil, context)
    }
    for step in 0..<(all.map(\.count).min() ?? 0) {
      for (binding, elements) in zip(bindings, all) {
        context.variables[binding.variable] = elements[step].value
        if let position = binding.position { context.variables[position] = elements[step].position }
      }
      guard body(), context.goesOn else { return }
    }
  }

  /// Calls `body` for each step that meets the condition.
  private func forEachTaken(_ collections: [QueryValue], _ context: EvaluationContext, _ body: () -> Bool) {
    forEachStep(collections, context) {
      if let condition, context.arena.scope({ condition.truth(context) }) != .true { return true }
      return body()
    }
  }

  private func array(_ collections: [QueryValue], _ context: EvaluationContext) -> QueryValue {
    var items: [QueryValue] = []
    forEachTaken(collections, context) {
      let value = result?.evaluate(context) ?? .missing
      if !value.isMissing { items.append(value) }
      return items.count <= context.limits.items
    }
    return context.array(items, of: "ARRAY")
  }

  private func first(_ collections: [QueryValue], _ context: EvaluationContext) -> QueryValue {
    var first = QueryValue.missing
    forEachTaken(collections, context) {
      first = result?.evaluate(context) ?? .missing
      return false
    }
    return first
  }

  private func object(_ collections: [QueryValue], _ context: EvaluationContext) -> QueryValue {
    var members: [ComputedObject.Member] = []
    var failure: QueryValue?
    forEachTaken(collections, context) {
      guard case .string(let name)? = name?.evaluate(context) else {
        failure = (name?.evaluate(context).isMissing ?? true) ? .missing : .null
        return false
      }
      let value = result?.evaluate(context) ?? .missing
      if !value.isMissing { members.append(ComputedObject.Member(name: name, value: value)) }
      return members.count <= context.limits.items
    }
    if let failure { return failure }
    guard context.goesOn else { return .missing }
    guard members.count <= context.limits.items else { return context.tooManyItems(of: "OBJECT") }
    // The last member of a name counts, and `object` keeps the first.
    return context.object(members.reversed())
  }
}

extension QueryValue {
  /// The items of an array or the members of an object, with their positions or names. With `isDeep`, those inside of
  /// them follow each.
  fileprivate func elements(
    isDeep: Bool, hasNames: Bool, _ context: EvaluationContext
  ) -> [(position: QueryValue, value: QueryValue)] {
    var elements: [(position: QueryValue, value: QueryValue)] = []
    collect(isDeep: isDeep, hasNames: hasNames, context, depth: 0) { position, value in
      elements.append((position, value))
      return context.goesOn
    }
    return elements
  }

  /// Calls `body` with each element until it returns false. Returns false then.
  @discardableResult
  func collect(
    isDeep: Bool, hasNames: Bool, _ context: EvaluationContext, depth: Int = 0,
    _ body: (QueryValue, QueryValue) -> Bool
  ) -> Bool {
    guard depth <= FleeceLimits.depth else { return true }
    func visit(_ position: QueryValue, _ value: QueryValue) -> Bool {
      guard body(position, value) else { return false }
      return !isDeep
        || value.collect(isDeep: true, hasNames: hasNames, context, depth: depth + 1, body)
    }
    switch type {
    case .array:
      var goesOn = true
      var index: Int64 = 0
      forEachItem { item in
        goesOn = visit(hasNames ? .int(index) : .missing, item.isMissing ? .null : item)
        index += 1
        return goesOn
      }
      return goesOn
    case .object:
      for member in sortedMembers(context.sharedKeys)
      where !visit(hasNames ? .string(member.name) : .missing, member.value) {
        return false
      }
      return true
    default: return true
    }
  }
}

/// `e[index]`, `e.[name]` and `e[start:end]`.
final class SubscriptNode: CompiledExpression, FoldableNode, @unchecked Sendable {
  enum Kind { case element, field, slice(hasStart: Bool, hasEnd: Bool) }

  private let kind: Kind
  private let base: CompiledExpression
  private let inside: [CompiledExpression]

  init(_ kind: Kind, _ base: CompiledExpression, _ inside: [CompiledExpression]) {
    self.kind = kind
    self.base = base
    self.inside = inside
  }

  var parts: [CompiledExpression] { [base] + inside }
  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    let value = base.evaluate(context)
    if case .slice(let hasStart, let hasEnd) = kind { return slice(value, hasStart, hasEnd, context) }
    let inner = inside[0].evaluate(context)
    if value.isMissing || inner.isMissing { return .missing }
    if case .string(let name) = inner {
      return value.type == .object ? value.member(name, context.sharedKeys) : .null
    }
    guard case .element = kind, let index = StringFunctions.wholeNumber(inner) else { return .null }
    return value.type == .array ? value.item(index) : .missing
  }

  /// A part of an array. Missing when a bound is outside of it.
  private func slice(
    _ value: QueryValue, _ hasStart: Bool, _ hasEnd: Bool, _ context: EvaluationContext
  ) -> QueryValue {
    let bounds = inside.map { $0.evaluate(context) }
    if value.isMissing || bounds.contains(where: \.isMissing) { return .missing }
    let numbers = bounds.compactMap { StringFunctions.wholeNumber($0) }
    guard value.type == .array, numbers.count == bounds.count else { return .null }
    let count = value.count
    func place(_ number: Int) -> Int { number < 0 ? count &+ number : number }
    let start = hasStart ? place(numbers[0]) : 0
    let end = hasEnd ? place(numbers[numbers.count - 1]) : count
    guard start >= 0, start <= end, end <= count else { return .missing }
    let items = context.arena.allocate(end - start, of: QueryValue.self)
    for index in start..<end { items[index - start] = value.itemOrNull(index) }
    return context.arena.array(items, end - start)
  }
}

/// `{name: value}` with names that are computed. Members with an unknown name or a missing value are left out.
final class ComputedObjectNode: CompiledExpression, FoldableNode, @unchecked Sendable {
  /// The names and the values, in turns.
  let parts: [CompiledExpression]
  init(_ parts: [CompiledExpression]) { self.parts = parts }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    var members: [ComputedObject.Member] = []
    for index in stride(from: 0, to: parts.count, by: 2) {
      let name = parts[index].evaluate(context)
      if name.isUnknown { continue }
      guard case .string(let name) = name else { return .null }
      members.append(ComputedObject.Member(name: name, value: parts[index + 1].evaluate(context)))
    }
    return context.object(members)
  }
}
