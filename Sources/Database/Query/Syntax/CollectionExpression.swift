// The syntax trees of loops over collections, of subscripts, and of objects with computed names.

import Storage

/// A loop over the items of collections. Several variables step through their collections together, up to the end
/// of the shortest.
public struct Iteration: Hashable, Sendable {
  /// What the loop makes.
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    case any = "ANY"
    case every = "EVERY"
    case anyAndEvery = "ANY AND EVERY"
    /// An array of the results.
    case array = "ARRAY"
    /// The first result.
    case first = "FIRST"
    /// An object of names and results.
    case object = "OBJECT"

    /// Whether it tests a condition. Otherwise it collects results.
    public var isTest: Bool { self == .any || self == .every || self == .anyAndEvery }
  }

  /// What the loop makes.
  public var kind: Kind
  /// The name of a member, for OBJECT.
  public var name: QueryExpression?
  /// The result for one step. Nil for tests.
  public var result: QueryExpression?
  /// The variables. There is at least one.
  public var bindings: [VariableBinding]
  /// The condition of SATISFIES, or that of WHEN, if there is one.
  public var condition: QueryExpression?

  /// Creates a loop.
  public init(
    _ kind: Kind, name: QueryExpression? = nil, _ result: QueryExpression? = nil,
    over bindings: [VariableBinding],
    condition: QueryExpression? = nil
  ) {
    self.kind = kind
    self.name = name
    self.result = result
    self.bindings = bindings
    self.condition = condition
  }

  /// The names of all variables.
  var variables: [ByteString] { bindings.flatMap { [$0.variable, $0.position].compactMap { $0 } } }

  /// The expressions that are computed for each step.
  var inner: [QueryExpression] { [name, result, condition].compactMap { $0 } }

  // Not inlined, so that the frames of the functions that walk trees stay small.

  /// Calls `body` with each collection, then with the expressions of a step.
  @inline(never)
  func forEachPart(_ body: (QueryExpression) throws -> Void) rethrows {
    for binding in bindings { try body(binding.collection) }
    for part in inner { try body(part) }
  }

  /// A copy in which functions have replaced the collections, and the expressions of a step.
  @inline(never)
  func mapping(
    collections: (QueryExpression) throws -> QueryExpression,
    inner: (QueryExpression) throws -> QueryExpression
  ) rethrows -> Iteration {
    var copy = self
    for index in bindings.indices {
      copy.bindings[index].collection = try collections(bindings[index].collection)
    }
    copy.name = try name.map(inner)
    copy.result = try result.map(inner)
    copy.condition = try condition.map(inner)
    return copy
  }
}

/// A variable of a loop: `[position :] variable IN collection`, or WITHIN.
public struct VariableBinding: Hashable, Sendable {
  /// The variable for an item.
  public var variable: ByteString
  /// The variable for the item's position in an array, or its name in an object.
  public var position: ByteString?
  /// The collection.
  public var collection: QueryExpression
  /// Whether items at all depths are visited. Each comes before the items in it.
  public var isDeep: Bool

  /// Creates a variable.
  public init(
    _ variable: ByteString, position: ByteString? = nil, in collection: QueryExpression, isDeep: Bool = false
  ) {
    self.variable = variable
    self.position = position
    self.collection = collection
    self.isDeep = isDeep
  }

  /// Creates a variable.
  public init(
    _ variable: String, position: String? = nil, in collection: QueryExpression, isDeep: Bool = false
  ) {
    self.init(
      ByteString(variable), position: position.map { ByteString($0) }, in: collection, isDeep: isDeep)
  }
}

/// What follows an expression in brackets.
public enum Subscript: Hashable, Sendable {
  /// `[index]`: the item of an array. Negative indexes count from the end.
  case element(QueryExpression)
  /// `.[name]`: the member of an object.
  case field(QueryExpression)
  /// `[start:end]`: the items from the start up to, but not including, the end.
  case slice(from: QueryExpression?, to: QueryExpression?)

  /// The expressions in the brackets.
  var parts: [QueryExpression] {
    switch self {
    case .element(let index): [index]
    case .field(let name): [name]
    case .slice(let start, let end): [start, end].compactMap { $0 }
    }
  }

  @inline(never)
  func mapping(_ body: (QueryExpression) throws -> QueryExpression) rethrows -> Subscript {
    switch self {
    case .element(let index): .element(try body(index))
    case .field(let name): .field(try body(name))
    case .slice(let start, let end): .slice(from: try start.map(body), to: try end.map(body))
    }
  }
}

/// A member of an object whose name is computed.
public struct ComputedMember: Hashable, Sendable {
  /// The expression for the name.
  public var name: QueryExpression
  /// The expression for the value.
  public var value: QueryExpression
  /// Creates a member.
  public init(_ name: QueryExpression, _ value: QueryExpression) {
    self.name = name
    self.value = value
  }
}
